"""The metrics of queries, each written once and compiled only where it is asked for.

Vocabulary. `gains`, `labels` and `stops` are in the order of the model's ranking: those of a query are at the places
from query_ptr[query] to query_ptr[query + 1] − 1, the best one first. `cutoff` 0 is the whole list. `values` is filled,
one number a query. The formulas and their sources are in `rankwell.metrics`, one metric a file.
"""

from __future__ import annotations

import math

from rankwell.kernels.cpu.compilation import kernel


@kernel
def ndcg(query_ptr, gains, ideal_dcg, discounts, cutoff, short_list_is_zero, without_relevant, values):
    """DCG of the first places over the DCG of the best ranking."""
    for query in range(len(query_ptr) - 1):
        start, end = query_ptr[query], query_ptr[query + 1]
        n_docs = end - start
        if n_docs == 0 or ideal_dcg[end - 1] <= 0.0:
            values[query] = without_relevant
            continue
        if cutoff > n_docs and short_list_is_zero:
            values[query] = 0.0
            continue
        limit = n_docs if cutoff == 0 else min(cutoff, n_docs)
        dcg = 0.0
        for place in range(limit):
            dcg += gains[start + place] * discounts[place]
        values[query] = dcg / ideal_dcg[start + limit - 1]


@kernel
def mean_ndcg(query_ptr, gains, ideal_dcg, discounts, without_relevant, values):
    """The mean of NDCG@1, ..., NDCG@n over the query's own n documents (LETOR's MeanNDCG)."""
    for query in range(len(query_ptr) - 1):
        start, end = query_ptr[query], query_ptr[query + 1]
        if start == end or ideal_dcg[end - 1] <= 0.0:
            values[query] = without_relevant
            continue
        dcg, total = 0.0, 0.0
        for place in range(start, end):
            dcg += gains[place] * discounts[place - start]
            total += dcg / ideal_dcg[place]
        values[query] = total / (end - start)


@kernel
def average_precision(
    query_ptr, labels, tie_end, n_relevant, cutoff, relevance_level, cut_by_reachable, without_relevant, values
):
    """The precision at each relevant document's place, summed, over the relevant documents.

    Where ties are averaged, documents with one score count as retrieved together: the precision is the one at the end
    of their run, `tie_end`, which is empty where they are not.
    """
    for query in range(len(query_ptr) - 1):
        start, end = query_ptr[query], query_ptr[query + 1]
        if n_relevant[query] == 0:
            values[query] = without_relevant
            continue
        limit = end - start if cutoff == 0 else min(cutoff, end - start)
        total, n_found, place = 0.0, 0, 0
        while place < limit:
            run_end = min(tie_end[start + place] - start, limit) if len(tie_end) > 0 else place + 1
            n_found_in_run = 0
            while place < run_end:
                n_found_in_run += labels[start + place] >= relevance_level
                place += 1
            n_found += n_found_in_run
            total += n_found_in_run * (n_found / run_end)
        values[query] = total / (min(n_relevant[query], limit) if cut_by_reachable else n_relevant[query])


@kernel
def reciprocal_rank(query_ptr, labels, n_relevant, cutoff, relevance_level, without_relevant, values):
    """1 / the rank of the first relevant document, 0 where none is above the cutoff."""
    for query in range(len(query_ptr) - 1):
        start, end = query_ptr[query], query_ptr[query + 1]
        if n_relevant[query] == 0:
            values[query] = without_relevant
            continue
        values[query] = 0.0
        for place in range(end - start if cutoff == 0 else min(cutoff, end - start)):
            if labels[start + place] >= relevance_level:
                values[query] = 1.0 / (place + 1)
                break


@kernel
def count_relevant(query_ptr, labels, cutoff, relevance_level, counts):
    """How many relevant documents are among the first k, of each query."""
    for query in range(len(query_ptr) - 1):
        start, end = query_ptr[query], query_ptr[query + 1]
        counts[query] = 0
        for place in range(end - start if cutoff == 0 else min(cutoff, end - start)):
            counts[query] += labels[start + place] >= relevance_level


@kernel
def err(query_ptr, stops, ideal_dcg, cutoff, without_relevant, values):
    """Σ_r 1/r · P(the user stops at rank r), each document stopping them with its own probability."""
    for query in range(len(query_ptr) - 1):
        start, end = query_ptr[query], query_ptr[query + 1]
        if start == end or ideal_dcg[end - 1] <= 0.0:
            values[query] = without_relevant
            continue
        total, still_looking = 0.0, 1.0
        for place in range(end - start if cutoff == 0 else min(cutoff, end - start)):
            total += still_looking * stops[start + place] / (place + 1)
            still_looking *= 1.0 - stops[start + place]
        values[query] = total


@kernel
def pairwise_accuracy(n_pairs, counts, values):
    """The share of pairs with different labels that have the right order; NaN without such a pair."""
    for query in range(len(n_pairs)):
        values[query] = counts[query, 0] / n_pairs[query] if n_pairs[query] > 0 else math.nan


@kernel
def kendall_tau(query_ptr, n_pairs, counts, values):
    """Kendall's τ-b of labels and scores; NaN where all labels or all scores are equal."""
    for query in range(len(n_pairs)):
        n_docs = query_ptr[query + 1] - query_ptr[query]
        n_different_scores = n_docs * (n_docs - 1) // 2 - counts[query, 2]
        if n_pairs[query] == 0 or n_different_scores == 0:
            values[query] = math.nan
        else:
            difference = counts[query, 0] - counts[query, 1]
            values[query] = difference / math.sqrt(n_pairs[query]) / math.sqrt(n_different_scores)
