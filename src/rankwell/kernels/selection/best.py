"""The best k of scored documents that come in ascending document order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel

# After a window of documents, already where there are k + k / TIDY: a higher threshold spares more than it costs.
TIDY = 4


class BestArrays(NamedTuple):
    """Documents that may be among the best k, in ascending order among equal scores.

    scores : float64; docs : int64; room : float64, scratch; of one length, above k
    """

    scores: np.ndarray
    docs: np.ndarray
    room: np.ndarray
    k: int


@kernel(inline="always")
def offer(scores, docs, room, k, documents, totals, n, doc_base, size, threshold):
    """Take in the n documents whose totals beat the threshold; returns the new size and threshold.

    scores, docs, room, k : of BestArrays; documents : int32, ascending; totals : float64
    """
    for i in range(n):
        if totals[i] > threshold:
            scores[size], docs[size] = totals[i], doc_base + documents[i]
            size += 1
            if size == len(scores):
                threshold, size = _keep_best(scores, docs, room, size, k), k
    if size > k + k // TIDY:
        threshold, size = _keep_best(scores, docs, room, size, k), k
    return size, threshold


@inner_kernel
def _keep_best(scores, docs, room, size, k):
    """Drop all but the best k of the first `size` documents, the order stays; returns the score of the k-th.

    Of equal scores the earlier ones stay: documents come in ascending order, so ties go by it.
    """
    for i in range(size):
        room[i] = scores[i]
    threshold = _kth_largest(room[:size], k)
    equal_left = k
    for i in range(size):
        equal_left -= scores[i] > threshold
    kept = 0
    for i in range(size):
        if scores[i] > threshold or (scores[i] == threshold and equal_left > 0):
            equal_left -= scores[i] == threshold
            scores[kept], docs[kept] = scores[i], docs[i]
            kept += 1
    return threshold


@inner_kernel
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
    scores, docs, room, k = best
    if size > k:
        _keep_best(scores, docs, room, size, k)
        size = k
    order, merged = np.empty(size, np.int64), np.empty(size, np.int64)
    for i in range(size):
        order[i] = i
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
    sorted_scores, sorted_docs = np.empty(size), np.empty(size, np.int64)
    for i in range(size):
        sorted_scores[i], sorted_docs[i] = scores[order[i]], docs[order[i]]
    return sorted_scores, sorted_docs
