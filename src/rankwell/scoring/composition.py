"""Rankers made of rankers: a description may read the scores of other descriptions, and may rank in two passes.

A *part* is another ranker. It reads features of the description that contains it, applies its own normaliser, and its
score is one more column, after the features and under the part's name. A score becomes float32 there, as every
feature is.

A *first pass* says that of each query only the `keep` best documents by one of the parts are scored. The others are
ranked below them, in the order of that part: a description with a first pass is a cascade.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankwell.scoring.array_checks import require

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset
    from rankwell.scoring.description import RankerDescription

# Descriptions inside descriptions; the outermost counts.
DEEPEST_NESTING = 8

Score = Callable[..., np.ndarray]
"""`score_description` with its device chosen: a description, a dataset and perhaps n_rounds to float64 (n_docs,)."""


@dataclass(frozen=True, eq=False)
class RankerPart:
    """Another ranker whose score is a column.

    name : the column's name
    features : for each feature of `description`, which feature of the containing description it is
    """

    name: str
    features: tuple[int, ...]
    description: RankerDescription


@dataclass(frozen=True)
class FirstPass:
    """Of each query, only the best `keep` documents by part number `part` are scored."""

    part: int
    keep: int


def with_part_columns(description: RankerDescription, dataset: RankingDataset, features: Any, score: Score) -> Any:
    """Normalised features with the scores of all parts after them: float32 (n_docs, n_columns), C order.

    features : the dataset's features after the description's normaliser; parts read the dataset's own. A part whose
        score no input reads (a first pass) is 0.
    """
    if not description.parts:
        return features
    dense = dataset.dense_features()
    columns = np.empty((dataset.n_docs, description.n_columns), np.float32)
    columns[:, : description.n_features] = features.toarray() if hasattr(features, "toarray") else features
    for number, part in enumerate(description.parts, start=description.n_features):
        is_read = number in description.read_columns
        columns[:, number] = score(part.description, part_data(part, dataset, dense)) if is_read else 0.0
    return columns


def part_data(part: RankerPart, dataset: RankingDataset, dense: np.ndarray) -> RankingDataset:
    """The dataset with the features that a part reads."""
    if part.features == tuple(range(dense.shape[1])):
        return dataset
    return dataset.replace(features=np.ascontiguousarray(dense[:, list(part.features)]))


class FirstPassRun(NamedTuple):
    """What a first pass did with a dataset.

    part : the ranker that it is; dataset : with the features that this reads
    scores : its scores of all rows; kept : the rows that the second pass gets, ascending
    """

    part: RankerPart
    dataset: RankingDataset
    scores: np.ndarray
    kept: np.ndarray


def run_first_pass(description: RankerDescription, dataset: RankingDataset, score: Score) -> FirstPassRun:
    first_pass = description.first_pass
    assert first_pass is not None
    part = description.parts[first_pass.part]
    read = part_data(part, dataset, dataset.dense_features())
    scores = score(part.description, read)
    return FirstPassRun(part, read, scores, best_rows(scores, dataset.query_ptr, first_pass.keep))


def score_in_two_passes(
    description: RankerDescription, dataset: RankingDataset, score: Score, *, n_rounds: int | None = None
) -> np.ndarray:
    """Scores of a description that has a first pass; they compare within a query."""
    run = run_first_pass(description, dataset, score)
    scores = np.full(dataset.n_docs, np.nan)
    scores[run.kept] = score(description.second_pass, rows_of(dataset, run.kept), n_rounds=n_rounds)
    return rank_below(scores, run.scores, dataset.query_ptr)


def best_rows(scores: np.ndarray, query_ptr: np.ndarray, keep: int) -> np.ndarray:
    """The rows of the best `keep` documents of each query, ascending; of equal scores the first rows are kept."""
    ends = query_ptr.tolist()
    kept = [start + best_places(scores[start:end], keep) for start, end in pairwise(ends)]
    return np.concatenate([np.empty(0, np.int64), *kept])


def best_places(scores: np.ndarray, keep: int) -> np.ndarray:
    """The places of the best `keep` scores, ascending; of equal ones the first."""
    if keep >= len(scores):
        return np.arange(len(scores))
    # Negative, so that NaN comes last.
    negative = -scores
    last = np.partition(negative, keep - 1)[keep - 1]
    if np.isnan(last):
        return np.sort(np.argsort(negative, kind="stable")[:keep])
    best = np.flatnonzero(negative < last)
    equal = np.flatnonzero(negative == last)[: keep - len(best)]
    return np.sort(np.concatenate((best, equal)))


def rows_of(dataset: RankingDataset, rows: np.ndarray) -> RankingDataset:
    """Some rows of a dataset, ascending, by the queries they belong to, with labels and weights if there are any."""
    from rankwell.data.dataset import RankingDataset

    sizes = np.diff(np.searchsorted(rows, dataset.query_ptr))
    return RankingDataset(
        dataset.features[rows],
        dataset.labels[rows] if dataset.has_labels else None,
        group=sizes,
        query_weights=dataset.query_weights,
        document_weights=None if dataset.document_weights is None else dataset.document_weights[rows],
        feature_names=dataset.feature_names,
    )


def rank_below(scores: np.ndarray, first: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """Scores in which documents without one (NaN) come after those with one, in the order of their first scores.

    The best of them gets the query's lowest score minus a step, and each lower first score another step less; equal
    first scores stay equal. A step is 1, or more where float64 would round it away.
    """
    scores = scores.copy()
    for start, end in zip(query_ptr[:-1].tolist(), query_ptr[1:].tolist(), strict=True):
        own = scores[start:end]
        lacking = np.isnan(own)
        if not lacking.any():
            continue
        lowest = float(own[~lacking].min(initial=np.inf))
        lowest = 0.0 if lowest == np.inf else lowest
        step = max(1.0, abs(lowest) * 2.0**-30)
        _, place = np.unique(-first[start:end][lacking], return_inverse=True)
        own[lacking] = lowest - step * (1 + place)
    return scores


def check_parts(description: RankerDescription) -> None:
    """Refuse parts that could not be evaluated: everything that comes from a file is checked here."""
    for part in description.parts:
        require(len(part.features) == part.description.n_features, "a part reads another number of features")
        within = all(isinstance(f, int) and 0 <= f < description.n_features for f in part.features)
        require(within, "a part reads a feature that does not exist")
    require(_depth(description) <= DEEPEST_NESTING, f"parts are nested more than {DEEPEST_NESTING} deep")
    first_pass = description.first_pass
    if first_pass is not None:
        require(
            isinstance(first_pass.part, int) and 0 <= first_pass.part < len(description.parts),
            "its first pass is by a part that does not exist",
        )
        require(isinstance(first_pass.keep, int) and first_pass.keep >= 1, "its first pass does not keep 1 or more")
    require(
        all(part.description.first_pass is None for part in description.parts),
        "a part ranks in two passes, which only the whole ranker can",
    )


def _depth(description: RankerDescription) -> int:
    return 1 + max((_depth(part.description) for part in description.parts), default=0)
