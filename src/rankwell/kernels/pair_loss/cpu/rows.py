"""Rows of features, dense or CSR, against vectors: the parts of a fused product that touch X.

`features` is a float32 array (n_docs, n_features) in C order, or the CSR triple ``(values, columns, row_ptr)``.
Products are summed in float64: the conversion hides behind the memory that the rows come from, and features with a
large mean, which cancels within a query, keep their digits. Inputs hold no NaN and no infinity here.

Each query's rows are read twice, from memory when they are multiplied and from the cache when they are added. Left to
itself the memory would idle half of the time; so both loops ask in advance for rows to come, half a row for each row.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.vectors import add_rows_function, multiply_rows_function, prefetch

_REORDERED = {"reassoc", "contract", "nsz"}
_FLOATS_PER_CACHE_LINE = 16
# How far ahead: longer than half a query, so that its last rows are there in time, and short of the cache's size.
_FLOATS_AHEAD = 2**15

_multiply_one_row, _multiply_four_rows = multiply_rows_function(1), multiply_rows_function(4)
_add_one_row, _add_four_rows = add_rows_function(1), add_rows_function(4)


def multiply_rows(features, start, end, vector, products):
    """products[i − start] = x_i·vector for the rows start ≤ i < end, in float64."""
    raise NotImplementedError("called from compiled code only")


def add_rows(features, start, end, factors, total):
    """total += Σ_i factors[i − start]·x_i over the rows start ≤ i < end, in float64."""
    raise NotImplementedError("called from compiled code only")


def add_curvature(features, start, end, factors, diagonal, scratch):
    """diagonal += Σ_i f_i·(x_i − m)² over the rows start ≤ i < end, f_i = factors[i − start] and m their mean under f.

    For CSR rows m is left out: it is near 0 where most values are, and subtracting it would touch every column.
    """
    raise NotImplementedError("called from compiled code only")


@kernel
def _multiply_dense_rows(features, start, end, vector, products):
    n_features = features.shape[1]
    flat = features.reshape(-1)
    row = start
    while row + 4 <= end:
        _prefetch_ahead(flat, (start + row) * n_features // 2, 2 * n_features)
        _multiply_four_rows(features, row, vector, products, row - start)
        row += 4
    while row < end:
        _multiply_one_row(features, row, vector, products, row - start)
        row += 1


@kernel
def _add_dense_rows(features, start, end, factors, total):
    n_features = features.shape[1]
    flat = features.reshape(-1)
    row = start
    while row + 4 <= end:
        _prefetch_ahead(flat, (end + row) * n_features // 2, 2 * n_features)
        _add_four_rows(features, row, factors, row - start, total)
        row += 4
    while row < end:
        _add_one_row(features, row, factors, row - start, total)
        row += 1


@kernel
def _prefetch_ahead(flat, place, n_floats):
    """Ask for `n_floats` behind `place`, at the fixed distance. Multiplying covers (start + row)/2 while row goes from
    start to end, adding (end + row)/2: together every row, once."""
    start = place + _FLOATS_AHEAD
    for offset in range(start, min(start + n_floats, flat.shape[0]), _FLOATS_PER_CACHE_LINE):
        prefetch(flat, offset)


@kernel
def _add_dense_curvature(features, start, end, factors, diagonal, scratch):
    scratch[:] = 0.0
    weight = 0.0
    for row in range(start, end):
        weight += factors[row - start]
        _add_moments(factors[row - start], features[row], scratch, diagonal)
    if weight > 0.0:
        for j in range(scratch.shape[0]):
            diagonal[j] -= scratch[j] * scratch[j] / weight


@kernel(fastmath=_REORDERED)
def _add_moments(factor, row, total, squares):
    for j in range(row.shape[0]):
        value = np.float64(row[j])
        total[j] += factor * value
        squares[j] += factor * value * value


@kernel(fastmath=_REORDERED)
def _multiply_csr_rows(features, start, end, vector, products):
    values, columns, row_ptr = features
    for row in range(start, end):
        total = 0.0
        for k in range(row_ptr[row], row_ptr[row + 1]):
            total += np.float64(values[k]) * vector[np.uint64(columns[k])]
        products[row - start] = total


@kernel
def _add_csr_rows(features, start, end, factors, total):
    values, columns, row_ptr = features
    for row in range(start, end):
        factor = factors[row - start]
        for k in range(row_ptr[row], row_ptr[row + 1]):
            total[np.uint64(columns[k])] += factor * np.float64(values[k])


@kernel
def _add_csr_curvature(features, start, end, factors, diagonal, scratch):
    values, columns, row_ptr = features
    for row in range(start, end):
        factor = factors[row - start]
        for k in range(row_ptr[row], row_ptr[row + 1]):
            value = np.float64(values[k])
            diagonal[np.uint64(columns[k])] += factor * value * value


@overload(multiply_rows)
def _multiply_rows(features, start, end, vector, products):
    rows = _multiply_dense_rows if isinstance(features, types.Array) else _multiply_csr_rows
    return lambda features, start, end, vector, products: rows(features, start, end, vector, products)


@overload(add_rows)
def _add_rows(features, start, end, factors, total):
    rows = _add_dense_rows if isinstance(features, types.Array) else _add_csr_rows
    return lambda features, start, end, factors, total: rows(features, start, end, factors, total)


@overload(add_curvature)
def _add_curvature(features, start, end, factors, diagonal, scratch):
    rows = _add_dense_curvature if isinstance(features, types.Array) else _add_csr_curvature
    return lambda features, start, end, factors, diagonal, scratch: rows(
        features, start, end, factors, diagonal, scratch
    )
