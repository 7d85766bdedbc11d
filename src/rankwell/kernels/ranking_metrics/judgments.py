"""What metrics need of the labels alone: gains, ideal DCG, label levels and counts, once for many rankings.

2^label − 1 overflows float64 from label 1,024 on, and list-wise data has larger ones. NDCG is a ratio of gains of one
query, so a query with such labels gets its gains multiplied by one power of two, which changes no digit of the ratio.
"""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.cpu.ordering import rank_labels
from rankwell.kernels.ranking_metrics.rules import Judgments, query_ranges
from rankwell.kernels.threads import run_parts

_LN2 = math.log(2.0)
# A query with a label above this gets scaled gains: 2^512 leaves room for sums over any number of documents.
_LARGEST_UNSCALED_EXPONENT = 512.0
_LARGEST_UNSCALED_GAIN = 2.0**960
_LINEAR_SCALE = 2.0**-64
# How many documents are one part of the work, where it is not done query by query.
_PART = 2**16


def prepare_judgments(judgments: Judgments, exponential: bool, relevance_level: float) -> None:
    """Fill gains, ideal DCG, counts and, where there is room for them, levels of `judgments` from its labels."""
    query_ptr = judgments.query_ptr
    ranges = query_ranges(query_ptr)

    def prepare(number: int) -> None:
        first, last = ranges[number]
        start, end = query_ptr[first], query_ptr[last]
        labels, own_ptr = judgments.labels[start:end], query_ptr[first : last + 1] - start
        order = np.empty(end - start, np.int64)
        rank_labels(labels, own_ptr, order)
        gains, n_relevant = judgments.gains[start:end], judgments.n_relevant[first:last]
        find_gains(labels, own_ptr, exponential, relevance_level, gains, n_relevant)
        sum_ideal_dcg(gains, own_ptr, order, judgments.discounts, judgments.ideal_dcg[start:end])
        if len(judgments.levels) > 0:
            number_levels(labels, own_ptr, order, judgments.levels[start:end], judgments.n_pairs[first:last])

    run_parts(prepare, len(ranges))


@kernel
def find_gains(labels, query_ptr, exponential, relevance_level, gains, n_relevant):
    """The gain of each document, and how many are relevant.

    A negative label gains 0; the gains of a query are multiplied by one power of two where they are huge.
    """
    for query in range(len(query_ptr) - 1):
        start, end = query_ptr[query], query_ptr[query + 1]
        highest, n_found = 0.0, 0
        for doc in range(start, end):
            highest = max(highest, labels[doc])
            n_found += labels[doc] >= relevance_level
        n_relevant[query] = n_found
        shift = math.ceil(highest) if highest > _LARGEST_UNSCALED_EXPONENT else 0.0
        scale = _LINEAR_SCALE if highest > _LARGEST_UNSCALED_GAIN else 1.0
        for doc in range(start, end):
            if labels[doc] <= 0.0:
                gains[doc] = 0.0
            elif exponential:
                gains[doc] = exponential_gain(labels[doc], shift)
            else:
                gains[doc] = labels[doc] * scale


@inner_kernel(for_any_constant=True)
def exponential_gain(label, shift):
    """(2^label − 1) / 2^shift for label ≥ 0; exact for whole labels below 53 and shift 0."""
    if shift == 0.0:
        if label < 1.0:
            # Small labels would lose their digits in 2^label − 1.
            return math.expm1(label * _LN2)
        return _power_of_two(label) - 1.0
    return _power_of_two(label - shift) - _power_of_two(-shift)


@inner_kernel
def _power_of_two(exponent):
    if exponent < -1100.0:
        return 0.0
    whole = np.int64(math.floor(exponent))
    if whole != exponent:
        return 2.0**exponent
    # Grades: a shift takes a fraction of the time of the function that any exponent needs.
    return np.float64(1 << whole) if 0 <= whole < 63 else math.ldexp(1.0, whole)


@kernel
def sum_ideal_dcg(gains, query_ptr, order, discounts, ideal_dcg):
    """ideal_dcg at place r of a query = the largest DCG that r + 1 documents of the query can have."""
    for query in range(len(query_ptr) - 1):
        start = query_ptr[query]
        total = 0.0
        for place in range(query_ptr[query + 1] - start):
            total += gains[order[start + place]] * discounts[place]
            ideal_dcg[start + place] = total


@kernel
def number_levels(labels, query_ptr, order, levels, n_pairs):
    """Number each query's different labels from the highest, 0, on, and count its pairs with different labels."""
    for query in range(len(query_ptr) - 1):
        start, end = query_ptr[query], query_ptr[query + 1]
        n_docs = end - start
        n_different = n_docs * (n_docs - 1) // 2
        level, run_start = 0, start
        for place in range(start, end):
            doc = order[place]
            if labels[doc] != labels[order[run_start]]:
                n_different -= (place - run_start) * (place - run_start - 1) // 2
                level += 1
                run_start = place
            levels[doc] = level
        n_pairs[query] = n_different - (end - run_start) * (end - run_start - 1) // 2


def stop_probabilities(labels: np.ndarray, highest_grade: float, stops: np.ndarray) -> None:
    """stops = (2^label − 1) / 2^highest_grade of each document (ERR's R); 0 for a negative label."""
    run_parts(
        lambda part: find_stops(labels, highest_grade, part * _PART, min(len(labels), (part + 1) * _PART), stops),
        -(-len(labels) // _PART),
    )


@kernel
def find_stops(labels, highest_grade, first, last, stops):
    """The probabilities of the documents first, ..., last − 1."""
    is_scaled = highest_grade > _LARGEST_UNSCALED_EXPONENT
    shift, divisor = (highest_grade, 1.0) if is_scaled else (0.0, 2.0**highest_grade)
    for doc in range(first, last):
        stops[doc] = exponential_gain(labels[doc], shift) / divisor if labels[doc] > 0.0 else 0.0
