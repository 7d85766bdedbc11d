"""Quantile thresholds of many features: sort each column, count its distinct values, cut them evenly.

Decisions are made with integer arithmetic, so the result is that of `reference.binning` bit for bit. Columns are
taken up to 16 at a time: a row's 16 neighbours share a cache line.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel

GROUP = 16  # features gathered together, at most
_DIGITS = 3
_RADIX_BITS = 11  # three passes sort 32 bits; 2048 counters stay in the first-level cache
_DIGIT = np.uint32((1 << _RADIX_BITS) - 1)
_SIGN = np.uint32(0x80000000)


@kernel
def quantile_thresholds(features, rows, n_value_bins, table, n_thresholds, first, last):
    """Thresholds of the features first, ..., last − 1 from the chosen rows.

    Parameters
    ----------
    features : float32 array (n_docs, n_features), C order
    rows : int64 array (n_rows,)
    n_value_bins : int
    table : float32 array (n_features, >= n_value_bins)
        Filled with the thresholds, -inf first; the rest of the row is not changed.
    n_thresholds : int64 array (n_features,)
        Filled with the number of thresholds of each feature: 0 if every value is missing.
    first, last : int
    """
    width = last - first
    columns = np.empty((width, len(rows)), np.float32)
    keys = columns.view(np.uint32)
    n_present = _gather_present(features, rows, first, columns)
    scratch = np.empty(len(rows), np.uint32)
    counts = np.empty(len(rows), np.int64)
    heavy = np.empty(len(rows), np.bool_)
    digit_counts = np.empty((_DIGITS, 1 << _RADIX_BITS), np.int64)
    for lane in range(width):
        n_values = np.int64(n_present[lane])
        _sort_keys(keys[lane], n_values, scratch, digit_counts)
        n_distinct = _count_distinct(columns[lane], n_values, counts)
        n_thresholds[first + lane] = cut_column(
            columns[lane], counts, n_distinct, n_value_bins, heavy, table[first + lane]
        )


@kernel
def _gather_present(features, rows, first, columns):
    """Copy the values that are not missing, feature by feature; returns how many each feature has.

    Every value is copied, and a missing one is overwritten by the next: without a branch, five times as fast.
    """
    n_present = np.zeros(len(columns), np.uint64)
    for place in range(np.uint64(len(rows))):
        row = np.uint64(rows[place])
        for lane in range(np.uint64(len(n_present))):
            value, end = features[row, np.uint64(first) + lane], n_present[lane]
            # -0.0 + 0.0 is 0.0: the two zeros are one value, but their bits would be sorted apart.
            columns[lane, end] = value + np.float32(0.0)
            n_present[lane] = end + np.uint64(value == value)
    return n_present


def sort_floats(values: np.ndarray) -> None:
    """Sort float32 `values` in place (no NaN), by the sort of the quantiles."""
    room = np.empty(len(values), dtype=np.uint32), np.empty((_DIGITS, 1 << _RADIX_BITS), dtype=np.int64)
    _sort_keys(values.view(np.uint32), len(values), *room)


@kernel
def _sort_keys(keys, n_values, scratch, counts):
    """Sort the bits of float32 numbers (no NaN) as the numbers sort: radix sort, lowest digit first.

    keys : uint32 (n_values or more,); scratch : the same; counts : int64 (3, 2048), scratch
    """
    for place in range(np.uint64(n_values)):
        bits = keys[place]
        keys[place] = ~bits if bits & _SIGN else bits | _SIGN
    _count_digits(keys, n_values, counts)
    source, target = keys, scratch
    for digit in range(_DIGITS):
        shift = np.uint32(digit * _RADIX_BITS)
        # All values have the same digit here, as the low bits of counts and flags: nothing to move.
        if n_values > 0 and counts[digit, (source[0] >> shift) & _DIGIT] < n_values:
            _scatter_by_digit(source, target, n_values, shift, counts[digit])
            source, target = target, source
    for place in range(np.uint64(n_values)):
        bits = source[place]
        keys[place] = bits ^ _SIGN if bits & _SIGN else ~bits


@kernel
def _count_digits(keys, n_values, counts):
    """How often each value of each of the three digits occurs. counts : int64 (3, 2048), written"""
    for digit in range(_DIGITS):
        for value in range(1 << _RADIX_BITS):
            counts[digit, value] = 0
    for place in range(np.uint64(n_values)):
        key = keys[place]
        counts[0, key & _DIGIT] += 1
        counts[1, (key >> np.uint32(_RADIX_BITS)) & _DIGIT] += 1
        counts[2, key >> np.uint32(2 * _RADIX_BITS)] += 1


@kernel
def _scatter_by_digit(source, target, n_values, shift, counts):
    """One stable pass: `source` into `target` by the digit from bit `shift` on. `counts` is overwritten."""
    start = 0
    for digit in range(len(counts)):
        start, counts[digit] = start + counts[digit], start
    for place in range(np.uint64(n_values)):
        key = source[place]
        digit = (key >> shift) & _DIGIT
        target[counts[digit]] = key
        counts[digit] += 1


@kernel
def _count_distinct(ordered, n_values, counts):
    """Move the distinct values of `ordered` to its front, fill `counts`, and return how many there are."""
    n_distinct = 0
    for place in range(n_values):
        value = ordered[place]
        if n_distinct > 0 and ordered[n_distinct - 1] == value:
            counts[n_distinct - 1] += 1
        else:
            ordered[n_distinct] = value
            counts[n_distinct] = 1
            n_distinct += 1
    return n_distinct


@kernel
def cut_column(distinct, counts, n_distinct, n_value_bins, heavy, thresholds):
    """Fill the thresholds of one feature and return their number. heavy : bool (n_distinct or more,), scratch"""
    if n_distinct == 0:
        return 0
    thresholds[0] = -np.inf
    if n_distinct <= n_value_bins:
        for place in range(n_distinct - 1):
            thresholds[place + 1] = _between(distinct[place], distinct[place + 1])
        return n_distinct
    light, light_bins = _find_heavy(counts, n_distinct, n_value_bins, heavy)
    n_thresholds = 1
    in_bin = 0
    for place in range(n_distinct - 1):
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
def _find_heavy(counts, n_distinct, n_value_bins, heavy):
    """Values that fill a bin alone; removing them makes the bins of the rest smaller, so repeat until none is left.

    heavy : bool, written; returns how many values are light, and how many bins are left for them
    """
    light = 0
    for place in range(n_distinct):
        heavy[place] = False
        light += counts[place]
    light_bins = n_value_bins
    n_found = 1
    while n_found > 0:
        n_found = taken = 0
        for place in range(n_distinct):
            if not heavy[place] and counts[place] * light_bins >= light:
                heavy[place] = True
                n_found += 1
                taken += counts[place]
        light -= taken
        light_bins -= n_found
    return light, light_bins


@kernel
def _between(low, high):
    """The float32 nearest to the middle that is still below `high`."""
    middle = np.float32((np.float64(low) + np.float64(high)) / 2.0)
    return middle if middle < high else low
