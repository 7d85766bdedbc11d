"""Reading posting lists: blocks of up to 128 postings, each value found without decoding the rest.

A block holds its documents as differences from its base (the document after the previous block's last one), then its
frequencies less one; widths are 1, 2 or 4 bytes per value, the same throughout a block, so that the place of value
j is known in advance. `rankwell.kernels.postings.reference` is the slow definition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.rules import BLOCK

_LANES = 16


class PostingArrays(NamedTuple):
    """A segment's arrays that posting lists consist of; the comments are their names in a segment."""

    first_block: np.ndarray  # int64, lists.first_block
    doc_freq: np.ndarray  # int32, lists.doc_freq
    last_doc: np.ndarray  # int32, blocks.last_doc
    data: np.ndarray  # int64, blocks.data
    widths: np.ndarray  # uint8, blocks.widths
    postings: np.ndarray  # uint8, postings
    first_impact: np.ndarray  # int64, blocks.first_impact
    impact_frequency: np.ndarray  # int32, impacts.frequency
    impact_length: np.ndarray  # int32, impacts.length


def _loader(bits: int) -> Any:
    """A compiled ``f(bytes, place)``: the little-endian number of `bits` bits that begins at a byte, as uint32."""

    def load(typing_context: Any, values: Any, place: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(bits).as_pointer())
            value = builder.load(pointer, align=1)
            return value if bits == 32 else builder.zext(value, ir.IntType(32))

        return types.uint32(values, types.intp), generate

    return intrinsic(load)


# A block begins at any byte, which NumPy's views cannot express; the processor allows unaligned loads.
_load16, _load32 = _loader(16), _loader(32)


@kernel(forceinline=True, for_any_constant=True)
def load_value(values, place, code, j):
    """Value `j` of a run of equally wide values that begins at byte `place`; code 0, 1, 2 is 1, 2, 4 bytes."""
    if code == 0:
        return np.int64(values[place + j])
    if code == 1:
        return np.int64(_load16(values, place + 2 * j))
    return np.int64(_load32(values, place + 4 * j))


def _block_loader(bits: int) -> Any:
    """A compiled ``f(bytes, place, add, out, at)``: out[at + j] = the j-th number of `bits` bits + add, for j < 128.

    Written as vectors: the compiler's code for the same loop has a third of the speed.
    """

    def load(typing_context: Any, values: Any, place: Any, add: Any, out: Any, at: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            source, target = (
                context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 3)
            )
            number, place_type = ir.IntType(32), ir.IntType(64)
            wide, narrow = ir.VectorType(number, _LANES), ir.VectorType(ir.IntType(bits), _LANES)
            undefined = ir.Constant(wide, ir.Undefined)
            first = builder.insert_element(undefined, arguments[2], number(0))
            shift = builder.shuffle_vector(first, undefined, ir.Constant(wide, [0] * _LANES))
            for start in range(0, BLOCK, _LANES):
                byte = builder.add(arguments[1], place_type(start * bits // 8))
                value = builder.load(builder.bitcast(builder.gep(source, [byte]), narrow.as_pointer()), align=1)
                value = builder.add(value if bits == 32 else builder.zext(value, wide), shift)
                to = builder.gep(target, [builder.add(arguments[4], place_type(start))])
                builder.store(value, builder.bitcast(to, wide.as_pointer()), align=4)
            return context.get_dummy_value()

        return types.none(values, types.intp, types.uint32, out, types.intp), generate

    return intrinsic(load)


_load_block8, _load_block16, _load_block32 = _block_loader(8), _block_loader(16), _block_loader(32)


def _finder(bits: int) -> Any:
    """A compiled ``f(bytes, place, wanted)``: the first of 128 numbers of `bits` bits that is `wanted`; 128:
    none.

    All of a block are compared at once, which takes less than a bisection's first steps.
    """

    def find(typing_context: Any, values: Any, place: Any, wanted: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            number, vector = ir.IntType(bits), ir.VectorType(ir.IntType(bits), BLOCK)
            pointer = builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())
            undefined = ir.Constant(vector, ir.Undefined)
            value = arguments[2] if bits == 32 else builder.trunc(arguments[2], number)
            first = builder.insert_element(undefined, value, ir.IntType(32)(0))
            to_all = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)
            equal = builder.icmp_unsigned(
                "==", builder.load(pointer, align=1), builder.shuffle_vector(first, undefined, to_all)
            )
            found = builder.cttz(builder.bitcast(equal, ir.IntType(BLOCK)), ir.IntType(1)(0))
            return builder.trunc(found, ir.IntType(64))

        return types.int64(values, types.intp, types.uint32), generate

    return intrinsic(find)


_find8, _find16, _find32 = _finder(8), _finder(16), _finder(32)


@kernel(inline="always")
def load_values(values, place, code, add, count, out):
    """out[j] = value j + add, for j < count; out : uint32, int32 or int64"""
    for j in range(count):
        out[j] = load_value(values, place, code, j) + add


@kernel(forceinline=True, for_any_constant=True)
def load_block(values, place, code, add, count, out, at):
    """out[at + j] = value j + add, for j < count; out : uint32 or int32, with room for 128 numbers from `at` on.

    What is after `count` is undefined.
    """
    if place + (BLOCK << code) > len(values):
        for j in range(count):
            out[at + j] = load_value(values, place, code, j) + add
    elif code == 0:
        _load_block8(values, place, np.uint32(add), out, at)
    elif code == 1:
        _load_block16(values, place, np.uint32(add), out, at)
    else:
        _load_block32(values, place, np.uint32(add), out, at)


@kernel(inline="always")
def block_size(arrays, list_number, block):
    """How many postings a block of a list holds: 128, or the rest for the last one."""
    return min(BLOCK, np.int64(arrays.doc_freq[list_number]) - BLOCK * (block - arrays.first_block[list_number]))


@kernel(inline="always")
def block_base(arrays, list_number, block):
    """The document that a block's differences count from."""
    return np.int64(0) if block == arrays.first_block[list_number] else np.int64(arrays.last_doc[block - 1]) + 1


@kernel(inline="always")
def block_documents(arrays, list_number, block, out):
    """Write a block's documents, ascending, to out (uint32 or int32, 128 or more); returns how many."""
    count = block_size(arrays, list_number, block)
    base = block_base(arrays, list_number, block)
    load_block(arrays.postings, arrays.data[block], arrays.widths[block] & 3, base, count, out, 0)
    return count


@kernel(inline="always")
def block_frequencies(arrays, block, count, out):
    """Write a block's `count` frequencies to out (uint32 or int32, 128 or more)."""
    code = arrays.widths[block] & 3
    place = arrays.data[block] + (count << code)
    load_block(arrays.postings, place, arrays.widths[block] >> 2 & 3, 1, count, out, 0)


@kernel(inline="always")
def frequency_in_block(arrays, block, count, j):
    """The frequency of posting `j` of a block with `count` postings."""
    place = arrays.data[block] + (count << (arrays.widths[block] & 3))
    return load_value(arrays.postings, place, arrays.widths[block] >> 2 & 3, j) + 1


@kernel(forceinline=True)
def find_value(values, place, code, wanted, count):
    """Which of `count` (128 or fewer) ascending numbers that begin at byte `place` is `wanted`; `count` or more: none.

    `wanted` must not be larger than the last of them.
    """
    if place + (BLOCK << code) > len(values):
        j = np.int64(0)
        while load_value(values, place, code, j) < wanted:
            j += 1
        return j if load_value(values, place, code, j) == wanted else count
    if code == 0:
        return _find8(values, place, np.uint32(wanted))
    if code == 1:
        return _find16(values, place, np.uint32(wanted))
    return _find32(values, place, np.uint32(wanted))


@kernel(inline="always")
def find_in_block(arrays, list_number, block, doc):
    """The place of a document in a block, or -1; the block's last document must be `doc` or a later one."""
    wanted, count = doc - block_base(arrays, list_number, block), block_size(arrays, list_number, block)
    if wanted < 0:
        return np.int64(-1)
    j = find_value(arrays.postings, arrays.data[block], arrays.widths[block] & 3, wanted, count)
    return j if j < count else np.int64(-1)


@kernel(forceinline=True)
def seek_block(last_doc, block, stop, doc):
    """The first block in [block, stop) whose last document is `doc` or a later one; `stop` if there is none.

    By doubling steps, then halving: a few steps if the document is near.
    """
    if block >= stop or last_doc[block] >= doc:
        return block
    step = np.int64(1)
    while block + step < stop and last_doc[block + step] < doc:
        block += step
        step += step
    low, high = block + 1, min(block + step, stop)
    while low < high:
        middle = (low + high) >> 1
        if last_doc[middle] < doc:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(inline="always")
def block_positions(block_starts, positions, widths, block, frequencies, j, out):
    """Write the positions of posting `j` of a block, ascending, to out (int32, long enough); returns how many.

    block_starts, positions : a segment's ``blocks.positions`` and ``positions``; frequencies : of the whole block
    """
    before = np.int64(0)
    for i in range(j):
        before += frequencies[i]
    code = widths[block] >> 4 & 3
    count = np.int64(frequencies[j])
    load_values(positions, block_starts[block] + (before << code), code, 0, count, out)
    for i in range(1, count):
        out[i] += out[i - 1]
    return count
