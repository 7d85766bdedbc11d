"""RankBoost on the CPU: pair weights in factorised form.

For a document of label level L in a query with weight w (RankBoost in O(documents) per round)

    π(d) = w·[ e^{−H(d)}·Σ_{l<L} A_l − e^{H(d)}·Σ_{l>L} B_l ] / Z,      A_l = Σ e^H,  B_l = Σ e^{−H} over level l.

A_l and B_l have a power of two each (see `boosting.precision`), so the running sums over levels are multiplied by a
factor between neighbouring levels. The order of every float64 sum is fixed, and the same on every device.

Kernels work on a range of queries or segments, so that threads can divide them; the ranges do not change any sum. Loops
over documents use unsigned indices: a signed index could count from the end, and that case would prevent vectorisation
(measured: up to eight times as slow).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwell.kernels.boosting.precision import LARGEST_EXPONENT, PI_BITS, QUERY_LANES, SMALLEST_WEIGHT
from rankwell.kernels.cpu.lean_compilation import inner_kernel, kernel

# A sum of an unsigned and a signed number would be a float64.
_0, _1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(number) for number in range(9))

NO_PAIRS = -(2**31)  # the power of two that pair weights are divided by, if there are none


class Documents(NamedTuple):
    """Documents, their weights, and the sums over label levels that belong to these.

    Input (see `LevelledQueries`): segment_ptr, query_segments, query_weight, step
    Weights (see `ScoreWeights`): up, down, up_exponent, down_exponent
    From a segment to the one below it, float64 (n_segments,): up_ratio, down_ratio, bridge
    Sums, float64 (n_segments,): up_sum (A_l), down_sum (B_l), below (Σ_{l<L} A_l), above (Σ_{l>L} B_l)
    share : float64 (n_queries,), each query's part of Z
    pi : int32 (n_docs,), in units of 2^−30
    lanes : float64 (1024,), scratch of `query_sum`
    marked : bool (n_docs,), where h = 1
    """

    segment_ptr: np.ndarray
    query_segments: np.ndarray
    query_weight: np.ndarray
    step: np.ndarray
    up: np.ndarray
    down: np.ndarray
    up_exponent: np.ndarray
    down_exponent: np.ndarray
    up_ratio: np.ndarray
    down_ratio: np.ndarray
    bridge: np.ndarray
    up_sum: np.ndarray
    down_sum: np.ndarray
    below: np.ndarray
    above: np.ndarray
    share: np.ndarray
    pi: np.ndarray
    lanes: np.ndarray
    marked: np.ndarray


@inner_kernel
def _lane_sum(values, start, end):
    """Σ values[start:end] in eight lanes; lane j takes places j, j + 8, ..."""
    lane_0 = lane_1 = lane_2 = lane_3 = lane_4 = lane_5 = lane_6 = lane_7 = 0.0
    i, n_values = np.uint64(start), np.uint64(end - start)
    for _ in range(n_values // _8):
        lane_0 += values[i]
        lane_1 += values[i + _1]
        lane_2 += values[i + _2]
        lane_3 += values[i + _3]
        lane_4 += values[i + _4]
        lane_5 += values[i + _5]
        lane_6 += values[i + _6]
        lane_7 += values[i + _7]
        i += _8
    left = n_values % _8
    if left > _0:
        lane_0 += values[i]
    if left > _1:
        lane_1 += values[i + _1]
    if left > _2:
        lane_2 += values[i + _2]
    if left > _3:
        lane_3 += values[i + _3]
    if left > _4:
        lane_4 += values[i + _4]
    if left > _5:
        lane_5 += values[i + _5]
    if left > _6:
        lane_6 += values[i + _6]
    return ((lane_0 + lane_4) + (lane_2 + lane_6)) + ((lane_1 + lane_5) + (lane_3 + lane_7))


@kernel
def query_sum(values, lanes):
    """Σ values, 0 or more each, in 1,024 lanes, which are then added by halves. lanes : float64 (1024,), scratch"""
    for lane in range(QUERY_LANES):
        lanes[lane] = 0.0
    add_to_lanes(values, 0, lanes)
    return sum_of_lanes(lanes, len(values))


@kernel
def add_to_lanes(values, number, lanes):
    """Add the queries number, number + 1, ... to their lanes, in this order."""
    lane = number % QUERY_LANES
    for i in range(len(values)):
        lanes[lane] += values[i]
        lane = lane + 1 if lane + 1 < QUERY_LANES else 0


@kernel
def sum_of_lanes(lanes, n_values):
    """Σ over lanes that `n_values` queries were added to; `lanes` is overwritten."""
    half = QUERY_LANES // 2
    while half >= n_values and half > 0:  # these lanes are 0
        half //= 2
    while half > 0:
        for lane in range(half):
            lanes[lane] += lanes[lane + half]
        half //= 2
    return lanes[0]


@kernel
def sum_levels(documents, carry, first, last):
    """A_l, B_l and their running sums for the queries first, ..., last − 1, and these queries' shares of Z."""
    segment_ptr, query_segments, step = documents.segment_ptr, documents.query_segments, documents.step
    up_ratio, down_ratio, bridge = documents.up_ratio, documents.down_ratio, documents.bridge
    up_sum, down_sum, below, above = documents.up_sum, documents.down_sum, documents.below, documents.above
    for s in range(query_segments[first], query_segments[last]):
        up_sum[s] = _lane_sum(documents.up, segment_ptr[s], segment_ptr[s + 1])
        down_sum[s] = _lane_sum(documents.down, segment_ptr[s], segment_ptr[s + 1])
    for q in range(first, last):
        lowest, highest = query_segments[q], query_segments[q + 1] - 1
        plain = weighted = share = 0.0
        below[lowest] = 0.0
        for s in range(lowest + 1, highest + 1):
            plain = plain * down_ratio[s] + up_sum[s - 1] * bridge[s]
            weighted = weighted * (down_ratio[s] * carry) + step[s] * plain
            below[s] = weighted
            share += down_sum[s] * weighted
        documents.share[q] = share
        plain = weighted = 0.0
        above[highest] = 0.0
        for s in range(highest, lowest, -1):
            plain = plain * up_ratio[s] + down_sum[s] * bridge[s]
            weighted = weighted * (up_ratio[s] * carry) + step[s] * plain
            above[s - 1] = weighted


@kernel
def multiply_weights(marked, up_factor, down_factor, up, down, start, end):
    """e^{±H} of the documents start, ..., end − 1 where h = 1 times e^{±α}: without a branch, so that it is vectorised.

    marked : bool (n_docs,), where h = 1
    """
    for i in range(np.uint64(start), np.uint64(end)):
        up_weight, down_weight = up[i] * up_factor, down[i] * down_factor
        up_weight = up_weight if up_weight > SMALLEST_WEIGHT else SMALLEST_WEIGHT
        down_weight = down_weight if down_weight > SMALLEST_WEIGHT else SMALLEST_WEIGHT
        up[i] = up_weight if marked[i] else up[i]
        down[i] = down_weight if marked[i] else down[i]


@kernel
def mark_documents(rows, lane, threshold, marked, start, end):
    """Mark where h = 1 among the documents start, ..., end − 1. rows : uint8 (n_docs, 16), bins of a feature group"""
    for i in range(np.uint64(start), np.uint64(end)):
        marked[i] = rows[i, lane] > threshold


@inner_kernel
def _rescale(values, start, end):
    """Scale values[start:end] by a power of two so that the largest is in [0.5, 1); returns the power taken out."""
    largest = 0.0
    for i in range(np.uint64(start), np.uint64(end)):
        largest = values[i] if values[i] > largest else largest
    exponent = math.frexp(largest)[1]
    scale = math.ldexp(1.0, -exponent)
    for i in range(np.uint64(start), np.uint64(end)):
        value = values[i] * scale
        values[i] = value if value > SMALLEST_WEIGHT else SMALLEST_WEIGHT
    return exponent


@kernel
def choose_exponents(segment_ptr, up, down, up_exponent, down_exponent, first, last):
    """Bring the largest weight of each of the segments first, ..., last − 1 into [0.5, 1)."""
    for s in range(first, last):
        up_exponent[s] += _rescale(up, segment_ptr[s], segment_ptr[s + 1])
        down_exponent[s] -= _rescale(down, segment_ptr[s], segment_ptr[s + 1])


@kernel
def level_ratios(query_segments, query_weight, up_exponent, down_exponent, up_ratio, down_ratio, bridge):
    """The factors between neighbouring levels; returns the power of two that all pair weights were divided by.

    up_ratio, down_ratio, bridge : float64 (n_segments,), written
    """
    common = NO_PAIRS
    for q in range(len(query_weight)):
        largest = np.int64(up_exponent[query_segments[q]])
        for s in range(query_segments[q] + 1, query_segments[q + 1]):
            product = largest - down_exponent[s]
            common = product if product > common else common
            largest = up_exponent[s] if up_exponent[s] > largest else largest
    for q in range(len(query_weight)):
        for s in range(query_segments[q] + 1, query_segments[q + 1]):
            up_ratio[s] = _limited_power(up_exponent[s - 1] - up_exponent[s])
            down_ratio[s] = _limited_power(down_exponent[s - 1] - down_exponent[s])
            bridge[s] = math.ldexp(query_weight[q], up_exponent[s - 1] - down_exponent[s] - common)
    return common


@inner_kernel
def _limited_power(exponent):
    return math.ldexp(1.0, exponent if exponent < LARGEST_EXPONENT else LARGEST_EXPONENT)


@kernel
def query_potentials(documents, total, first, last, values):
    """π of the documents of queries first, ..., last − 1 in units of 2^−30; those of a query sum to exactly 0.

    total : Z; values : int32 or int64 (n_docs,), written
    """
    segment_ptr, query_segments = documents.segment_ptr, documents.query_segments
    up, down, below, above = documents.up, documents.down, documents.below, documents.above
    scale = 2.0**PI_BITS / total
    for q in range(first, last):
        for s in range(query_segments[q], query_segments[q + 1]):
            lower, higher = below[s], above[s]
            for i in range(np.uint64(segment_ptr[s]), np.uint64(segment_ptr[s + 1])):
                values[i] = np.int32(np.rint((down[i] * lower - up[i] * higher) * scale))
        start, end = segment_ptr[query_segments[q]], segment_ptr[query_segments[q + 1]]
        left_over = 0
        for i in range(np.uint64(start), np.uint64(end)):
            left_over += values[i]
        values[end - 1] -= left_over
