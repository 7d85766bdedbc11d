"""What is found out before training: missing values, and the dense ranks of labels within queries and their pairs."""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.pair_loss.cpu.sums import sort_by_score

_BLOCK = 2**16


@kernel(parallel=True)
def label_levels(labels, query_ptr, levels, n_levels):
    """Fill `levels` (n_docs,) and `n_levels` (n_queries,) with the ranks within each query and their number."""
    for query in prange(query_ptr.shape[0] - 1):
        start, end = query_ptr[query], query_ptr[query + 1]
        order = np.empty(end - start, dtype=np.int32)
        sort_by_score(labels[start:end], order, np.empty_like(order))
        level = -1
        for place in range(end - start):
            row = start + order[place]
            if place == 0 or labels[row] != labels[start + order[place - 1]]:
                level += 1
            levels[row] = level
        n_levels[query] = level + 1


@kernel(parallel=True)
def count_pairs(levels, n_levels, query_ptr, query_weights, document_weights):
    """How many pairs of different levels have a weight above 0; weights of length 0 are all 1."""
    total = 0
    for query in prange(query_ptr.shape[0] - 1):
        if n_levels[query] < 2 or (query_weights.shape[0] > 0 and query_weights[query] == 0.0):
            continue
        counts = np.zeros(n_levels[query], dtype=np.int64)
        for row in range(query_ptr[query], query_ptr[query + 1]):
            if document_weights.shape[0] == 0 or document_weights[row] > 0.0:
                counts[levels[row]] += 1
        before = 0
        for level in range(n_levels[query]):
            total += before * counts[level]
            before += counts[level]
    return total


@kernel(parallel=True)
def has_missing(values):
    """Whether any value is NaN."""
    n_blocks = (values.shape[0] + _BLOCK - 1) // _BLOCK
    found = np.zeros(n_blocks, dtype=np.bool_)
    for block in prange(n_blocks):
        missing = False
        for value in values[_BLOCK * block : _BLOCK * (block + 1)]:
            missing |= value != value
        found[block] = missing
    return found.any()
