"""Vector operations on 64 documents: the steps of scoring by trees.

Written as LLVM's generic vector code, which is compiled to one compare and blend with AVX-512, two with AVX2 or four
with NEON.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.scoring.kinds import COLUMN_BIT, COLUMN_BITS, LANES, LEFT_BIT, RIGHT_BIT, SLOT_BITS
from rankwell.kernels.scoring.rules import BIN_BITS

_LANE_SHIFT = 6  # a row of 64 bytes: row number << 6 is its place


@kernel
def load_column(rows, start, feature, values):
    """One feature of up to 64 documents from row `start` on; lanes after the last document repeat it."""
    n_docs = min(LANES, len(rows) - start)
    for lane in range(n_docs):
        values[lane] = rows[start + lane, feature]
    for lane in range(n_docs, LANES):
        values[lane] = values[n_docs - 1]


@kernel
def count_below(ascending, values, counts):
    """counts[lane] = how many of the ascending numbers are below values[lane]; none is below NaN.

    values : float32 (64,); counts : uint32 (64,). The outer loop is over halvings, the inner one over lanes: the
    compiler makes the search branchless, and the lanes' loads overlap. One lane after another ran seven times slower.
    """
    for lane in range(LANES):
        counts[lane] = np.uint32(0)
    length = len(ascending)
    while length > 1:
        half = np.uint32(length >> 1)
        shifted = ascending[half - np.uint32(1) :]
        for lane in range(LANES):
            counts[lane] += half * np.uint32(shifted[counts[lane]] < values[lane])
        length -= half
    if length == 1:
        for lane in range(LANES):
            counts[lane] += np.uint32(ascending[counts[lane]] < values[lane])


@intrinsic
def choose_child(typing_context, bins, slots, node, out):
    """slots[out] = slots[right] where bins[column] > threshold, else slots[left], for 64 documents at once.

    bins, slots : uint8 (n, 64), C order; node : uint64, the packed node; out : int64, the slot to write
    """

    def generate(context, builder, signature, arguments):
        _, _, word, out_row = arguments
        integer, byte = ir.IntType(64), ir.IntType(8)
        vector = ir.VectorType(byte, LANES)

        def row(argument, place):
            data = context.make_array(signature.args[argument])(context, builder, arguments[argument]).data
            return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())

        def load(argument, place):
            value = builder.load(row(argument, place))
            value.align = 1
            return value

        def place_of(bit, width):
            # Shifted so that the result is the row number times 64.
            shifted = builder.lshr(word, ir.Constant(integer, bit - _LANE_SHIFT))
            return builder.and_(shifted, ir.Constant(integer, ((1 << width) - 1) << _LANE_SHIFT))

        undefined = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(undefined, builder.trunc(word, byte), ir.Constant(ir.IntType(32), 0))
        to_all = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        threshold = builder.shuffle_vector(first, undefined, to_all)
        goes_right = builder.icmp_unsigned(">", load(0, place_of(COLUMN_BIT, COLUMN_BITS)), threshold)
        right, left = load(1, place_of(RIGHT_BIT, SLOT_BITS)), load(1, place_of(LEFT_BIT, SLOT_BITS))
        place = builder.shl(out_row, ir.Constant(integer, _LANE_SHIFT))
        builder.store(builder.select(goes_right, right, left), row(1, place)).align = 1
        return context.get_dummy_value()

    return types.void(bins, slots, node, out), generate


@intrinsic
def find_outcomes(typing_context, bins, tests, first, end, slots, out):
    """slots[out] = the outcome of the tests first, ..., end − 1 (eight at most) for 64 documents at once.

    bins, slots : uint8 (n, 64), C order; tests : uint32, see `TreeArrays`; first, end, out : int64
    """

    def generate(context, builder, signature, arguments):
        _, _, start, stop, _, out_row = arguments
        integer, byte = ir.IntType(64), ir.IntType(8)
        vector = ir.VectorType(byte, LANES)
        bins_data, tests_data, slots_data = (
            context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 1, 4)
        )
        to_all = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

        def broadcast(value):
            undefined = ir.Constant(vector, ir.Undefined)
            return builder.shuffle_vector(
                builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0)), undefined, to_all
            )

        def row(data, place):
            return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())

        outcome = cgutils.alloca_once_value(builder, ir.Constant(vector, [0] * LANES))
        bit = cgutils.alloca_once_value(builder, ir.Constant(byte, 1))
        with cgutils.for_range_slice(builder, start, stop, ir.Constant(integer, 1), integer) as (k, _):
            test = builder.load(builder.gep(tests_data, [k]))
            column = builder.lshr(builder.zext(test, integer), ir.Constant(integer, BIN_BITS))
            own = builder.load(row(bins_data, builder.shl(column, ir.Constant(integer, _LANE_SHIFT))))
            own.align = 1
            is_above = builder.icmp_unsigned(">", own, broadcast(builder.trunc(test, byte)))
            own_bit = builder.load(bit)
            zero = ir.Constant(vector, [0] * LANES)
            builder.store(
                builder.or_(builder.load(outcome), builder.select(is_above, broadcast(own_bit), zero)), outcome
            )
            builder.store(builder.shl(own_bit, ir.Constant(byte, 1)), bit)
        place = builder.shl(out_row, ir.Constant(integer, _LANE_SHIFT))
        builder.store(builder.load(outcome), row(slots_data, place)).align = 1
        return context.get_dummy_value()

    return types.void(bins, tests, types.int64, types.int64, slots, types.int64), generate
