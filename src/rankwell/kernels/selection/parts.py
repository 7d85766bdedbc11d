"""What a posting adds to a score, and the most that a block of postings can add.

BM25 (one list per term) adds w·part with part = f / (f + norm(d)), norm = k1·(1 − b + b·length/average). BM25F (one
list per stream) first sums x = Σ weight_s·part_s with part_s = f_s·norm_s(d) and
norm_s = 1 / (1 − b_s + b_s·length/average_s),
and adds w·x / (x + k1).

A part grows with the frequency and falls with the length, so the best of a block's impacts bounds all its postings;
raised by `MARGIN`, which is more than the rounding of these few operations, it bounds the computed numbers too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.postings.blocks import load_block
from rankwell.kernels.postings.rules import BLOCK

MARGIN = 1.0 + 1e-14


class ScoringArrays(NamedTuple):
    """The arrays of a model for a segment.

    norms : float64 (n_columns, n_docs), one row per list column that the model reads
    block_bounds : float64 (n_blocks,), no part of the block is larger; for the lists in use
    list_bounds : float64 (n_lists,), no part of the list is larger; 0 if it is not computed yet
    """

    norms: np.ndarray
    block_bounds: np.ndarray
    list_bounds: np.ndarray


@inner_kernel(error_model="numpy", forceinline=True, for_any_constant=True)
def length_norm(length, fielded, k1, b, average):
    """The norm of a document with that many words in the list's column."""
    relative = (1.0 - b) + b * (np.float64(length) / average)
    if fielded:
        return 1.0 / relative if relative > 0.0 else 0.0
    return k1 * relative


@kernel(error_model="numpy")
def length_norms(lengths, column, n_columns, fielded, k1, b, average, out):
    """out[d] = the norm of document d; lengths : int32 (n_docs · n_columns,), document-major"""
    for doc in range(len(out)):
        out[doc] = length_norm(lengths[doc * n_columns + column], fielded, k1, b, average)


@inner_kernel(error_model="numpy", forceinline=True, for_any_constant=True)
def posting_part(frequency, norm, fielded):
    """The part of one posting."""
    if fielded:
        return np.float64(frequency) * norm
    return np.float64(frequency) / (np.float64(frequency) + norm)


@inner_kernel(error_model="numpy", forceinline=True, for_any_constant=True)
def saturated(x, k1):
    """BM25F's factor of w."""
    return x / (x + k1)


@kernel(error_model="numpy", inline="always")
def block_parts(postings, place, widths, base, size, norms, column, fielded, documents, frequencies, parts, at):
    """Write the documents and parts of a block of `size` postings, from documents[at] and parts[at] on.

    place, widths, base : the block's ``blocks.data``, ``blocks.widths`` and the document it counts from
    documents : uint32; parts : float64; frequencies : uint32 (128,), scratch. Unsigned, so that an index needs no check
    for negative values.
    """
    code, first = widths & 3, np.uint64(at)
    load_block(postings, place, code, base, size, documents, at)
    load_block(postings, place + (size << code), widths >> 2 & 3, 1, size, frequencies, 0)
    for j in range(np.uint64(size)):
        parts[first + j] = norms[column, documents[first + j]]
    # All 128 lanes, including those after `size`: a loop of constant length is vectorised without a remainder.
    if fielded:
        for j in range(np.uint64(BLOCK)):
            parts[first + j] = np.float64(frequencies[j]) * parts[first + j]
    else:
        for j in range(np.uint64(BLOCK)):
            parts[first + j] = np.float64(frequencies[j]) / (np.float64(frequencies[j]) + parts[first + j])


@kernel(error_model="numpy")
def bound_list(arrays, list_number, fielded, k1, b, average, block_bounds, list_bounds):
    """Find the largest part of every block of a list, and of the list, from the blocks' impacts."""
    largest = 0.0
    for block in range(arrays.first_block[list_number], arrays.first_block[list_number + 1]):
        bound = 0.0
        for impact in range(arrays.first_impact[block], arrays.first_impact[block + 1]):
            norm = length_norm(arrays.impact_length[impact], fielded, k1, b, average)
            bound = max(bound, posting_part(arrays.impact_frequency[impact], norm, fielded))
        block_bounds[block] = bound * MARGIN
        largest = max(largest, bound * MARGIN)
    list_bounds[list_number] = largest
