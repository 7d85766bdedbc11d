"""The pairs, and their initial weights.

| `pair_weight` | D_1(x0, x1) ∝ |
| ------------- | ------------- |
| `pairs`       | 1: every pair counts alike, so a query counts by its number of pairs |
| `queries`     | 1 / (pairs of the query): every query counts alike |
| `difference`  | label(x1) − label(x0) |
| `gain`        | (2^label(x1) − 2^label(x0)) / (ideal DCG@10 of the query): how much NDCG@10 the pair can decide |
| `ndcg`        | 2^label(x1) − 2^label(x0), with the same sum for every query; and while training goes on, times the
                  geometric mean of the discounts 1 / log2(rank + 1) of both documents in the ranking so far |

times the weight of the query and of both documents, if the dataset has weights. What depends on labels only
factorises over label levels: weights that add up from one level to the next (`step`), or that a query's pairs have in
common. What depends on ranks is a product of documents' weights (`kernels/boosting/cpu/rank_weights.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rankwell.data.agreement import ALONE, Agreement
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, Parameter
from rankwell.kernels.boosting.contract import LevelledQueries, PairList

PAIR_WEIGHTS = ("pairs", "queries", "difference", "gain", "ndcg")
BY_RANK = "ndcg"
_GAINS = ("gain", "ndcg")
_DEPTH = 10
_LARGEST_LABEL = 60
# Pairs of one query whose weight adds up from level to level, and of what.
_ADDED_UP: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "difference": lambda label: label,
    "gain": np.exp2,
    "ndcg": np.exp2,
}


def levelled_queries(dataset: RankingDataset, pair_weight: str, agreement: Agreement = ALONE) -> LevelledQueries:
    """The queries of `dataset` that have pairs, sorted by label within each, initial pair weights summing to 1."""
    from rankwell.kernels.boosting.cpu.documents import query_pair_weights

    query_weights = np.ones(dataset.n_queries) if dataset.query_weights is None else dataset.query_weights
    weights = np.ones(dataset.n_docs) if dataset.document_weights is None else dataset.document_weights
    query = dataset.query_of_rows()
    counts = (weights > 0) & (query_weights[query] > 0)
    rows = np.flatnonzero(counts)
    rows = rows[np.lexsort((dataset.labels[rows], query[rows]))]

    label, query = dataset.labels[rows], query[rows]
    opens = np.ones(len(rows), dtype=bool)
    opens[1:] = (label[1:] != label[:-1]) | (query[1:] != query[:-1])
    segments_of_query = np.bincount(query[opens], minlength=dataset.n_queries)
    has_pairs = segments_of_query >= 2
    if not agreement.largest(np.array([int(has_pairs.any())]))[0]:
        raise DataError(
            "there are no pairs to learn from: within every query all labels are equal, or the weights are 0. "
            "Check that y matches qid (or group)."
        )
    kept = has_pairs[query]
    rows, label, opens = rows[kept], label[kept], opens[kept]
    starts = np.flatnonzero(opens)
    query_segments = np.concatenate(([0], np.cumsum(segments_of_query[has_pairs])))
    largest = float(agreement.largest(np.array([dataset.labels.max(initial=0.0)]))[0])
    if pair_weight in _GAINS and largest > _LARGEST_LABEL:
        raise DataError(
            f"the gain 2^label needs labels of at most {_LARGEST_LABEL}, got {largest:g}. Use ",
            Parameter("pair_weight", "difference"),
            " for labels that are not grades.",
        )
    worth = _ADDED_UP.get(pair_weight)
    levels = LevelledQueries(
        rows=rows,
        segment_ptr=np.concatenate((starts, [len(rows)])),
        query_segments=query_segments,
        step=np.ones(len(starts)) if worth is None else _label_steps(worth(label[starts]), query_segments, agreement),
        carry=worth is not None,
        query_weight=query_weights[has_pairs],
        document_weight=weights[rows],
    )
    if pair_weight in ("queries", "ndcg"):
        share = query_pair_weights(replace(levels, query_weight=np.ones(levels.n_queries)))
        levels = replace(levels, query_weight=levels.query_weight / share)
    elif pair_weight == "gain":
        ideal = _ideal_gains(dataset)[has_pairs]
        levels = replace(levels, query_weight=levels.query_weight / ideal)
    return replace(levels, query_weight=levels.query_weight / agreement.total(query_pair_weights(levels)))


def _ideal_gains(dataset: RankingDataset) -> np.ndarray:
    """The DCG@10 of each query's best order, with gains 2^label − 2^(its lowest label), float64 (n_queries,)."""
    ideal = np.zeros(dataset.n_queries)
    discount = 1.0 / np.log2(np.arange(2, _DEPTH + 2))
    for query, rows in enumerate(dataset.queries()):
        gain = np.exp2(dataset.labels[rows])
        if len(gain):
            best = -np.sort(-gain)[:_DEPTH] - gain.min()
            ideal[query] = best @ discount[: len(best)]
    return ideal


def _label_steps(label: np.ndarray, query_segments: np.ndarray, agreement: Agreement) -> np.ndarray:
    """By how much each segment's label is above the one below, in units of the largest; 0 for a query's lowest."""
    # The difference of two labels may overflow float64, that of scaled labels cannot.
    scaled = label / agreement.largest(np.array([np.abs(label).max(initial=0.0)]))
    step = np.diff(scaled, prepend=0.0)
    step[query_segments[:-1]] = 0.0
    return step / agreement.largest(np.array([step.max(initial=0.0)]))


def listed_pairs(dataset: RankingDataset, pairs: Any, weights: Any = None) -> PairList:
    """A user's list of pairs, checked and grouped by query.

    Parameters
    ----------
    pairs : int array (n_pairs, 2)
        Rows of the user's data: the preferred document, then the other one, both of the same query.
    weights : array (n_pairs,), optional
        How much each pair counts; pairs of weight 0 are left out.
    """
    rows = _as_rows(pairs, dataset.n_docs)
    weight = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    if weight.shape != (len(rows),) or not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise DataError(f"pair_weights must be {len(rows)} finite numbers of 0 or more, one per pair.")
    if dataset.doc_idx is not None:
        place = np.empty(dataset.n_docs, dtype=np.int64)
        place[dataset.doc_idx] = np.arange(dataset.n_docs)
        rows = place[rows]
    higher, lower = rows.T
    query = dataset.query_of_rows()
    if (query[higher] != query[lower]).any():
        first = int(np.flatnonzero(query[higher] != query[lower])[0])
        raise DataError(
            f"a pair must be of one query: pair {first} is of queries {dataset.query_ids[query[higher[first]]]} and "
            f"{dataset.query_ids[query[lower[first]]]}. Check that the pairs count rows as X does."
        )
    if dataset.query_weights is not None:
        weight = weight * dataset.query_weights[query[higher]]
    kept = np.flatnonzero((weight > 0) & (higher != lower))
    if len(kept) == 0:
        raise DataError("there are no pairs to learn from: the list is empty, or every pair has weight 0.")
    kept = kept[np.argsort(query[higher[kept]], kind="stable")]
    sizes = np.bincount(query[higher[kept]])
    return PairList(
        n_docs=dataset.n_docs,
        lower=lower[kept].astype(np.int32),
        higher=higher[kept].astype(np.int32),
        weight=weight[kept] / weight[kept].sum(),
        pair_ptr=np.concatenate(([0], np.cumsum(sizes[sizes > 0]))),
    )


def _as_rows(pairs: Any, n_docs: int) -> np.ndarray:
    rows = np.asarray(pairs)
    if rows.ndim != 2 or rows.shape[1] != 2 or not np.issubdtype(rows.dtype, np.integer):
        raise DataError(
            f"pairs must be whole numbers of shape (n_pairs, 2), the preferred row first, got {rows.dtype} of shape "
            f"{rows.shape}."
        )
    if len(rows) and not 0 <= rows.min() <= rows.max() < n_docs:
        raise DataError(f"pairs must be rows of X, from 0 to {n_docs - 1}, got {rows.min()} to {rows.max()}.")
    return rows.astype(np.int64)
