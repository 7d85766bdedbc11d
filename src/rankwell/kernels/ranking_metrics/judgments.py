"""What metrics need of the labels alone: gains, ideal DCG, label levels and counts, once for many rankings.

2^label − 1 overflows float64 from label 1,024 on, and list-wise data has larger ones. NDCG is a ratio of gains of one
query, so a query with such labels gets its gains multiplied by one power of two, which changes no digit of the ratio.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.ordering import largest_query, query_blocks, rank_by_label

_LN2 = math.log(2.0)
# A query with a label above this gets scaled gains: 2^512 leaves room for sums over any number of documents.
_LARGEST_UNSCALED_EXPONENT = 512.0
_LARGEST_UNSCALED_GAIN = 2.0**960
_LINEAR_SCALE = 2.0**-64


@kernel
def exponential_gain(label, shift):
    """(2^label − 1) / 2^shift for label ≥ 0; exact for whole labels below 53 and shift 0."""
    if shift == 0.0:
        if label < 1.0:
            # Small labels would lose their digits in 2^label − 1.
            return math.expm1(label * _LN2)
        return _power_of_two(label) - 1.0
    return _power_of_two(label - shift) - _power_of_two(-shift)


@kernel
def _power_of_two(exponent):
    if exponent < -1100.0:
        return 0.0
    whole = math.floor(exponent)
    if whole == exponent:
        return math.ldexp(1.0, np.int64(whole))
    return 2.0**exponent


@kernel
def gains_of_query(labels, exponential, gains):
    """The gain of each document, 0 for a negative label, all of them times one power of two where they are huge."""
    highest = 0.0
    for label in labels:
        highest = max(highest, label)
    if exponential:
        shift = math.ceil(highest) if highest > _LARGEST_UNSCALED_EXPONENT else 0.0
        for doc in range(len(labels)):
            gains[doc] = exponential_gain(labels[doc], shift) if labels[doc] > 0.0 else 0.0
    else:
        scale = _LINEAR_SCALE if highest > _LARGEST_UNSCALED_GAIN else 1.0
        for doc in range(len(labels)):
            gains[doc] = labels[doc] * scale if labels[doc] > 0.0 else 0.0


@kernel
def ideal_dcg_of_query(gains, ideal_order, discounts, ideal_dcg):
    """ideal_dcg[r] = the largest DCG that r + 1 documents of the query can have."""
    total = 0.0
    for place in range(len(gains)):
        total += gains[ideal_order[place]] * discounts[place]
        ideal_dcg[place] = total


@kernel
def levels_of_query(labels, ideal_order, levels):
    """Number the query's different labels from the highest, 0, on; the number of pairs with different labels."""
    n_docs = len(labels)
    level, n_tied_before, n_equal_pairs = -1, np.int64(0), np.int64(0)
    for place in range(n_docs):
        doc = ideal_order[place]
        if place == 0 or labels[doc] != labels[ideal_order[place - 1]]:
            level += 1
            n_tied_before = np.int64(0)
        levels[doc] = level
        n_equal_pairs += n_tied_before
        n_tied_before += 1
    return n_docs * (n_docs - 1) // 2 - n_equal_pairs


@kernel
def _prepare_block(judgments, first, last, exponential, relevance_level):
    query_ptr = judgments.query_ptr
    room = largest_query(query_ptr, first, last)
    order, spare = np.empty(room, np.int64), np.empty(room, np.int64)
    for query in range(first, last):
        start, end = query_ptr[query], query_ptr[query + 1]
        labels, gains, ideal_order = judgments.labels[start:end], judgments.gains[start:end], order[: end - start]
        rank_by_label(labels, ideal_order, spare)
        gains_of_query(labels, exponential, gains)
        ideal_dcg_of_query(gains, ideal_order, judgments.discounts, judgments.ideal_dcg[start:end])
        judgments.n_pairs[query] = levels_of_query(labels, ideal_order, judgments.levels[start:end])
        n_relevant = np.int64(0)
        for label in labels:
            n_relevant += label >= relevance_level
        judgments.n_relevant[query] = n_relevant


@kernel(parallel=True)
def prepare_judgments(judgments, exponential, relevance_level):
    """Fill gains, levels, ideal DCG and counts of `judgments` from its labels, every query on its own."""
    n_queries = len(judgments.query_ptr) - 1
    n_blocks = query_blocks(n_queries)
    for block in prange(n_blocks):
        first, last = block * n_queries // n_blocks, (block + 1) * n_queries // n_blocks
        _prepare_block(judgments, first, last, exponential, relevance_level)


@kernel(parallel=True)
def stop_probabilities(labels, highest_grade, stops):
    """stops = (2^label − 1) / 2^highest_grade of each document (ERR's R); 0 for a negative label."""
    n_docs = len(labels)
    for doc in prange(n_docs):
        label = labels[doc]
        if label <= 0.0:
            stops[doc] = 0.0
        elif highest_grade <= _LARGEST_UNSCALED_EXPONENT:
            stops[doc] = exponential_gain(label, 0.0) / 2.0**highest_grade
        else:
            stops[doc] = exponential_gain(label, highest_grade)
