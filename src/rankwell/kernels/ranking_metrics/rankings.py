"""Ranking metrics over many queries: each is ranked once for all metrics, and queries are mapped to threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.ordering import largest_query, query_blocks, rank_documents
from rankwell.kernels.ranking_metrics.pair_counts import count_pairs_of_query
from rankwell.kernels.ranking_metrics.query_metrics import (
    average_precision_of_query,
    err_of_query,
    kendall_tau_of_query,
    limit_of,
    mean_ndcg_of_query,
    ndcg_of_query,
    pairwise_accuracy_of_query,
    precision_of_query,
    recall_of_query,
    reciprocal_rank_of_query,
)
from rankwell.kernels.ranking_metrics.rules import (
    AVERAGE_PRECISION,
    ERR,
    KENDALL_TAU,
    MEAN_NDCG,
    NDCG,
    PAIRWISE_ACCURACY,
    PRECISION,
    RECALL,
    RECIPROCAL_RANK,
    TIES_AVERAGE,
    TIES_REVERSE_FILE_ORDER,
)


class RankedQuery(NamedTuple):
    """One query in the order of its ranking: arrays with one number a place (n_docs,), and how its pairs came out."""

    labels: np.ndarray
    gains: np.ndarray
    stops: np.ndarray
    tie_end: np.ndarray
    ideal_dcg: np.ndarray
    n_relevant: int
    n_pairs: int
    n_right: int
    n_wrong: int
    n_equal_scores: int


@kernel
def _metric_of_query(kind, cutoff, query, discounts, rules):
    n_docs = len(query.labels)
    if kind == NDCG:
        return ndcg_of_query(query.gains, query.ideal_dcg, discounts, cutoff, rules)
    if kind == MEAN_NDCG:
        return mean_ndcg_of_query(query.gains, query.ideal_dcg, discounts, rules)
    if kind == AVERAGE_PRECISION:
        return average_precision_of_query(query.labels, query.tie_end, query.n_relevant, cutoff, rules)
    if kind == RECIPROCAL_RANK:
        return reciprocal_rank_of_query(query.labels, query.n_relevant, cutoff, rules)
    if kind == PRECISION:
        return precision_of_query(query.labels, query.n_relevant, cutoff, rules)
    if kind == RECALL:
        return recall_of_query(query.labels, query.n_relevant, cutoff, rules)
    if kind == ERR:
        return err_of_query(query.stops, n_docs > 0 and query.ideal_dcg[n_docs - 1] > 0.0, cutoff, rules)
    if kind == PAIRWISE_ACCURACY:
        return pairwise_accuracy_of_query(query.n_right, query.n_pairs)
    if kind == KENDALL_TAU:
        return kendall_tau_of_query(query.n_right, query.n_wrong, query.n_pairs, query.n_equal_scores, n_docs)
    return np.nan


@kernel
def _find_ties(scores, order, tie_end):
    """tie_end[place] = the place behind the last document with the same score."""
    end = len(order)
    for place in range(len(order) - 1, -1, -1):
        if place + 1 < len(order) and scores[order[place]] != scores[order[place + 1]]:
            end = place + 1
        tie_end[place] = end


@kernel
def _average_over_ties(tie_end, ranked_gains):
    """Give documents with one score their mean gain: the expectation over their orders."""
    place = 0
    while place < len(ranked_gains):
        end = tie_end[place]
        mean = ranked_gains[place:end].mean()
        ranked_gains[place:end] = mean
        place = end


@kernel
def _take(values, order, depth, taken):
    for place in range(depth):
        taken[place] = values[order[place]]


class Room(NamedTuple):
    """Room to work, as large as the largest query of a block."""

    order: np.ndarray
    spare: np.ndarray
    tie_end: np.ndarray
    labels: np.ndarray
    gains: np.ndarray
    stops: np.ndarray


@kernel
def _rank_query(judgments, scores, number, kinds, depth, rules, room):
    """Rank one query, once for all metrics."""
    start, end = judgments.query_ptr[number], judgments.query_ptr[number + 1]
    n_docs = end - start
    own_scores, order, own_depth = scores[start:end], room.order[:n_docs], limit_of(depth, n_docs)
    tie_end, gains = room.tie_end[:n_docs], room.gains[:n_docs]
    rank_documents(own_scores, own_depth, rules.ties == TIES_REVERSE_FILE_ORDER, order, room.spare)
    _take(judgments.labels[start:end], order, own_depth, room.labels)
    _take(judgments.gains[start:end], order, own_depth, gains)
    if len(judgments.stops) > 0:
        _take(judgments.stops[start:end], order, own_depth, room.stops)
    if rules.ties == TIES_AVERAGE:
        _find_ties(own_scores, order, tie_end)
        _average_over_ties(tie_end, gains)
    n_right, n_wrong, n_equal_scores = np.int64(0), np.int64(0), np.int64(0)
    if (kinds == PAIRWISE_ACCURACY).any() or (kinds == KENDALL_TAU).any():
        levels = judgments.levels[start:end]
        n_right, n_wrong, n_equal_scores = count_pairs_of_query(levels, own_scores, order, room.spare)
    return RankedQuery(
        room.labels[:n_docs],
        gains,
        room.stops[:n_docs],
        tie_end,
        judgments.ideal_dcg[start:end],
        judgments.n_relevant[number],
        judgments.n_pairs[number],
        n_right,
        n_wrong,
        n_equal_scores,
    )


@kernel
def _evaluate_block(judgments, scores, first, last, kinds, cutoffs, depth, rules, values):
    """Every metric of the queries first, ..., last − 1."""
    largest = largest_query(judgments.query_ptr, first, last)
    room = Room(
        np.empty(largest, np.int64),
        np.empty(largest + 1, np.int64),
        np.empty(largest, np.int64),
        np.empty(largest),
        np.empty(largest),
        np.empty(largest),
    )
    for number in range(first, last):
        query = _rank_query(judgments, scores, number, kinds, depth, rules, room)
        for metric in range(len(kinds)):
            values[metric, number] = _metric_of_query(kinds[metric], cutoffs[metric], query, judgments.discounts, rules)


@kernel(parallel=True)
def evaluate_rankings(judgments, scores, kinds, cutoffs, depth, rules, values):
    """Every metric of every query.

    Parameters
    ----------
    judgments : Judgments
    scores : float array (n_docs,), without NaN
    kinds, cutoffs : int64 arrays (n_metrics,)
        Codes of `rankwell.kernels.ranking_metrics.rules`; cutoff 0 is the whole list.
    depth : int
        The deepest place any of the metrics looks at, 0 for all of them: only so much is ranked.
    rules : MetricRules
    values : float64 array (n_metrics, n_queries), filled
        NaN where the query is left out.
    """
    n_queries = len(judgments.query_ptr) - 1
    n_blocks = query_blocks(n_queries)
    for block in prange(n_blocks):
        first, last = block * n_queries // n_blocks, (block + 1) * n_queries // n_blocks
        _evaluate_block(judgments, scores, first, last, kinds, cutoffs, depth, rules, values)
