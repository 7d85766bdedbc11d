"""Values to bins: by a multiply and a ceiling (equal width), or by counting the thresholds below (quantile).

Vocabulary. `table[f]` holds the thresholds of feature f, ascending, -inf first, +inf after the last, 256 numbers; the
bin of x is how many of them are below x, and NaN is above none of them (bin 0). They are counted in two steps of 16
comparisons, each step a vector instruction and a population count: six times as fast as a binary search.

Kernels fill rows of bins for a range of documents; at most one block of them is buffered before it is written in the
requested layout. Ranges share no output, so threads can work on them in parallel. Hot loops use unsigned indices:
a signed index could count from the end, and that case would prevent vectorisation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from rankwell.kernels.cpu.compilation import kernel

LANES = 16  # features of one group, and thresholds compared at once
BLOCK = 64  # documents of one task: a cache line of bins in the feature-major layout
TABLE_WIDTH = LANES * LANES
_LARGEST_KEY = np.int64(0x7F7FFFFF)  # the bits of the largest finite float32
_SIGN = np.int64(0x80000000)
_LANES = np.uint64(LANES)
_SIXTEEN_NUMBERS = np.uint64(4 * LANES)  # bytes


class WidthRule(NamedTuple):
    """Bins of equal width: ⌈(x − origin)·scale⌉, limited to [1, `top`]. All float64 (n_features,)."""

    origin: np.ndarray
    scale: np.ndarray
    top: np.ndarray


class ThresholdRule(NamedTuple):
    """Bins by thresholds.

    table : float32 (n_features, 256)
    last_of_sixteen : float32 (n_features, 16), every sixteenth number of `table`
    """

    table: np.ndarray
    last_of_sixteen: np.ndarray


def threshold_rule(table: np.ndarray) -> ThresholdRule:
    return ThresholdRule(table, np.ascontiguousarray(table[:, LANES - 1 :: LANES]))


@intrinsic
def _count_below(typing_context, value, address):
    """How many of the 16 float32 numbers at `address` are below `value`."""

    def emit(context, builder, signature, arguments):
        number, location = arguments
        vector = ir.VectorType(ir.FloatType(), LANES)
        row = builder.load(builder.inttoptr(location, vector.as_pointer()), align=4)
        first_lane = ir.Constant(ir.IntType(32), 0)
        every_lane = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        alone = builder.insert_element(ir.Constant(vector, ir.Undefined), number, first_lane)
        spread = builder.shuffle_vector(alone, ir.Constant(vector, ir.Undefined), every_lane)
        above = builder.bitcast(builder.fcmp_ordered(">", spread, row), ir.IntType(LANES))
        return builder.zext(builder.ctpop(above), ir.IntType(64))

    return types.uint64(types.float32, types.uint64), emit


@intrinsic
def _number_of_bits(typing_context, bits):
    """The float32 that has these 32 bits."""

    def emit(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.uint32), emit


@kernel
def _number_of_key(key):
    """The float32 at place `key` in their numerical order: 0 is 0.0, 1 the smallest above it, −1 the largest below."""
    return _number_of_bits(np.uint32(key if key >= 0 else _SIGN - key))


@kernel
def bin_by_thresholds(features, rows, rule, start, end, bins, first):
    """The bins of the documents start, ..., end − 1 as rows, by a `ThresholdRule`.

    features : float32 (n_rows, n_features), C order; rows : int64 (n_docs,), the row of each document
    bins : uint8 (any, n_features or more), written from row `first` on
    """
    table_address = np.uint64(rule.table.ctypes.data)
    coarse_address = np.uint64(rule.last_of_sixteen.ctypes.data)
    for place in range(np.uint64(end - start)):
        values, numbers = features[rows[np.uint64(start) + place]], bins[np.uint64(first) + place]
        for feature in range(np.uint64(features.shape[1])):
            value = values[feature]
            sixteen = _count_below(value, coarse_address + feature * _SIXTEEN_NUMBERS)
            inside = _count_below(value, table_address + (feature * _LANES + sixteen) * _SIXTEEN_NUMBERS)
            numbers[feature] = np.uint8(sixteen * _LANES + inside)


@kernel
def _width_bin(value, origin, scale, top):
    """The equal-width bin of one value, as a float64.

    Every operation is exact or rounds monotonically, so the bin never decreases as the value grows: therefore the
    thresholds of `width_thresholds` are exact. The comparison with -inf is false for NaN.
    """
    place = np.ceil((np.float64(value) - origin) * scale)
    place = place if place > 1.0 else 1.0
    place = place if place < top else top
    return place if value > -np.inf else 0.0


@kernel
def bin_by_width(features, rows, rule, start, end, bins, first):
    """The bins of the documents start, ..., end − 1 as rows, by a `WidthRule`. See `bin_by_thresholds`."""
    origin, scale, top = rule.origin, rule.scale, rule.top
    for place in range(np.uint64(end - start)):
        values, numbers = features[rows[np.uint64(start) + place]], bins[np.uint64(first) + place]
        for feature in range(np.uint64(features.shape[1])):
            bin_number = _width_bin(values[feature], origin[feature], scale[feature], top[feature])
            numbers[feature] = np.uint8(np.int32(bin_number))


@kernel
def bin_rows(features, rows, widths, thresholds, start, end, bins, first):
    """The bins of the documents start, ..., end − 1 as rows, by the one rule that is not None.

    Numba leaves out the branch of an argument that is None, so the unused rule is not compiled.
    """
    if widths is not None:
        bin_by_width(features, rows, widths, start, end, bins, first)
    if thresholds is not None:
        bin_by_thresholds(features, rows, thresholds, start, end, bins, first)


@kernel
def bin_by_feature(features, rows, widths, thresholds, start, end, block, first, out):
    """Bins feature by feature: ``out[feature, first + doc]``, as CUDA kernels read them.

    For the documents start, ..., end − 1; document `start` is at first + start. block : uint8 (64, n_features), scratch
    """
    for begin in range(start, end, BLOCK):
        n_docs = BLOCK if begin + BLOCK < end else end - begin
        bin_rows(features, rows, widths, thresholds, begin, begin + n_docs, block, 0)
        for feature in range(np.uint64(out.shape[0])):
            for doc in range(np.uint64(n_docs)):
                out[feature, np.uint64(first + begin) + doc] = block[doc, feature]


@kernel
def bin_interleaved(features, rows, widths, thresholds, start, end, block, first, out):
    """Bins of 16 features next to each other: ``out[group, first + doc, lane]``, FAR's order.

    For the documents start, ..., end − 1. block : uint8 (64, 16 · groups), scratch, 0 beyond the last feature
    """
    for begin in range(start, end, BLOCK):
        n_docs = BLOCK if begin + BLOCK < end else end - begin
        bin_rows(features, rows, widths, thresholds, begin, begin + n_docs, block, 0)
        for group in range(np.uint64(out.shape[0])):
            for doc in range(np.uint64(n_docs)):
                sixteen, source = out[group, np.uint64(first + begin) + doc], block[doc]
                for lane in range(_LANES):
                    sixteen[lane] = source[group * _LANES + lane]


@kernel
def feature_ranges(features, start, end, lowest, highest):
    """Lower `lowest` and raise `highest` (float32, (n_features,)) to the range of the values that are not missing.

    For the documents start, ..., end − 1.
    """
    for doc in range(np.uint64(start), np.uint64(end)):
        for feature in range(np.uint64(features.shape[1])):
            value = features[doc, feature]
            lowest[feature] = value if value < lowest[feature] else lowest[feature]
            highest[feature] = value if value > highest[feature] else highest[feature]


@kernel
def width_thresholds(rule, table):
    """The thresholds of a `WidthRule`: for each bin b the largest float32 whose bin is not above b.

    Found by bisection over all finite float32 numbers, in the order of their bits; so they are right for any rounding
    in the formula. They are the boundaries of equation 3 of the FAR paper up to that rounding.
    """
    for feature in range(len(rule.top)):
        origin, scale, top = rule.origin[feature], rule.scale[feature], rule.top[feature]
        if top > 0:
            table[feature, 0] = -np.inf
        for place in range(1, np.int64(top)):
            low, high = -_LARGEST_KEY, _LARGEST_KEY  # the bin of `low` is at most `place`, that of `high` is above it
            while high - low > 1:
                middle = (low + high) >> 1
                if _width_bin(_number_of_key(middle), origin, scale, top) <= place:
                    low = middle
                else:
                    high = middle
            table[feature, place] = _number_of_key(low)
