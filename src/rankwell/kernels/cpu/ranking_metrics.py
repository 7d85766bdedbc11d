"""Ranking metrics: one worker's task is one query, written once, and mapped over queries in parallel.

Vocabulary. `ranked_gains`, `ranked_labels`, ... stand in the order of the model's ranking, place 0 first; `limit` is
the number of places that a metric looks at. All metrics of a query share one ranking of its documents.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from rankwell.kernels.cpu.ordering import largest_query, query_blocks, rank_documents
from rankwell.kernels.cpu.pair_counts import count_pairs_of_query
from rankwell.kernels.metric_rules import (
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


@njit(cache=True, nogil=True)
def ndcg_of_query(ranked_gains, ideal_dcg, discounts, cutoff, rules):
    """DCG of the first places over the DCG of the best ranking; cutoff 0 is the whole list."""
    n_docs = len(ranked_gains)
    if n_docs == 0 or ideal_dcg[n_docs - 1] <= 0.0:
        return rules.ratio_without_relevant
    if cutoff > n_docs and rules.short_list_is_zero:
        return 0.0
    limit = _limit(cutoff, n_docs)
    dcg = 0.0
    for place in range(limit):
        dcg += ranked_gains[place] * discounts[place]
    return dcg / ideal_dcg[limit - 1]


@njit(cache=True, nogil=True)
def mean_ndcg_of_query(ranked_gains, ideal_dcg, discounts, rules):
    """The mean of NDCG@1, ..., NDCG@n over the query's own n documents (LETOR's MeanNDCG)."""
    n_docs = len(ranked_gains)
    if n_docs == 0 or ideal_dcg[n_docs - 1] <= 0.0:
        return rules.ratio_without_relevant
    dcg, total = 0.0, 0.0
    for place in range(n_docs):
        dcg += ranked_gains[place] * discounts[place]
        total += dcg / ideal_dcg[place]
    return total / n_docs


@njit(cache=True, nogil=True)
def average_precision_of_query(ranked_labels, tie_end, n_relevant, cutoff, rules):
    """The precision at each relevant document's place, summed, over the relevant documents.

    Where ties are averaged, documents with one score count as retrieved together: the precision is the one at the end
    of their run, `tie_end`.
    """
    if n_relevant == 0:
        return rules.ratio_without_relevant
    limit = _limit(cutoff, len(ranked_labels))
    total, n_found, place = 0.0, 0, 0
    while place < limit:
        run_end = min(tie_end[place], limit) if rules.ties == TIES_AVERAGE else place + 1
        n_found_in_run = 0
        for tied in range(place, run_end):
            n_found_in_run += ranked_labels[tied] >= rules.relevance_level
        n_found += n_found_in_run
        total += n_found_in_run * (n_found / run_end)
        place = run_end
    return total / min(n_relevant, limit) if rules.cut_by_reachable else total / n_relevant


@njit(cache=True, nogil=True)
def reciprocal_rank_of_query(ranked_labels, n_relevant, cutoff, rules):
    """1 / the rank of the first relevant document, 0 where none stands above the cutoff."""
    if n_relevant == 0:
        return rules.count_without_relevant
    for place in range(_limit(cutoff, len(ranked_labels))):
        if ranked_labels[place] >= rules.relevance_level:
            return 1.0 / (place + 1)
    return 0.0


@njit(cache=True, nogil=True)
def _count_found(ranked_labels, cutoff, rules):
    n_found = 0
    for place in range(_limit(cutoff, len(ranked_labels))):
        n_found += ranked_labels[place] >= rules.relevance_level
    return n_found


@njit(cache=True, nogil=True)
def precision_of_query(ranked_labels, n_relevant, cutoff, rules):
    """The share of relevant documents among the first k."""
    if n_relevant == 0:
        return rules.count_without_relevant
    places = cutoff if rules.precision_pads else _limit(cutoff, len(ranked_labels))
    return _count_found(ranked_labels, cutoff, rules) / places


@njit(cache=True, nogil=True)
def recall_of_query(ranked_labels, n_relevant, cutoff, rules):
    """The share of the relevant documents that stand among the first k."""
    if n_relevant == 0:
        return rules.ratio_without_relevant
    return _count_found(ranked_labels, cutoff, rules) / n_relevant


@njit(cache=True, nogil=True)
def err_of_query(ranked_stops, has_gain, cutoff, rules):
    """Σ_r 1/r · P(the user stops at rank r), each document stopping them with its own probability."""
    if not has_gain:
        return rules.count_without_relevant
    total, still_looking = 0.0, 1.0
    for place in range(_limit(cutoff, len(ranked_stops))):
        total += still_looking * ranked_stops[place] / (place + 1)
        still_looking *= 1.0 - ranked_stops[place]
    return total


@njit(cache=True, nogil=True)
def pairwise_accuracy_of_query(n_right, n_pairs):
    """The share of pairs with different labels that have the right order; NaN without such a pair."""
    return n_right / n_pairs if n_pairs > 0 else np.nan


@njit(cache=True, nogil=True)
def kendall_tau_of_query(n_right, n_wrong, n_pairs, n_equal_scores, n_docs):
    """Kendall's τ-b of labels and scores; NaN where all labels or all scores are equal."""
    n_different_scores = n_docs * (n_docs - 1) // 2 - n_equal_scores
    if n_pairs == 0 or n_different_scores == 0:
        return np.nan
    return (n_right - n_wrong) / math.sqrt(n_pairs) / math.sqrt(n_different_scores)


@njit(cache=True, nogil=True)
def _limit(cutoff, n_docs):
    return n_docs if cutoff == 0 else min(cutoff, n_docs)


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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _find_ties(scores, order, tie_end):
    """tie_end[place] = the place behind the last document with the same score."""
    end = len(order)
    for place in range(len(order) - 1, -1, -1):
        if place + 1 < len(order) and scores[order[place]] != scores[order[place + 1]]:
            end = place + 1
        tie_end[place] = end


@njit(cache=True, nogil=True)
def _average_over_ties(tie_end, ranked_gains):
    """Give documents with one score their mean gain: the expectation over their orders."""
    place = 0
    while place < len(ranked_gains):
        end = tie_end[place]
        mean = ranked_gains[place:end].mean()
        ranked_gains[place:end] = mean
        place = end


@njit(cache=True, nogil=True)
def _take(values, order, depth, taken):
    for place in range(depth):
        taken[place] = values[order[place]]


@njit(cache=True, nogil=True)
def _evaluate_block(judgments, scores, first, last, kinds, cutoffs, depth, rules, values):
    """Rank the queries first, ..., last − 1, each once, and evaluate every metric on them."""
    query_ptr = judgments.query_ptr
    room = largest_query(query_ptr, first, last)
    order, spare, tie_end = np.empty(room, np.int64), np.empty(room + 1, np.int64), np.empty(room, np.int64)
    labels, gains, stops = np.empty(room), np.empty(room), np.empty(room)
    needs_stops, needs_pairs = False, False
    for kind in kinds:
        needs_stops |= kind == ERR
        needs_pairs |= kind in (PAIRWISE_ACCURACY, KENDALL_TAU)
    for number in range(first, last):
        start, end = query_ptr[number], query_ptr[number + 1]
        n_docs = end - start
        own_scores, own_order, own_depth = scores[start:end], order[:n_docs], _limit(depth, n_docs)
        rank_documents(own_scores, own_depth, rules.ties == TIES_REVERSE_FILE_ORDER, own_order, spare)
        _take(judgments.labels[start:end], own_order, own_depth, labels)
        _take(judgments.gains[start:end], own_order, own_depth, gains)
        if needs_stops:
            _take(judgments.stops[start:end], own_order, own_depth, stops)
        if rules.ties == TIES_AVERAGE:
            _find_ties(own_scores, own_order, tie_end[:n_docs])
            _average_over_ties(tie_end[:n_docs], gains[:n_docs])
        n_right, n_wrong, n_equal = np.int64(0), np.int64(0), np.int64(0)
        if needs_pairs:
            n_right, n_wrong, n_equal = count_pairs_of_query(judgments.levels[start:end], own_scores, own_order, spare)
        query = RankedQuery(
            labels[:n_docs],
            gains[:n_docs],
            stops[:n_docs],
            tie_end[:n_docs],
            judgments.ideal_dcg[start:end],
            judgments.n_relevant[number],
            judgments.n_pairs[number],
            n_right,
            n_wrong,
            n_equal,
        )
        for metric in range(len(kinds)):
            values[metric, number] = _metric_of_query(kinds[metric], cutoffs[metric], query, judgments.discounts, rules)


@njit(cache=True, nogil=True, parallel=True)
def evaluate_rankings(judgments, scores, kinds, cutoffs, depth, rules, values):
    """Every metric of every query.

    Parameters
    ----------
    judgments : Judgments
    scores : float array (n_docs,), without NaN
    kinds, cutoffs : int64 arrays (n_metrics,)
        Codes of `rankwell.kernels.metric_rules`; cutoff 0 is the whole list.
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
