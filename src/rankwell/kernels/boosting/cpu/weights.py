"""RankBoost on the CPU: pair weights in factorised form.

For a document of label level L in a query with weight w (DESIGN: "RankBoost in O(documents) a round")

    π(d) = w·[ e^{−H(d)}·Σ_{l<L} A_l − e^{H(d)}·Σ_{l>L} B_l ] / Z,      A_l = Σ e^H,  B_l = Σ e^{−H} over level l.

A_l and B_l carry a power of two each (see `boosting.precision`), so the running sums over levels are multiplied by a
factor between neighbouring levels as they go. The order of every float64 sum is fixed, and the same on every device.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from rankwell.kernels.boosting.precision import LARGEST_EXPONENT, PI_BITS, QUERY_LANES, SMALLEST_WEIGHT
from rankwell.kernels.cpu.compilation import kernel

TASKS = 64  # that queries are shared out to


@kernel
def lane_sums(up, down, start, end, lanes):
    """Σ up[start:end] and Σ down[start:end], each in eight lanes; lane j takes places j, j + 8, ...

    lanes : float64 (16,), scratch
    """
    lanes[:] = 0.0
    for i in range(start, end):
        lane = (i - start) % 8
        lanes[lane] += up[i]
        lanes[lane + 8] += down[i]
    return _sum_eight(lanes[:8]), _sum_eight(lanes[8:])


@kernel
def _sum_eight(lanes):
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))


@kernel
def query_sum(values, lanes):
    """Σ values in 1,024 lanes, then halves onto halves. lanes : float64 (1024,), scratch"""
    lanes[:] = 0.0
    for first in range(0, len(values), QUERY_LANES):
        for lane in range(min(QUERY_LANES, len(values) - first)):
            lanes[lane] += values[first + lane]
    half = QUERY_LANES // 2
    while half > 0:
        for lane in range(half):
            lanes[lane] += lanes[lane + half]
        half //= 2
    return lanes[0]


@kernel
def scan_levels(first, last, levels, carry, sums):
    """One query's Σ_{l<L} A_l and Σ_{l>L} B_l for each of its segments [first, last); returns its share of Z.

    levels : (step, up_ratio, down_ratio, bridge), float64 (n_segments,) each, from a segment to the one below it
    sums : (up_sum, down_sum, below, above), float64 (n_segments,) each; the last two are written
    """
    step, up_ratio, down_ratio, bridge = levels
    up_sum, down_sum, below, above = sums
    plain = weighted = share = 0.0
    below[first] = 0.0
    for s in range(first + 1, last):
        plain = plain * down_ratio[s] + up_sum[s - 1] * bridge[s]
        weighted = weighted * (down_ratio[s] * carry) + step[s] * plain
        below[s] = weighted
        share += down_sum[s] * weighted
    plain = weighted = 0.0
    above[last - 1] = 0.0
    for s in range(last - 1, first, -1):
        plain = plain * up_ratio[s] + down_sum[s] * bridge[s]
        weighted = weighted * (up_ratio[s] * carry) + step[s] * plain
        above[s - 1] = weighted
    return share


@kernel(parallel=True)
def apply_round(above_threshold, up_factor, down_factor, up, down):
    """e^{±H} where h = 1 times e^{±α}. above_threshold : bool (n_docs,)"""
    for i in prange(len(above_threshold)):
        if above_threshold[i]:
            up[i] = max(up[i] * up_factor, SMALLEST_WEIGHT)
            down[i] = max(down[i] * down_factor, SMALLEST_WEIGHT)


@kernel
def _rescale(values, start, end):
    """Scale values[start:end] by a power of two so that the largest is in [0.5, 1); returns the power taken out."""
    largest = 0.0
    for i in range(start, end):
        largest = max(largest, values[i])
    exponent = math.frexp(largest)[1]
    scale = math.ldexp(1.0, -exponent)
    for i in range(start, end):
        values[i] = max(values[i] * scale, SMALLEST_WEIGHT)
    return exponent


@kernel(parallel=True)
def choose_exponents(segment_ptr, up, down, up_exponent, down_exponent):
    """Bring the largest weight of each segment into [0.5, 1)."""
    for s in prange(len(segment_ptr) - 1):
        up_exponent[s] += _rescale(up, segment_ptr[s], segment_ptr[s + 1])
        down_exponent[s] -= _rescale(down, segment_ptr[s], segment_ptr[s + 1])


@kernel
def level_ratios(query_segments, query_weight, up_exponent, down_exponent, ratios):
    """The factors between neighbouring levels; returns the power of two that all pair weights were divided by.

    ratios : (up_ratio, down_ratio, bridge), float64 (n_segments,) each, written
    """
    up_ratio, down_ratio, bridge = ratios
    common = -(2**31)
    for q in range(len(query_weight)):
        largest = up_exponent[query_segments[q]]
        for s in range(query_segments[q] + 1, query_segments[q + 1]):
            common = max(common, largest - down_exponent[s])
            largest = max(largest, up_exponent[s])
    for q in range(len(query_weight)):
        for s in range(query_segments[q] + 1, query_segments[q + 1]):
            up_ratio[s] = math.ldexp(1.0, min(up_exponent[s - 1] - up_exponent[s], LARGEST_EXPONENT))
            down_ratio[s] = math.ldexp(1.0, min(down_exponent[s - 1] - down_exponent[s], LARGEST_EXPONENT))
            bridge[s] = math.ldexp(query_weight[q], up_exponent[s - 1] - down_exponent[s] - common)
    return common


@kernel
def _sum_queries(first, last, places, weights, levels, carry, sums, share):
    """A_l and B_l of some queries' segments, their running sums, and these queries' shares of Z."""
    segment_ptr, query_segments = places
    lanes = np.empty(16)
    for s in range(query_segments[first], query_segments[last]):
        sums[0][s], sums[1][s] = lane_sums(weights[0], weights[1], segment_ptr[s], segment_ptr[s + 1], lanes)
    for q in range(first, last):
        share[q] = scan_levels(query_segments[q], query_segments[q + 1], levels, carry, sums)


@kernel(parallel=True)
def sum_levels(places, weights, levels, carry, sums, share):
    """A_l and B_l of every segment, their running sums, and each query's share of Z.

    places : (segment_ptr, query_segments)
    """
    for task in prange(TASKS):
        first, last = len(share) * task // TASKS, len(share) * (task + 1) // TASKS
        _sum_queries(first, last, places, weights, levels, carry, sums, share)


@kernel(parallel=True)
def reweight(weak_ranker, factors, places, weights, levels, carry, sums, share):
    """e^{±H} where bin > threshold times e^{±α}, then the sums of `sum_levels`.

    weak_ranker : (column uint8 (n_docs, 16) of one feature group, lane, threshold)
    """
    column, lane, threshold = weak_ranker
    for task in prange(TASKS):
        first, last = len(share) * task // TASKS, len(share) * (task + 1) // TASKS
        start, end = places[0][places[1][first]], places[0][places[1][last]]
        _multiply(column[start:end, lane], threshold, factors, weights[0][start:end], weights[1][start:end])
        _sum_queries(first, last, places, weights, levels, carry, sums, share)


@kernel
def _multiply(bins, threshold, factors, up, down):
    """Some documents' new weights, without a branch on what nobody could foretell."""
    up_factor, down_factor = factors
    above = np.empty(len(bins), np.bool_)
    for i in range(len(bins)):
        above[i] = bins[i] > threshold
    for i in range(len(bins)):
        up[i] = max(up[i] * up_factor, SMALLEST_WEIGHT) if above[i] else up[i]
        down[i] = max(down[i] * down_factor, SMALLEST_WEIGHT) if above[i] else down[i]


@kernel
def query_potentials(first, last, places, weights, sums, total, values):
    """π of some queries' documents in units of 2^−30; those of a query sum to exactly 0. values : int32, written"""
    segment_ptr, query_segments = places
    up, down = weights
    below, above = sums[2], sums[3]
    scale = 2.0**PI_BITS / total
    begin = segment_ptr[query_segments[first]]
    for q in range(first, last):
        for s in range(query_segments[q], query_segments[q + 1]):
            for i in range(segment_ptr[s], segment_ptr[s + 1]):
                values[i - begin] = np.int32(np.rint((down[i] * below[s] - up[i] * above[s]) * scale))
        start, end = segment_ptr[query_segments[q]] - begin, segment_ptr[query_segments[q + 1]] - begin
        values[end - 1] -= values[start:end].sum()


@kernel(parallel=True)
def potentials(places, weights, sums, total, pi):
    """π of every document in units of 2^−30; those of a query sum to exactly 0. pi : int32 (n_docs,), written"""
    n_queries = len(places[1]) - 1
    for task in prange(TASKS):
        first, last = n_queries * task // TASKS, n_queries * (task + 1) // TASKS
        query_potentials(first, last, places, weights, sums, total, pi[places[0][places[1][first]] :])
