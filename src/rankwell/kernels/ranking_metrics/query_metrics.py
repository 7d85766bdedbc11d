"""The metrics of one query, each written once, for whoever maps them over queries.

Vocabulary. `ranked_gains`, `ranked_labels`, ... stand in the order of the model's ranking, place 0 first; `cutoff` 0 is
the whole list. The formulas and their sources are in `rankwell.metrics`, one metric a file.
"""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.ranking_metrics.rules import TIES_AVERAGE


@kernel
def ndcg_of_query(ranked_gains, ideal_dcg, discounts, cutoff, rules):
    """DCG of the first places over the DCG of the best ranking; cutoff 0 is the whole list."""
    n_docs = len(ranked_gains)
    if n_docs == 0 or ideal_dcg[n_docs - 1] <= 0.0:
        return rules.ratio_without_relevant
    if cutoff > n_docs and rules.short_list_is_zero:
        return 0.0
    limit = limit_of(cutoff, n_docs)
    dcg = 0.0
    for place in range(limit):
        dcg += ranked_gains[place] * discounts[place]
    return dcg / ideal_dcg[limit - 1]


@kernel
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


@kernel
def average_precision_of_query(ranked_labels, tie_end, n_relevant, cutoff, rules):
    """The precision at each relevant document's place, summed, over the relevant documents.

    Where ties are averaged, documents with one score count as retrieved together: the precision is the one at the end
    of their run, `tie_end`.
    """
    if n_relevant == 0:
        return rules.ratio_without_relevant
    limit = limit_of(cutoff, len(ranked_labels))
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


@kernel
def reciprocal_rank_of_query(ranked_labels, n_relevant, cutoff, rules):
    """1 / the rank of the first relevant document, 0 where none stands above the cutoff."""
    if n_relevant == 0:
        return rules.count_without_relevant
    for place in range(limit_of(cutoff, len(ranked_labels))):
        if ranked_labels[place] >= rules.relevance_level:
            return 1.0 / (place + 1)
    return 0.0


@kernel
def _count_found(ranked_labels, cutoff, rules):
    n_found = 0
    for place in range(limit_of(cutoff, len(ranked_labels))):
        n_found += ranked_labels[place] >= rules.relevance_level
    return n_found


@kernel
def precision_of_query(ranked_labels, n_relevant, cutoff, rules):
    """The share of relevant documents among the first k."""
    if n_relevant == 0:
        return rules.count_without_relevant
    places = cutoff if rules.precision_pads else limit_of(cutoff, len(ranked_labels))
    return _count_found(ranked_labels, cutoff, rules) / places


@kernel
def recall_of_query(ranked_labels, n_relevant, cutoff, rules):
    """The share of the relevant documents that stand among the first k."""
    if n_relevant == 0:
        return rules.ratio_without_relevant
    return _count_found(ranked_labels, cutoff, rules) / n_relevant


@kernel
def err_of_query(ranked_stops, has_gain, cutoff, rules):
    """Σ_r 1/r · P(the user stops at rank r), each document stopping them with its own probability."""
    if not has_gain:
        return rules.count_without_relevant
    total, still_looking = 0.0, 1.0
    for place in range(limit_of(cutoff, len(ranked_stops))):
        total += still_looking * ranked_stops[place] / (place + 1)
        still_looking *= 1.0 - ranked_stops[place]
    return total


@kernel
def pairwise_accuracy_of_query(n_right, n_pairs):
    """The share of pairs with different labels that have the right order; NaN without such a pair."""
    return n_right / n_pairs if n_pairs > 0 else np.nan


@kernel
def kendall_tau_of_query(n_right, n_wrong, n_pairs, n_equal_scores, n_docs):
    """Kendall's τ-b of labels and scores; NaN where all labels or all scores are equal."""
    n_different_scores = n_docs * (n_docs - 1) // 2 - n_equal_scores
    if n_pairs == 0 or n_different_scores == 0:
        return np.nan
    return (n_right - n_wrong) / math.sqrt(n_pairs) / math.sqrt(n_different_scores)


@kernel
def limit_of(cutoff, n_docs):
    return n_docs if cutoff == 0 else min(cutoff, n_docs)
