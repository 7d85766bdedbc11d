"""RankBoost on the CPU over a list of pairs: its sums, and the pair-wise weak learners of FAR's Table I.

The searches sum D in fixed point, in units of 2^−52, so their r is exact to far below the units of 2^−30 in which
weak rankers are compared. One call is one feature, or a range of queries or pairs.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.boosting.cpu.histograms import GROUP
from rankwell.kernels.boosting.precision import PI_BITS
from rankwell.kernels.cpu.compilation import kernel

_PAIR_BITS = 52
_EXTRA = _PAIR_BITS - PI_BITS
_SMALLEST_DISTRIBUTION = 1e-300


@kernel
def _rounded(total):
    """A sum in units of 2^−52 as one in units of 2^−30."""
    return (total + (1 << (_EXTRA - 1))) >> _EXTRA


@kernel
def fixed_point(distribution, fixed, first, last):
    """D of the pairs first, ..., last − 1 in units of 2^−52. fixed : int64 (n_pairs,), written"""
    for p in range(np.uint64(first), np.uint64(last)):
        fixed[p] = int(np.rint(distribution[p] * 2.0**_PAIR_BITS))


@kernel
def pairwise_table(bins, lower, higher, fixed, n_bins, table, largest, feature):
    """Naive M2 for one feature: r(f, b) = Σ D(x0, x1)·(h(x1) − h(x0)), every threshold reads every pair."""
    rows, lane = bins[feature // GROUP], feature % GROUP
    size = 0
    for b in range(n_bins - 1):
        total = 0
        for p in range(len(fixed)):
            if rows[higher[p], lane] > b:
                total += fixed[p]
            if rows[lower[p], lane] > b:
                total -= fixed[p]
        r = _rounded(total)
        table[feature, b] = r
        size = abs(r) if abs(r) > size else size
    largest[feature] = size


@kernel
def integral_pair_table(bins, lower, higher, fixed, n_bins, table, largest, feature):
    """M2.2Dint for one feature: D in a 2-D histogram over (bin of x0, bin of x1), then every r from its integral."""
    rows, lane = bins[feature // GROUP], feature % GROUP
    integral = np.zeros((n_bins + 1, n_bins + 1), np.int64)
    for p in range(len(fixed)):
        integral[rows[lower[p], lane] + 1, rows[higher[p], lane] + 1] += fixed[p]
    for i in range(1, n_bins + 1):
        along = 0
        for j in range(1, n_bins + 1):
            along += integral[i, j]
            integral[i, j] = integral[i - 1, j] + along
    size = 0
    for b in range(n_bins - 1):
        both_below = integral[b + 1, b + 1]
        right = integral[b + 1, n_bins] - both_below
        wrong = integral[n_bins, b + 1] - both_below
        r = _rounded(right - wrong)
        table[feature, b] = r
        size = abs(r) if abs(r) > size else size
    largest[feature] = size


@kernel
def pair_potentials(pair_ptr, lower, higher, fixed, exact, pi, first, last):
    """π(d) = Σ_d' (D(d', d) − D(d, d')) in units of 2^−30; those of a query sum to exactly 0.

    For the queries first, ..., last − 1. exact : int64 (n_docs,), scratch; pi : int32 (n_docs,), written for documents
    with pairs
    """
    for q in range(first, last):
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            exact[lower[p]] = 0
            exact[higher[p]] = 0
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            exact[higher[p]] += fixed[p]
            exact[lower[p]] -= fixed[p]
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            pi[lower[p]] = _rounded(exact[lower[p]])
            pi[higher[p]] = _rounded(exact[higher[p]])
        left_over = 0
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            left_over += _once(pi, exact, lower[p]) + _once(pi, exact, higher[p])
        pi[higher[pair_ptr[q + 1] - 1]] -= left_over


@kernel
def _once(pi, exact, d):
    """π of d at the first call, then 0: `exact` is not needed any more and marks the calls."""
    if exact[d] == np.iinfo(np.int64).min:
        return 0
    exact[d] = np.iinfo(np.int64).min
    return pi[d]


@kernel
def update_distribution(
    above_threshold, up_factor, down_factor, pair_ptr, lower, higher, distribution, share, first, last
):
    """D(x0, x1)·exp(α·(h(x0) − h(x1))), not yet normalised, of the queries first, ..., last − 1.

    share : float64 (n_queries,), each query's part of the sum, written
    """
    for q in range(first, last):
        total = 0.0
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            weight = distribution[p]
            if above_threshold[lower[p]]:
                weight *= up_factor
            if above_threshold[higher[p]]:
                weight *= down_factor
            distribution[p] = weight if weight > _SMALLEST_DISTRIBUTION else _SMALLEST_DISTRIBUTION
            total += distribution[p]
        share[q] = total


@kernel
def count_pairs(segment_ptr, query_segments, pair_ptr):
    """Where each query's pairs begin. pair_ptr : int64 (n_queries + 1,), written"""
    for q in range(len(query_segments) - 1):
        below = pairs = 0
        for s in range(query_segments[q], query_segments[q + 1]):
            size = segment_ptr[s + 1] - segment_ptr[s]
            pairs += size * below
            below += size
        pair_ptr[q + 1] = pair_ptr[q] + pairs


@kernel
def write_pairs(
    segment_ptr, query_segments, query_weight, step, carry, document_weight, pair_ptr, lower, higher, weight
):
    """The documents and the initial weight of every pair that label levels give. See `LevelledQueries`, `PairList`."""
    for q in range(len(query_weight)):
        p = pair_ptr[q]
        for low in range(query_segments[q], query_segments[q + 1]):
            apart = 0.0
            for high in range(low + 1, query_segments[q + 1]):
                apart = apart * carry + step[high]
                for i in range(segment_ptr[low], segment_ptr[low + 1]):
                    for j in range(segment_ptr[high], segment_ptr[high + 1]):
                        lower[p], higher[p] = i, j
                        weight[p] = query_weight[q] * apart * document_weight[i] * document_weight[j]
                        p += 1
