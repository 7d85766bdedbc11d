"""RankBoost on the CPU: the search for the best weak ranker over integral histograms (M3.int), in FAR's layout.

Bins stand as [group of 16 features][document][16]: a document's π is added to sixteen histograms in a row, so no
addition waits for the one before it, and a group's 16 KB of histograms stay in the first-level cache. All sums are
integers, so the partition of the work cannot change them.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel

GROUP = 16
FEW_FEATURES = 128  # up to so many, one thread is done before others would have been woken
_SIDE_BY_SIDE = 8


@kernel(parallel=True)
def build_histograms(bins, pi, partial):
    """Hist_f(b) = Σ_{d: bin_f(d) = b} π(d), over as many parts of the documents as `partial` has.

    bins : uint8 (n_groups, n_docs, 16); pi : int32 (n_docs,); partial : int32 (n_groups, n_parts, 16, 256), written
    """
    n_parts = partial.shape[1]
    n_docs = len(pi)
    for task in prange(bins.shape[0] * n_parts):
        group, part = task // n_parts, task % n_parts
        rows = bins[group]
        histogram = np.zeros((GROUP, 256), np.int32)
        for d in range(n_docs * part // n_parts, n_docs * (part + 1) // n_parts):
            value = pi[d]
            for lane in range(GROUP):
                histogram[lane, rows[d, lane]] += value
        partial[group, part] = histogram


@kernel
def _integrate_feature(feature, partial, n_bins, table, largest):
    group, lane = feature // GROUP, feature % GROUP
    total = np.int32(0)
    size = np.int32(0)
    for b in range(n_bins - 2, -1, -1):
        for part in range(partial.shape[1]):
            total += partial[group, part, lane, b + 1]
        table[feature, b] = total
        size = max(size, abs(total))
    largest[feature] = size


@kernel(parallel=True)
def _integrate_in_parallel(partial, n_bins, table, largest):
    for feature in prange(len(table)):
        _integrate_feature(feature, partial, n_bins, table, largest)


@kernel
def integrate_histograms(partial, n_bins, table, largest):
    """r(f, b) = Σ_{a > b} Hist_f(a) and each feature's largest |r|.

    table : int32 (n_features, 256), written for b < n_bins − 1; largest : int32 (n_features,), written
    """
    if len(table) > FEW_FEATURES:
        _integrate_in_parallel(partial, n_bins, table, largest)
        return
    for feature in range(len(table)):
        _integrate_feature(feature, partial, n_bins, table, largest)


@kernel
def choose_weak_ranker(table, largest, n_bins, margin):
    """The lowest feature, then bin, whose |r| is within `margin` of the largest; (−1, −1) where that helps nothing."""
    best = largest.max()
    if best <= margin:
        return -1, -1
    for feature in range(len(largest)):
        if largest[feature] >= best - margin:
            for b in range(n_bins - 1):
                if abs(table[feature, b]) >= best - margin:
                    return feature, b
    return -1, -1


@kernel(parallel=True)
def naive_table(bins, pi, n_bins, table, largest):
    """What `integrate_histograms` gives, the way of the naive M3: every threshold looks at every document."""
    for feature in prange(len(table)):
        rows = bins[feature // GROUP]
        lane = feature % GROUP
        size = np.int32(0)
        for b in range(n_bins - 1):
            total = np.int32(0)
            for d in range(len(pi)):
                if rows[d, lane] > b:
                    total += pi[d]
            table[feature, b] = total
            size = max(size, abs(total))
        largest[feature] = size


@kernel
def feature_column(bins, feature):
    """One feature's bins, uint8 (n_docs,), sixteen bytes apart."""
    return bins[feature // GROUP][:, feature % GROUP]


@kernel(parallel=True)
def feature_histograms(bins, pi, features, partial):
    """The histograms of a few features. features : int32 (n,); partial : int32 (n, n_parts, 256), written"""
    n_parts = partial.shape[1]
    for task in prange(len(features) * n_parts):
        place, part = task // n_parts, task % n_parts
        start, end = len(pi) * part // n_parts, len(pi) * (part + 1) // n_parts
        column = feature_column(bins, features[place])
        partial[place, part] = _feature_histogram(column[start:end], pi[start:end])


@kernel
def _feature_histogram(column, pi):
    """One feature's histogram by way of eight, so that no addition waits for the one before it."""
    histogram = np.zeros((_SIDE_BY_SIDE, 256), np.int32)
    whole = len(pi) // _SIDE_BY_SIDE
    for i in range(whole):
        for j in range(_SIDE_BY_SIDE):
            histogram[j, column[_SIDE_BY_SIDE * i + j]] += pi[_SIDE_BY_SIDE * i + j]
    for i in range(_SIDE_BY_SIDE * whole, len(pi)):
        histogram[0, column[i]] += pi[i]
    return histogram.sum(axis=0)


@kernel
def integrate_few(partial, features, n_bins, table, largest):
    """`integrate_histograms` for the features of `feature_histograms`: their rows of `table` and `largest`."""
    for place, feature in enumerate(features):
        total = np.int32(0)
        size = np.int32(0)
        for b in range(n_bins - 2, -1, -1):
            for part in range(partial.shape[1]):
                total += partial[place, part, b + 1]
            table[feature, b] = total
            size = max(size, abs(total))
        largest[feature] = size
