"""What a posting adds to a score, and the most that a block of postings can add.

BM25 (one list per term) adds w·part with part = f / (f + norm(d)), norm = k1·(1 − b + b·length/average). BM25F (one
list per stream) first sums x = Σ weight_s·part_s with part_s = f_s·norm_s(d) and
norm_s = 1 / (1 − b_s + b_s·length/average_s),
and adds w·x / (x + k1).

A part grows with the frequency and falls with the length, so the best of a block's impacts bounds all its postings;
raised by `MARGIN`, which is more than the rounding of these few operations, it bounds the computed numbers too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.postings.blocks import document_width, load_documents, load_frequencies, load_frequency
from rankwell.kernels.postings.packing import load_number
from rankwell.kernels.postings.rules import BLOCK

MARGIN = 1.0 + 1e-14
_LANES = 8


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


@intrinsic
def _divide_group(
    typing_context: Any, frequencies: Any, low: Any, documents: Any, place: Any, norms: Any, row: Any, parts: Any
) -> Any:
    """BM25's parts of the eight postings with frequencies[low:] and documents[place:], written to parts[place:].

    row : where the norms of the list's column begin in `norms`, flat. Norms are read while the group before is divided;
    the compiler's code for loops over whole blocks does one after the other, and takes 1.4 times as long.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        frequencies, documents, norms, parts = (
            context.make_array(signature.args[number])(context, builder, arguments[number]).data
            for number in (0, 2, 4, 6)
        )
        _, low, _, place, _, row, _ = arguments
        numbers, values = ir.VectorType(ir.IntType(32), _LANES), ir.VectorType(ir.DoubleType(), _LANES)
        pointer = builder.bitcast(builder.gep(frequencies, [low]), numbers.as_pointer())
        frequency = builder.uitofp(builder.load(pointer, align=4), values)
        norm = ir.Constant(values, ir.Undefined)
        for lane in range(_LANES):
            doc = builder.load(builder.gep(documents, [builder.add(place, ir.IntType(64)(lane))]))
            at = builder.add(row, builder.zext(doc, ir.IntType(64)))
            norm = builder.insert_element(norm, builder.load(builder.gep(norms, [at])), ir.IntType(32)(lane))
        part = builder.fdiv(frequency, builder.fadd(frequency, norm))
        builder.store(part, builder.bitcast(builder.gep(parts, [place]), values.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.none(frequencies, types.intp, documents, types.intp, norms, types.intp, parts), generate


@kernel(error_model="numpy", inline="always")
def block_parts(postings, place, widths, base, size, norms, column, fielded, documents, frequencies, parts, at):
    """Write the documents and parts of a block of `size` postings, from documents[at] and parts[at] on.

    place, widths, base : the block's ``blocks.data``, ``blocks.widths`` and the document it counts from
    documents : uint32; parts : float64; frequencies : uint32 (128,), scratch. Unsigned, so that an index needs no check
    for negative values.
    """
    first = np.uint64(at)
    load_documents(postings, place, widths, base, size, documents, at)
    load_frequencies(postings, place, widths, size, frequencies, 0)
    if fielded or size < BLOCK:
        for j in range(np.uint64(size)):
            parts[first + j] = posting_part(frequencies[j], norms[column, documents[first + j]], fielded)
    else:
        for low in range(0, BLOCK, _LANES):
            _divide_group(frequencies, low, documents, at + low, norms, column * norms.shape[1], parts)


@kernel(error_model="numpy")
def bound_list(arrays, list_number, fielded, k1, b, average, norms, block_bounds, list_bounds):
    """Find the largest part of every block of a list, and of the list: from the blocks' impacts, or of a list of one
    block, which has none, from its postings. norms : float64 (n_docs,), of the list's column
    """
    first, stop = np.int64(arrays.first_block[list_number]), np.int64(arrays.first_block[list_number + 1])
    largest = 0.0
    for block in range(first, stop):
        bound = 0.0
        if stop - first == 1:
            # Number after number: once for each list, so that little is compiled for it.
            place, widths, doc = arrays.data[block], arrays.widths[block], np.int64(-1)
            count = np.int64(arrays.doc_freq[list_number])
            for j in range(count):
                doc += load_number(arrays.postings, place, document_width(widths), count, j) + 1
                frequency = load_frequency(arrays.postings, place, widths, count, j)
                bound = max(bound, posting_part(frequency, norms[doc], fielded))
        for impact in range(np.int64(arrays.first_impact[block]), np.int64(arrays.first_impact[block + 1])):
            norm = length_norm(arrays.impact_length[impact], fielded, k1, b, average)
            bound = max(bound, posting_part(arrays.impact_frequency[impact], norm, fielded))
        block_bounds[block] = bound * MARGIN
        largest = max(largest, bound * MARGIN)
    list_bounds[list_number] = largest
