"""Gradients and Hessians of pair losses: one exponential per document, pairs by vector instructions.

Documents are brought into the order of their scores. With E = e^(σ·(s − best s)), the exponential of a pair's distance
is a quotient of two E, and one division is left per pair.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankwell.kernels.cpu.elementary_functions import exp32, log64
from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel, kernel
from rankwell.kernels.cpu.sorting import sort_keys
from rankwell.kernels.threads import current_threads, run_parts
from rankwell.kernels.trees.cpu.place_weights import (
    COLUMN_WEIGHT,
    EXPONENTIAL,
    GAIN,
    INVERSE,
    ROW_WEIGHT,
    SCORE,
    weigh_places,
)
from rankwell.kernels.trees.cpu.vector_code import FIRST_DISTANCE, LANES, N_ROW_SUMS, PAIR_ROWS, pair_rows, rank_places
from rankwell.kernels.trees.losses import (
    FARTHEST,
    NEAREST,
    PAIRWISE,
    JudgedQueries,
    RankingLoss,
    distance_weights,
)

# Longer queries are sorted; shorter ones are ranked by counting the higher scores of each document.
LONGEST_COUNTED = 4096
_LN_2 = 0.6931471805599453
# Rows of what else is by place, or by document.
_LAMBDA, _HESSIAN, _RAW = range(3)
# Rows of `places`: by document, its place; and while documents are sorted, their order and what is merged.
_PLACE, _ORDER, _MERGED = range(3)
_PADDING = 2 * LANES
_RANGES_PER_THREAD = 4


@inner_kernel
def _sort_places(raw, n_docs, keys, places):
    """places[_PLACE] by descending score, of equal scores the earlier document first; keys : float32, scratch"""
    for i in range(n_docs):
        keys[i] = -raw[i]
    sort_keys(keys[:n_docs], places[_ORDER], places[_MERGED])
    for place in range(n_docs):
        places[_PLACE, places[_ORDER, place]] = place


@inlined_kernel
def _query_gradients(n_docs, scores, gain, discount, by_distance, loss, table, room, places, sums):
    """Fill room[_LAMBDA] and room[_HESSIAN] by place; returns the sum of all λ, without the query's factor."""
    raw = room[_RAW]
    n_padded = (n_docs + LANES - 1) // LANES * LANES
    for i in range(np.uint64(n_docs)):
        raw[i] = scores[i] + np.float32(0.0)  # 0 for −0
    for i in range(n_docs, n_padded):
        raw[i] = -np.inf
    if n_docs <= LONGEST_COUNTED:
        rank_places(raw, n_padded, places[_PLACE])
    else:
        _sort_places(raw, n_docs, room[_LAMBDA], places)
    for i in range(np.uint64(n_docs)):
        k = np.uint64(places[_PLACE, i])
        table[SCORE, k] = raw[i]
        table[GAIN, k] = gain[i]
    best, worst = table[SCORE, 0], table[SCORE, n_docs - 1]
    sigma, lowest = np.float32(loss.sigma), np.float32(-FARTHEST)
    for k in range(np.uint64(n_docs)):
        table[EXPONENTIAL, k] = exp32(max(sigma * (table[SCORE, k] - best), lowest))
    for k in range(n_docs, n_padded + PAIR_ROWS):
        table[SCORE, k] = worst
        table[EXPONENTIAL, k] = 1.0
        table[GAIN, k] = table[ROW_WEIGHT, k] = table[COLUMN_WEIGHT, k] = 0.0
    for k in range(n_padded + PAIR_ROWS):
        table[INVERSE, k] = np.float32(1.0) / table[EXPONENTIAL, k]
        room[_LAMBDA, k] = room[_HESSIAN, k] = 0.0
    weigh_places(loss.kind, n_docs, discount, table)
    by_scores = loss.normalize != 0 and best != worst
    slope, floor = np.float32(1.0 if by_scores else 0.0), np.float32(NEAREST if by_scores else 1.0)
    limit = min(loss.truncation, n_docs - 1)
    total = 0.0
    flat = 1 if loss.kind == PAIRWISE else 0
    for first in range(0, limit, PAIR_ROWS):
        pair_rows(table, by_distance, room[_LAMBDA], room[_HESSIAN], first, limit, n_docs, slope, floor, flat, sums)
    for k in range(limit):
        room[_LAMBDA, k] += sums[0, k]
        room[_HESSIAN, k] += sums[1, k]
        total += np.float64(sums[2, k])
    return total


@kernel
def pair_gradients(first, last, queries, loss, by_distance, scores, gradient, hessian, table, room, places, sums):
    """Gradient and Hessian of the documents of queries first, ..., last − 1.

    scores, gradient, hessian : float32 (n_docs,)
    table, room, places, sums : scratch for the longest query
    """
    for query in range(first, last):
        start, end = queries.query_ptr[query], queries.query_ptr[query + 1]
        if queries.inverse[query] <= 0.0:
            for document in range(start, end):
                gradient[document] = hessian[document] = 0.0
            continue
        total = _query_gradients(
            end - start,
            scores[start:end],
            queries.gain[start:end],
            queries.discount,
            by_distance,
            loss,
            table,
            room,
            places,
            sums,
        )
        factor = queries.inverse[query] * loss.sigma
        total = 2.0 * total * factor
        if loss.normalize != 0 and total > 0.0:
            factor = factor * (log64(1.0 + total) / _LN_2 / total)
        of_gradient, of_hessian = np.float32(factor), np.float32(factor * loss.sigma)
        for document in range(start, end):
            place = np.uint64(places[_PLACE, document - start])
            gradient[document] = room[_LAMBDA, place] * of_gradient
            hessian[document] = room[_HESSIAN, place] * of_hessian
        if len(queries.weight):
            for document in range(start, end):
                gradient[document] *= queries.weight[document]
                hessian[document] *= queries.weight[document]


def room_for(queries: JudgedQueries) -> int:
    """Documents that scratch has room for."""
    return len(queries.discount) + _PADDING


def ranges_of_queries(queries: JudgedQueries, n_threads: int, per_thread: int = _RANGES_PER_THREAD) -> np.ndarray:
    """Where ranges of queries with about as many documents each begin, and the last ends; several for each thread."""
    n_docs, n_queries = len(queries.gain), len(queries.inverse)
    n_parts = 1 if n_threads == 1 else min(per_thread * n_threads, max(1, n_queries))
    cuts = np.searchsorted(queries.query_ptr, np.linspace(0, n_docs, n_parts + 1))
    cuts[0], cuts[-1] = 0, n_queries
    return cuts


def new_scratch(queries: JudgedQueries) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The table, room, places and sums of `pair_gradients`."""
    longest = room_for(queries)
    return (
        np.zeros((INVERSE + 1, longest), np.float32),
        np.zeros((_RAW + 1, longest), np.float32),
        np.zeros((_MERGED + 1, longest), np.int32),
        np.zeros((N_ROW_SUMS, longest), np.float32),
    )


def pair_gradient_source(
    loss: RankingLoss, queries: JudgedQueries
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """A function of scores, float32 (n_docs,), that fills gradient and Hessian, float32 (n_docs,)."""
    by_distance = distance_weights(loss, room_for(queries), FIRST_DISTANCE)
    cuts = ranges_of_queries(queries, current_threads())
    n_parts = len(cuts) - 1
    scratch = [new_scratch(queries) for _ in range(n_parts)]

    def fill(scores: np.ndarray, gradient: np.ndarray, hessian: np.ndarray) -> None:
        def run(part: int) -> None:
            first, last = int(cuts[part]), int(cuts[part + 1])
            pair_gradients(first, last, queries, loss, by_distance, scores, gradient, hessian, *scratch[part])

        run_parts(run, n_parts)

    return fill
