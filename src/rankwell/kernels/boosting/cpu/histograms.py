"""RankBoost on the CPU: the search for the best weak ranker over integral histograms (M3.int), in FAR's layout.

Bins are stored as [group of 16 features][document][16]: a document's π is added to sixteen histograms in a row, so no
addition waits for the one before it, and a group's 16 KB of histograms stay in the first-level cache. All sums are
integers, so they do not depend on the partition of the work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.lean_compilation import kernel

GROUP = 16
# Unsigned, as indices of hot loops are (see `weights`).
_SIDE_BY_SIDE = np.uint64(8)
_BITS = np.uint64(8)
_BYTE = np.uint64(255)
_ONE = np.uint64(1)


class Search(NamedTuple):
    """The bins, and the results of a search.

    bins : uint8 (n_groups, n_docs, 16)
    words : uint64 (n_groups, n_docs, 2), the same memory, the bins of eight features in each
    partial : int32 (n_groups, n_parts, 16, 256), histograms of each part of the documents
    table : int32 (n_features, 256), r of every weak ranker, for bins below n_bins − 1
    largest : int32 (n_features,), each feature's largest |r|
    """

    bins: np.ndarray
    words: np.ndarray
    partial: np.ndarray
    table: np.ndarray
    largest: np.ndarray


def new_search(bins: np.ndarray, n_features: int, n_parts: int) -> Search:
    """A search over this many parts of the documents at the same time."""
    return Search(
        bins,
        bins.view(np.uint64),
        np.zeros((len(bins), n_parts, GROUP, 256), dtype=np.int32),
        np.zeros((n_features, 256), dtype=np.int32),
        np.zeros(n_features, dtype=np.int32),
    )


@kernel
def build_histograms(words, pi, partial, task):
    """Hist_f(b) = Σ_{d: bin_f(d) = b} π(d) for one group of features and part of the documents.

    words : uint64 (n_groups, n_docs, 2), bins; pi : int32 (n_docs,)
    partial : int32 (n_groups, n_parts, 16, 256); task : group · n_parts + part, whose histograms are written
    """
    n_docs, n_parts = len(pi), partial.shape[1]
    group, part = task // n_parts, task % n_parts
    rows, histogram = words[group], partial[group, part]
    for lane in range(GROUP):
        for b in range(256):
            histogram[lane, b] = 0
    for d in range(np.uint64(n_docs * part // n_parts), np.uint64(n_docs * (part + 1) // n_parts)):
        value, low, high = pi[d], rows[d, 0], rows[d, 1]
        for lane in range(GROUP // 2):
            histogram[lane, low & _BYTE] += value
            low >>= _BITS
        for lane in range(GROUP // 2, GROUP):
            histogram[lane, high & _BYTE] += value
            high >>= _BITS


@kernel
def integrate_histograms(partial, n_bins, table, largest, first, last):
    """r(f, b) = Σ_{a > b} Hist_f(a) and the largest |r| of the features first, ..., last − 1. See `Search`."""
    n_parts, last_bin = partial.shape[1], np.uint64(n_bins - 1)
    for feature in range(first, last):
        group, lane = feature // GROUP, feature % GROUP
        total = size = 0
        for step in range(last_bin):
            for part in range(n_parts):
                total += partial[group, part, lane, last_bin - step]
            table[feature, last_bin - step - _ONE] = total
            size = abs(total) if abs(total) > size else size
        largest[feature] = size


@kernel
def choose_weak_ranker(table, largest, n_bins, margin):
    """The lowest feature, then bin, whose |r| is within `margin` of the largest; (−1, −1) if that does not help."""
    best = 0
    for feature in range(len(largest)):
        best = largest[feature] if largest[feature] > best else best
    if best <= margin:
        return -1, -1
    for feature in range(len(largest)):
        if largest[feature] >= best - margin:
            for b in range(n_bins - 1):
                if abs(table[feature, b]) >= best - margin:
                    return feature, b
    return -1, -1


@kernel
def naive_table(bins, pi, n_bins, table, largest, first, last):
    """The results of `integrate_histograms` by the naive M3: every threshold reads every document."""
    for feature in range(first, last):
        rows = bins[feature // GROUP]
        lane = feature % GROUP
        size = 0
        for b in range(n_bins - 1):
            total = 0
            for d in range(np.uint64(len(pi))):
                if rows[d, lane] > b:
                    total += pi[d]
            table[feature, b] = total
            size = abs(total) if abs(total) > size else size
        largest[feature] = size


@kernel
def feature_histogram(rows, lane, pi, start, end, apart, histogram):
    """One feature's histogram from eight partial ones, so that no addition waits for the one before it.

    rows : uint8 (n_docs, 16), of the feature's group; start, end : the documents; apart : int32 (8, 256), scratch
    histogram : int32 (256,), written
    """
    for j in range(_SIDE_BY_SIDE):
        for b in range(256):
            apart[j, b] = 0
    i, n_docs = np.uint64(start), np.uint64(end - start)
    for _ in range(n_docs // _SIDE_BY_SIDE):
        for j in range(_SIDE_BY_SIDE):
            apart[j, rows[i + j, lane]] += pi[i + j]
        i += _SIDE_BY_SIDE
    for j in range(n_docs % _SIDE_BY_SIDE):
        apart[j, rows[i + j, lane]] += pi[i + j]
    for b in range(256):
        total = 0
        for j in range(_SIDE_BY_SIDE):
            total += apart[j, b]
        histogram[b] = total


@kernel
def integrate_few(histograms, features, n_features, n_bins, table, largest):
    """`integrate_histograms` for the first `n_features` of `features`.

    histograms : int32 (most features, n_parts, 256); features : int32 (most features,)
    """
    n_parts, last_bin = histograms.shape[1], np.uint64(n_bins - 1)
    for place in range(n_features):
        feature = features[place]
        total = size = 0
        for step in range(last_bin):
            for part in range(n_parts):
                total += histograms[place, part, last_bin - step]
            table[feature, last_bin - step - _ONE] = total
            size = abs(total) if abs(total) > size else size
        largest[feature] = size
