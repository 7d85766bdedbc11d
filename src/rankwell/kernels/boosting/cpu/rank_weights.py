"""Weights by rank: pairs near the top of the ranking that the rounds so far give count more.

What swapping a pair changes in NDCG is the difference of its gains times the difference of its discounts. Differences
of gains add up over label levels, so they factorise; differences of discounts do not, but products do: a document
weighs √(1 / log2(rank + 1)), and a pair the product of its documents' weights, the geometric mean of both discounts.
Ranks change slowly, so they are taken anew every `REFRESH_ROUNDS` rounds only. Before that all documents weigh alike.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.boosting.contract import LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.precision import SMALLEST_WEIGHT

REFRESH_ROUNDS = 5


def is_due(weights: ScoreWeights) -> bool:
    """Whether documents must be weighed anew after the last round."""
    return weights.rank_weight is not None and weights.n_rounds % REFRESH_ROUNDS == 0


def weigh_by_rank(queries: LevelledQueries, weights: ScoreWeights) -> None:
    """Replace the documents' weights by those of their ranks now, in place."""
    assert weights.rank_weight is not None
    segment = np.repeat(np.arange(queries.n_segments), np.diff(queries.segment_ptr))
    query_ptr = queries.segment_ptr[queries.query_segments]
    query = np.repeat(np.arange(queries.n_queries), np.diff(query_ptr))
    # H, from e^H times both weights of the document, which is up · 2^up_exponent.
    score = np.log(weights.up) - np.log(weights.rank_weight * queries.document_weight)
    score += weights.up_exponent[segment] * np.log(2.0)
    best_first = np.lexsort((-score, query))
    rank_pos = np.empty(queries.n_docs, dtype=np.int64)
    rank_pos[best_first] = np.arange(queries.n_docs) - query_ptr[query]
    rank_weight = np.sqrt(1.0 / np.log2(rank_pos + 2.0))
    change = rank_weight / weights.rank_weight
    for values in (weights.up, weights.down):
        np.maximum(values * change, SMALLEST_WEIGHT, out=values)
    weights.rank_weight[:] = rank_weight
