"""Values to bins: by a multiply and a ceiling (equal width), or by counting the thresholds below (quantile).

Vocabulary. `table[f]` holds the thresholds of feature f, ascending, -inf first, +inf after the last, 256 numbers; the
bin of x is how many of them are below x, and NaN is above none of them (bin 0). They are counted in two steps of 16
comparisons each, one vector instruction and a population count, which ran six times as fast as a binary search.

Work is divided into blocks of 64 documents for any number of threads, and no block writes to another's output.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import prange, types
from numba.extending import intrinsic

from rankwell.kernels.cpu.compilation import kernel

LANES = 16  # features of one group, and thresholds compared at once
BLOCK = 64  # documents of one task: a cache line of bins in the feature-major layout
TABLE_WIDTH = LANES * LANES
_LARGEST_KEY = np.int64(0x7F7FFFFF)  # the bits of the largest finite float32


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


@kernel
def _search_block(features, rows, table, last_of_sixteen, bins):
    """The bins of a block of documents by their thresholds. `last_of_sixteen` is every sixteenth number of `table`."""
    table_address = np.uint64(table.ctypes.data)
    coarse_address = np.uint64(last_of_sixteen.ctypes.data)
    for doc in range(len(rows)):
        values = features[rows[doc]]
        row = bins[doc]
        for feature in range(features.shape[1]):
            value = values[feature]
            sixteen = _count_below(value, coarse_address + np.uint64(feature) * np.uint64(4 * LANES))
            place = np.uint64(feature) * np.uint64(LANES) + sixteen
            inside = _count_below(value, table_address + place * np.uint64(4 * LANES))
            row[feature] = np.uint8(sixteen * np.uint64(LANES) + inside)


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
def _width_block(features, rows, origin, scale, top, bins):
    """The bins of a block of documents, of equal width."""
    for doc in range(len(rows)):
        values = features[rows[doc]]
        row = bins[doc]
        for feature in range(features.shape[1]):
            place = _width_bin(values[feature], origin[feature], scale[feature], top[feature])
            row[feature] = np.uint8(np.int32(place))


@kernel
def _bin_block(features, rows, rule, bins):
    by_width, origin, scale, top, table, last_of_sixteen = rule
    if by_width:
        _width_block(features, rows, origin, scale, top, bins)
    else:
        _search_block(features, rows, table, last_of_sixteen, bins)


@kernel(parallel=True)
def bin_rows(features, rows, rule, first_doc, out):
    """Bins as rows: ``out[first_doc + doc, feature]``.

    Parameters
    ----------
    features : float32 array (n_rows, n_features), C order
    rows : int64 array (n_docs,), the row of each document
    rule : tuple (by_width bool, origin, scale, top float64 (n_features,), table (n_features, 256), last_of_sixteen)
    first_doc : int
        The place of the first document in `out`.
    out : uint8 array (n_docs_in_all, n_features)
    """
    n_docs = len(rows)
    for block in prange((n_docs + BLOCK - 1) // BLOCK):
        start, end = block * BLOCK, min((block + 1) * BLOCK, n_docs)
        _bin_block(features, rows[start:end], rule, out[first_doc + start : first_doc + end])


@kernel(parallel=True)
def bin_by_feature(features, rows, rule, first_doc, out):
    """Bins feature by feature: ``out[feature, first_doc + doc]``, as CUDA kernels read them."""
    n_docs, n_features = len(rows), features.shape[1]
    for block in prange((n_docs + BLOCK - 1) // BLOCK):
        start, end = block * BLOCK, min((block + 1) * BLOCK, n_docs)
        bins = np.empty((BLOCK, n_features), dtype=np.uint8)
        _bin_block(features, rows[start:end], rule, bins)
        for feature in range(n_features):
            row = out[feature]
            for doc in range(end - start):
                row[first_doc + start + doc] = bins[doc, feature]


@kernel(parallel=True)
def bin_interleaved(features, rows, rule, first_doc, out):
    """Bins of 16 features next to each other: ``out[group, first_doc + doc, lane]``, FAR's order."""
    n_docs = len(rows)
    for block in prange((n_docs + BLOCK - 1) // BLOCK):
        start, end = block * BLOCK, min((block + 1) * BLOCK, n_docs)
        bins = np.zeros((BLOCK, len(out) * LANES), dtype=np.uint8)
        _bin_block(features, rows[start:end], rule, bins)
        for group in range(len(out)):
            for doc in range(end - start):
                sixteen = out[group, first_doc + start + doc]
                source = bins[doc]
                for lane in range(LANES):
                    sixteen[lane] = source[group * LANES + lane]


@kernel(parallel=True)
def feature_ranges(features, lowest, highest):
    """Lower `lowest` and raise `highest` (float32, (n_features,)) to the range of the values that are not missing."""
    n_docs, n_features = features.shape
    n_parts = 64
    lows = np.empty((n_parts, n_features), dtype=np.float32)
    highs = np.empty((n_parts, n_features), dtype=np.float32)
    for part in prange(n_parts):
        low, high = lows[part], highs[part]
        low[:] = lowest
        high[:] = highest
        for doc in range(n_docs * part // n_parts, n_docs * (part + 1) // n_parts):
            values = features[doc]
            for feature in range(n_features):
                value = values[feature]
                low[feature] = value if value < low[feature] else low[feature]
                high[feature] = value if value > high[feature] else high[feature]
    for part in range(n_parts):
        for feature in range(n_features):
            lowest[feature] = min(lowest[feature], lows[part, feature])
            highest[feature] = max(highest[feature], highs[part, feature])


@kernel(parallel=True)
def width_thresholds(origin, scale, top, table):
    """The thresholds of `_width_bin`: for each bin b the largest float32 whose bin is not above b.

    Found by bisection over all finite float32 numbers, in the order of their bits; so they are right for any rounding
    in the formula. They are the boundaries of equation 3 of the FAR paper up to that rounding.
    """
    for feature in prange(len(origin)):
        bits = np.empty(1, dtype=np.uint32)
        number = bits.view(np.float32)
        if top[feature] > 0:
            table[feature, 0] = -np.inf
        for place in range(1, int(top[feature])):
            low, high = -_LARGEST_KEY, _LARGEST_KEY  # the bin of `low` is at most `place`, that of `high` is above it
            while high - low > 1:
                middle = (low + high) >> 1
                bits[0] = middle if middle >= 0 else np.int64(0x80000000) - middle
                if _width_bin(number[0], origin[feature], scale[feature], top[feature]) <= place:
                    low = middle
                else:
                    high = middle
            bits[0] = low if low >= 0 else np.int64(0x80000000) - low
            table[feature, place] = number[0]
