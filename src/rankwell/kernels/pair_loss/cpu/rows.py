"""Rows of features, dense or CSR, times vectors: the parts of a fused product that read X.

`features` is a float32 array (n_docs, n_features) in C order, or `SparseRows`; the type decides at compile time.
Products are summed in float64: the conversion costs less than the reads from memory that it waits for, and features
with a large mean, which cancels within a query, keep their digits. Inputs contain no NaN and no infinity here.

Each query's rows are read twice, from memory when they are multiplied and from the cache when they are added. Without
prefetches, memory would be idle half of the time; so both loops prefetch later rows, half a row for each row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from scipy import sparse

from rankwell.kernels.cpu.compilation import call_of, inner_kernel, kernel
from rankwell.kernels.cpu.vectors import add_rows_function, multiply_rows_function, prefetch

_REORDERED = {"reassoc", "contract", "nsz"}
_FLOATS_PER_CACHE_LINE = 16
# The prefetch distance: more than half a query, so that its last rows arrive in time, and less than the cache's size.
_FLOATS_AHEAD = 2**15

_multiply_one_row, _multiply_four_rows = multiply_rows_function(1), multiply_rows_function(4)
_add_one_row, _add_four_rows = add_rows_function(1), add_rows_function(4)


class SparseRows(NamedTuple):
    """A CSR matrix: values float32 and columns int32 or int64, one per stored value; row_ptr (n_docs + 1,) too."""

    values: np.ndarray
    columns: np.ndarray
    row_ptr: np.ndarray


def kernel_features(features: Any) -> Any:
    """Features in the form that kernels take: the dense array itself, or the arrays of a CSR matrix."""
    return SparseRows(features.data, features.indices, features.indptr) if sparse.issparse(features) else features


@inner_kernel
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


@inner_kernel
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


@kernel(inline="always")
def _prefetch_ahead(flat, place, n_floats):
    """Prefetch `n_floats` after `place`, at the fixed distance. Multiplying covers (start + row)/2 while row goes from
    start to end, adding (end + row)/2: together every row, once."""
    start = place + _FLOATS_AHEAD
    for offset in range(start, min(start + n_floats, flat.shape[0]), _FLOATS_PER_CACHE_LINE):
        prefetch(flat, offset)


@inner_kernel
def _add_dense_curvature(features, start, end, factors, diagonal, means):
    for j in range(means.shape[0]):
        means[j] = 0.0
    weight = 0.0
    for row in range(start, end):
        weight += factors[row - start]
        _add_moments(factors[row - start], features[row], means, diagonal)
    if weight > 0.0:
        for j in range(means.shape[0]):
            diagonal[j] -= means[j] * means[j] / weight


@inner_kernel(fastmath=_REORDERED)
def _add_moments(factor, row, total, squares):
    for j in range(row.shape[0]):
        value = np.float64(row[j])
        total[j] += factor * value
        squares[j] += factor * value * value


@inner_kernel(fastmath=_REORDERED)
def _multiply_csr_rows(features, start, end, vector, products):
    values, columns, row_ptr = features.values, features.columns, features.row_ptr
    for row in range(start, end):
        total = 0.0
        for k in range(row_ptr[row], row_ptr[row + 1]):
            total += np.float64(values[k]) * vector[np.uint64(columns[k])]
        products[row - start] = total


@inner_kernel
def _add_csr_rows(features, start, end, factors, total):
    values, columns, row_ptr = features.values, features.columns, features.row_ptr
    for row in range(start, end):
        factor = factors[row - start]
        for k in range(row_ptr[row], row_ptr[row + 1]):
            total[np.uint64(columns[k])] += factor * np.float64(values[k])


@inner_kernel
def _add_csr_curvature(features, start, end, factors, diagonal, means):
    values, columns, row_ptr = features.values, features.columns, features.row_ptr
    for row in range(start, end):
        factor = factors[row - start]
        for k in range(row_ptr[row], row_ptr[row + 1]):
            value = np.float64(values[k])
            diagonal[np.uint64(columns[k])] += factor * value * value


@intrinsic
def multiply_rows(typing_context, features, start, end, vector, products):
    """products[i − start] = x_i·vector for the rows start ≤ i < end, in float64."""
    rows = _multiply_dense_rows if isinstance(features, types.Array) else _multiply_csr_rows
    return call_of(rows, typing_context, (features, start, end, vector, products))


@intrinsic
def add_rows(typing_context, features, start, end, factors, total):
    """total += Σ_i factors[i − start]·x_i over the rows start ≤ i < end, in float64."""
    rows = _add_dense_rows if isinstance(features, types.Array) else _add_csr_rows
    return call_of(rows, typing_context, (features, start, end, factors, total))


@intrinsic
def add_curvature(typing_context, features, start, end, factors, diagonal, means):
    """diagonal += Σ_i f_i·(x_i − m)² over the rows start ≤ i < end, f_i = factors[i − start] and m their mean under f.

    For CSR rows m is left out: it is near 0 if most values are, and subtracting it would make the rows dense.
    means : float64 (n_features,), scratch
    """
    rows = _add_dense_curvature if isinstance(features, types.Array) else _add_csr_curvature
    return call_of(rows, typing_context, (features, start, end, factors, diagonal, means))
