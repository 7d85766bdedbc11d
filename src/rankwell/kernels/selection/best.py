"""The best k of scored documents that come in ascending document order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inlined_kernel, inner_kernel

# After a window, documents are dropped from k + k / TIDY on: the higher threshold saves more than this costs.
TIDY = 4


class BestArrays(NamedTuple):
    """Documents that may be among the best k, equal scores in ascending order of documents.

    scores : float64; docs : int64; room : float64, scratch; of one length, above k
    """

    scores: np.ndarray
    docs: np.ndarray
    room: np.ndarray
    k: int


@inlined_kernel
def offer(scores, docs, room, k, documents, totals, n, doc_base, size, threshold):
    """Add those of the n documents whose totals are above the threshold; returns the new size and threshold.

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
    """Drop all but the best k of the first `size` documents, in the same order; returns the score of the k-th.

    Of equal scores the earlier ones are kept: documents come in ascending order, so it breaks ties.
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
