"""LightGBM's side files, beside `rank.train`: numbers, one per line.

`rank.train.query` has the number of rows of each query, `rank.train.weight` the weight of each row. Two others that
LightGBM reads, `rank.train.init` and `rank.train.position`, are not read here.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.streams.decompression import CODECS

logger = logging.getLogger(__name__)

QUERY, WEIGHT = ".query", ".weight"
# What LightGBM would read there, and what there is instead.
_NOT_READ = {
    ".init": "scores to start from; continue from a model with init_model, or subtract them in a loss of your own",
    ".position": "positions of shown documents; judgments without their bias come from clicks (rankwell clicks)",
}
_SHOWN = 40


def with_side_files(dataset: RankingDataset, path: str) -> RankingDataset:
    """The dataset with the queries and the weights that are beside `path`; itself if there are none.

    Queries are those of the data if it has any.
    """
    for suffix, meaning in _NOT_READ.items():
        side = _side_file_of(path, suffix)
        if side is not None:
            logger.warning("%s is not read: LightGBM takes from it %s.", side, meaning)
    return _with_weights(_with_queries(dataset, path), path)


def has_queries_beside(path: str) -> bool:
    """Whether a side file says which rows are a query."""
    return _side_file_of(path, QUERY) is not None


def has_side_file(path: str) -> bool:
    """Whether the rows of `path` mean something only together with those before them."""
    return any(_side_file_of(path, suffix) is not None for suffix in (QUERY, WEIGHT))


def _with_queries(dataset: RankingDataset, path: str) -> RankingDataset:
    side = _side_file_of(path, QUERY)
    if dataset.n_queries != 1 or side is None:
        return dataset
    sizes = _read_sizes(side)
    if sum(sizes) != dataset.n_docs:
        raise DataError(
            f"{side} has queries of {sum(sizes)} rows in all, but {path} has {dataset.n_docs} rows. Each line of the "
            "former is the number of rows of one query, in order; move it away if it belongs to other data."
        )
    grouped = RankingDataset(
        dataset.features,
        dataset.labels if dataset.has_labels else None,
        group=np.array(sizes, np.int64),
        comments=dataset.comments,
        feature_names=dataset.feature_names,
    )
    grouped.skipped_lines, grouped.first_index = dataset.skipped_lines, dataset.first_index
    grouped.candidates = dataset.candidates
    return grouped


def _with_weights(dataset: RankingDataset, path: str) -> RankingDataset:
    side = _side_file_of(path, WEIGHT)
    if side is None:
        return dataset
    weights = _read_weights(side)
    if len(weights) != dataset.n_docs:
        left_out = f", of which {dataset.skipped_lines} bad lines were left out" if dataset.skipped_lines else ""
        raise DataError(
            f"{side} must have a weight for each row: it has {len(weights)}, but {path} has {dataset.n_docs} "
            f"rows{left_out}. Correct it, or move it away if it belongs to other data."
        )
    logger.info("weights of the rows come from %s", side)
    return dataset.replace(document_weights=weights)


def _side_file_of(path: str, suffix: str) -> str | None:
    """The side file of `path`, if there is one; beside compressed data it may have the name of the plain data's."""
    stem, ending = os.path.splitext(path)
    names = (path, stem) if ending.lower() in CODECS else (path,)
    return next((name + suffix for name in names if os.path.isfile(name + suffix)), None)


def _read_sizes(side: str) -> list[int]:
    sizes = []
    for number, word in _words(side):
        if not word.isdigit():
            raise DataError(f"{side}, line {number}: must be the number of rows of a query, got {_shown(word)}.")
        sizes.append(int(word))
    return sizes


def _read_weights(side: str) -> list[float]:
    weights = []
    for number, word in _words(side):
        try:
            weight = float(word)
        except ValueError:
            weight = math.nan
        if not 0.0 <= weight < math.inf:
            raise DataError(f"{side}, line {number}: must be the weight of a row, 0 or more, got {_shown(word)}.")
        weights.append(weight)
    return weights


def _words(side: str) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, and their numbers."""
    with open(side, "rb") as file:
        for number, line in enumerate(file, start=1):
            if word := line.strip():
                yield number, word


def _shown(word: bytes) -> str:
    return repr(word[:_SHOWN].decode("ascii", "replace"))
