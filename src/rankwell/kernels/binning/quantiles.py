"""Quantile thresholds of many features: sort each column, count its distinct values, cut them evenly.

Decisions are made with integer arithmetic, so the result is that of `reference.binning` bit for bit. Columns are
taken 16 at a time: a row's 16 neighbours share a cache line.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel

GROUP = 16  # features gathered together
_RADIX_BITS = 11  # three passes sort 32 bits; 2048 counters stay in the first-level cache
_DIGIT = np.uint32((1 << _RADIX_BITS) - 1)
_SIGN = np.uint32(0x80000000)


@kernel(parallel=True)
def quantile_thresholds(features, rows, n_value_bins, table, n_thresholds):
    """Thresholds of every feature from the rows chosen.

    Parameters
    ----------
    features : float32 array (n_docs, n_features), C order
    rows : int64 array (n_rows,)
    n_value_bins : int
    table : float32 array (n_features, >= n_value_bins)
        Filled with the thresholds, -inf first; the rest of the row is not changed.
    n_thresholds : int64 array (n_features,)
        Filled with the number of thresholds of each feature: 0 if every value is missing.
    """
    n_features = features.shape[1]
    for group in prange((n_features + GROUP - 1) // GROUP):
        first = group * GROUP
        width = min(GROUP, n_features - first)
        columns = np.empty((width, len(rows)), dtype=np.float32)
        n_present = _gather_present(features[:, first : first + width], rows, columns)
        scratch = np.empty(len(rows), dtype=np.uint32)
        counts = np.empty(len(rows), dtype=np.int64)
        for lane in range(width):
            column = columns[lane, : n_present[lane]]
            sort_floats(column, scratch)
            n_distinct = _count_distinct(column, counts)
            n_thresholds[first + lane] = _cut_column(
                column[:n_distinct], counts[:n_distinct], n_value_bins, table[first + lane]
            )


@kernel
def _gather_present(features, rows, columns):
    """Copy the values that are not missing, feature by feature; returns how many each feature has."""
    n_present = np.zeros(features.shape[1], dtype=np.int64)
    for row in rows:
        for lane in range(features.shape[1]):
            value = features[row, lane]
            if value == value:
                # -0.0 + 0.0 is 0.0: the two zeros are one value, but their bits would sort apart.
                columns[lane, n_present[lane]] = value + np.float32(0.0)
                n_present[lane] += 1
    return n_present


@kernel
def sort_floats(values, scratch):
    """Sort float32 `values` in place (no NaN): radix sort, lowest digit first, on bits in the order of the numbers.

    `scratch` is uint32 and at least as long as `values`.
    """
    keys = values.view(np.uint32)
    n_values = len(keys)
    for place in range(n_values):
        bits = keys[place]
        keys[place] = ~bits if bits & _SIGN else bits | _SIGN
    source, target = keys, scratch[:n_values]
    counts = _count_digits(keys)
    for digit in range(len(counts)):
        shift = np.uint32(digit * _RADIX_BITS)
        # Counts and flags have the same low bits throughout: nothing to move.
        if n_values > 0 and counts[digit, (source[0] >> shift) & _DIGIT] < n_values:
            _scatter_by_digit(source, target, shift, counts[digit])
            source, target = target, source
    for place in range(n_values):
        bits = source[place]
        keys[place] = bits ^ _SIGN if bits & _SIGN else ~bits


@kernel
def _count_digits(keys):
    """How often each value of each of the three digits occurs, int64 (3, 2048)."""
    counts = np.zeros((3, 1 << _RADIX_BITS), dtype=np.int64)
    for key in keys:
        counts[0, key & _DIGIT] += 1
        counts[1, (key >> np.uint32(_RADIX_BITS)) & _DIGIT] += 1
        counts[2, key >> np.uint32(2 * _RADIX_BITS)] += 1
    return counts


@kernel
def _scatter_by_digit(source, target, shift, counts):
    """One stable pass: `source` into `target` by the digit from bit `shift` on. `counts` is overwritten."""
    start = 0
    for digit in range(len(counts)):
        start, counts[digit] = start + counts[digit], start
    for key in source:
        digit = (key >> shift) & _DIGIT
        target[counts[digit]] = key
        counts[digit] += 1


@kernel
def _count_distinct(ordered, counts):
    """Bring the distinct values of `ordered` to its front, fill `counts`, and return how many there are."""
    n_distinct = 0
    for place in range(len(ordered)):
        value = ordered[place]
        if n_distinct > 0 and ordered[n_distinct - 1] == value:
            counts[n_distinct - 1] += 1
        else:
            ordered[n_distinct] = value
            counts[n_distinct] = 1
            n_distinct += 1
    return n_distinct


@kernel
def _cut_column(distinct, counts, n_value_bins, thresholds):
    """Fill the thresholds of one feature and return their number."""
    if len(distinct) == 0:
        return 0
    thresholds[0] = -np.inf
    if len(distinct) <= n_value_bins:
        for place in range(len(distinct) - 1):
            thresholds[place + 1] = _between(distinct[place], distinct[place + 1])
        return len(distinct)
    heavy, light, light_bins = _find_heavy(counts, n_value_bins)
    n_thresholds = 1
    in_bin = 0
    for place in range(len(distinct) - 1):
        if n_thresholds == n_value_bins:
            break
        if heavy[place]:
            light -= in_bin
            ends = True
        else:
            in_bin += counts[place]
            times = 2 if heavy[place + 1] else 1
            ends = light_bins > 0 and times * in_bin * light_bins >= light
            if ends:
                light -= in_bin
                light_bins -= 1
        if ends:
            thresholds[n_thresholds] = _between(distinct[place], distinct[place + 1])
            n_thresholds += 1
            in_bin = 0
    return n_thresholds


@kernel
def _find_heavy(counts, n_value_bins):
    """Values that fill a bin alone; removing them makes the bins of the rest smaller, so repeat until none is left."""
    heavy = np.zeros(len(counts), dtype=np.bool_)
    light = counts.sum()
    light_bins = n_value_bins
    searching = True
    while searching:
        searching = False
        n_found, taken = 0, 0
        for place in range(len(counts)):
            if not heavy[place] and counts[place] * light_bins >= light:
                heavy[place] = True
                n_found += 1
                taken += counts[place]
        light -= taken
        light_bins -= n_found
        searching = n_found > 0
    return heavy, light, light_bins


@kernel
def _between(low, high):
    """The float32 nearest to the middle that is still below `high`."""
    middle = np.float32((np.float64(low) + np.float64(high)) / 2.0)
    return middle if middle < high else low
