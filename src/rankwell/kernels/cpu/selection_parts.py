"""What a posting adds to a score, and the most that a block of postings can add.

BM25 (one list a term) adds w·part with part = 1 / (1 + norm(d)·(1/f)), norm = k1·(1 − b + b·length/average), which is
f / (f + norm). BM25F (one list a stream) first sums x = Σ weight_s·part_s with part_s = f_s·norm_s(d), norm_s =
1 / (1 − b_s + b_s·length/average_s), and adds w / (1 + k1/x).

Each is written as operations that round monotonically, so that more occurrences or a shorter document never give less,
to the last bit: the best of a block's impacts is then a bound for all its postings, and an exact one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.posting_blocks import BLOCK, block_documents, block_frequencies


class ScoringArrays(NamedTuple):
    """What a model keeps for a segment.

    norms : float64 (n_columns, n_docs), one row a list column that the model reads
    block_bounds : float64 (n_blocks,), the largest part of each block, for the lists in use
    list_bounds : float64 (n_lists,), the largest part of each list; 0 where it was not asked for yet
    """

    norms: np.ndarray
    block_bounds: np.ndarray
    list_bounds: np.ndarray


@kernel(error_model="numpy", forceinline=True)
def length_norm(length, fielded, k1, b, average):
    """The norm of a document with that many words in the list's column."""
    relative = (1.0 - b) + b * (np.float64(length) / average)
    if fielded:
        return 1.0 / relative if relative > 0.0 else 0.0
    return k1 * relative


@kernel(error_model="numpy", forceinline=True)
def length_norms(lengths, column, n_columns, fielded, k1, b, average, out):
    """out[d] = the norm of document d; lengths : int32 (n_docs · n_columns,), document-major"""
    for doc in range(len(out)):
        out[doc] = length_norm(lengths[doc * n_columns + column], fielded, k1, b, average)


@kernel(error_model="numpy", forceinline=True)
def posting_part(frequency, norm, fielded):
    """The part of one posting."""
    if fielded:
        return np.float64(frequency) * norm
    return 1.0 / (1.0 + norm * (1.0 / np.float64(frequency)))


@kernel(error_model="numpy", forceinline=True)
def saturated(x, k1):
    """BM25F's share of w: 1 / (1 + k1/x), which is x / (k1 + x)."""
    return 1.0 / (1.0 + k1 / x)


@kernel(error_model="numpy", forceinline=True)
def block_parts(arrays, list_number, block, norms, fielded, documents, frequencies, parts):
    """Write a block's documents (uint32), frequencies (uint32) and parts (float64); returns how many.

    Unsigned, so that an index needs no test for counting from the end; each array has 128 elements.
    """
    count = block_documents(arrays, list_number, block, documents)
    block_frequencies(arrays, block, count, frequencies)
    for j in range(count):
        parts[j] = norms[documents[j]]
    # All 128 lanes, whatever lies behind `count`: a loop of known length becomes vectors without a remainder.
    if fielded:
        for j in range(BLOCK):
            parts[j] = np.float64(frequencies[j]) * parts[j]
    else:
        for j in range(BLOCK):
            parts[j] = 1.0 / (1.0 + parts[j] * (1.0 / np.float64(frequencies[j])))
    return count


@kernel(error_model="numpy", forceinline=True)
def bound_list(arrays, list_number, fielded, k1, b, average, block_bounds, list_bounds):
    """Find the largest part of every block of a list, and of the list, from the blocks' impacts."""
    largest = 0.0
    for block in range(arrays.first_block[list_number], arrays.first_block[list_number + 1]):
        bound = 0.0
        for impact in range(arrays.first_impact[block], arrays.first_impact[block + 1]):
            norm = length_norm(arrays.impact_length[impact], fielded, k1, b, average)
            bound = max(bound, posting_part(arrays.impact_frequency[impact], norm, fielded))
        block_bounds[block] = bound
        largest = max(largest, bound)
    list_bounds[list_number] = largest
