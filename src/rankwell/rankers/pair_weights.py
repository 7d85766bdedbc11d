"""Which pairs there are, and how much each counts at the start.

| `pair_weight` | D_1(x0, x1) ∝ |
| ------------- | ------------- |
| `pairs`       | 1: every pair counts alike, so a query counts by its number of pairs |
| `queries`     | 1 / (pairs of the query): every query counts alike |
| `difference`  | label(x1) − label(x0) |

times the weight of the query and of both documents, where the dataset has weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.kernels.rankboost_interface import LevelledQueries, PairList

PAIR_WEIGHTS = ("pairs", "queries", "difference")


def levelled_queries(dataset: RankingDataset, pair_weight: str) -> LevelledQueries:
    """The queries of `dataset` that have pairs, sorted by label within each, initial pair weights summing to 1."""
    from rankwell.kernels.cpu.rankboost import query_pair_weights

    query_weights = np.ones(dataset.n_queries) if dataset.query_weights is None else dataset.query_weights
    weights = np.ones(dataset.n_docs) if dataset.document_weights is None else dataset.document_weights
    query = dataset.query_of_rows()
    counts = (weights > 0) & (query_weights[query] > 0)
    rows = np.flatnonzero(counts) if not counts.all() else np.arange(dataset.n_docs)
    order = rows[np.lexsort((dataset.labels[rows], query[rows]))]

    label, query = dataset.labels[order], query[order]
    opens = np.ones(len(order), dtype=bool)
    opens[1:] = (label[1:] != label[:-1]) | (query[1:] != query[:-1])
    segments_of_query = np.bincount(query[opens], minlength=dataset.n_queries)
    has_pairs = segments_of_query >= 2
    if not has_pairs.any():
        raise DataError(
            "there are no pairs to learn from: within every query all labels are equal, or the weights are 0. "
            "Check that y and qid (or group) belong together."
        )
    kept = has_pairs[query]
    order, label, opens = order[kept], label[kept], opens[kept]
    starts = np.flatnonzero(opens)
    query_segments = np.concatenate(([0], np.cumsum(segments_of_query[has_pairs])))
    levels = LevelledQueries(
        n_docs=dataset.n_docs,
        order=order.astype(np.int32),
        segment_ptr=np.concatenate((starts, [len(order)])),
        query_segments=query_segments,
        step=_label_steps(label[starts], query_segments) if pair_weight == "difference" else np.ones(len(starts)),
        carry=pair_weight == "difference",
        query_weight=query_weights[has_pairs],
        document_weight=weights[order],
    )
    share = query_pair_weights(levels)
    weight = levels.query_weight / share if pair_weight == "queries" else levels.query_weight
    return replace(levels, query_weight=weight / np.sum(weight * share))


def _label_steps(label: np.ndarray, query_segments: np.ndarray) -> np.ndarray:
    """By how much each segment's label is above the one below, in units of the largest; 0 for a query's lowest."""
    scaled = label / np.abs(label).max()  # the difference of two labels may not fit a float64, of two scaled ones does
    step = np.diff(scaled, prepend=0.0)
    step[query_segments[:-1]] = 0.0
    return step / step.max()
