"""LightGBM's side file: `rank.train.query`, beside `rank.train`, has the number of rows of each query, one per line."""

from __future__ import annotations

import os

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.streams.decompression import CODECS

SUFFIX = ".query"


def with_side_file(dataset: RankingDataset, path: str) -> RankingDataset:
    """The dataset with the queries of the side file of `path`; itself if there is none, or it has queries already."""
    side = side_file_of(path)
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
    grouped.skipped_lines = dataset.skipped_lines
    return grouped


def side_file_of(path: str) -> str | None:
    """The side file of `path`, if there is one; beside compressed data it may have the name of the plain data's."""
    stem, ending = os.path.splitext(path)
    names = (path, stem) if ending.lower() in CODECS else (path,)
    return next((name + SUFFIX for name in names if os.path.isfile(name + SUFFIX)), None)


def _read_sizes(side: str) -> list[int]:
    sizes = []
    with open(side, "rb") as file:
        for number, line in enumerate(file, start=1):
            word = line.strip()
            if not word:
                continue
            if not word.isdigit():
                shown = word[:40].decode("ascii", "replace")
                raise DataError(f"{side}, line {number}: must be the number of rows of a query, got {shown!r}.")
            sizes.append(int(word))
    return sizes
