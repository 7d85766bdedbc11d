"""The best k of scored documents that come in ascending document order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel

LEAST_ROOM = 64
# After a window of documents, already where there are k + k / TIDY: a higher threshold spares more than it costs.
TIDY = 4


class BestArrays(NamedTuple):
    """Documents that may be among the best k, in ascending order among equal scores.

    scores : float64; docs : int64; room : float64, scratch; all `capacity_of(k)` long
    """

    scores: np.ndarray
    docs: np.ndarray
    room: np.ndarray
    k: int


@kernel
def capacity_of(k):
    """How many documents are collected before all but the best k are dropped."""
    return k + max(k, LEAST_ROOM)


@kernel
def open_best(k):
    """Room for the best k documents, none yet."""
    capacity = capacity_of(k)
    return BestArrays(np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity), k)


@kernel
def offer(best, documents, totals, n, doc_base, size, threshold):
    """Take in the n documents whose totals beat the threshold; returns the new size and threshold.

    documents : int32, ascending; totals : float64
    """
    k, capacity = best.k, len(best.scores)
    for i in range(n):
        if totals[i] > threshold:
            best.scores[size], best.docs[size] = totals[i], doc_base + documents[i]
            size += 1
            if size == capacity:
                threshold, size = _keep_best(best, size, k), k
    if size > k + k // TIDY:
        threshold, size = _keep_best(best, size, k), k
    return size, threshold


@kernel
def finish(best, size, threshold):
    """Drop all but the best k; returns the size and the score of the k-th where there are as many."""
    k = best.k
    if size >= k:
        threshold, size = _keep_best(best, size, k), k
    return size, threshold


@kernel
def count_above(best, size, score):
    """How many documents have a higher score."""
    above = 0
    for i in range(size):
        above += best.scores[i] > score
    return above


@kernel
def _keep_best(best, size, k):
    """Drop all but the best k of the first `size` documents, the order stays; returns the score of the k-th.

    Of equal scores the earlier ones stay: documents come in ascending order, so ties go by it.
    """
    scores, docs = best.scores, best.docs
    best.room[:size] = scores[:size]
    threshold = _kth_largest(best.room[:size], k)
    better = count_above(best, size, threshold)
    equal_left, kept = k - better, 0
    for i in range(size):
        if scores[i] > threshold or (scores[i] == threshold and equal_left > 0):
            equal_left -= scores[i] == threshold
            scores[kept], docs[kept] = scores[i], docs[i]
            kept += 1
    return threshold


@kernel
def _kth_largest(values, k):
    """The k-th largest (from 1) of `values`, which is reordered: Hoare's selection."""
    low, high, wanted = 0, len(values) - 1, k - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return values[wanted]


@kernel
def sort_best(best, size):
    """The best k of the first `size` documents by falling score, equal scores in the order they stand in.

    Merges runs of doubling length, which keeps that order.

    Returns
    -------
    scores, docs : copies
    """
    size, _ = finish(best, size, 0.0)
    scores = best.scores
    order, merged = np.arange(size), np.empty(size, np.int64)
    width = 1
    while width < size:
        for start in range(0, size, 2 * width):
            middle, stop = min(start + width, size), min(start + 2 * width, size)
            i, j = start, middle
            for place in range(start, stop):
                if j >= stop or (i < middle and scores[order[i]] >= scores[order[j]]):
                    merged[place] = order[i]
                    i += 1
                else:
                    merged[place] = order[j]
                    j += 1
        order, merged = merged, order
        width *= 2
    return scores[order], best.docs[order]
