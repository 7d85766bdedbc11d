"""Model evaluation on the CPU: inputs and layers over a block of rows, one row a task.

Sums run in a fixed order (eight interleaved partial sums), so a row's score does not depend on the batch it is in.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange


@njit(cache=True, nogil=True, parallel=True)
def linear_inputs(rows, feature, scale, offset, missing, out):
    """out[d, i] = scale[i] · rows[d, feature[i]] + offset[i], or missing[i] for NaN."""
    for d in prange(rows.shape[0]):
        row = rows[d]
        for i in range(len(feature)):
            x = row[feature[i]]
            out[d, i] = missing[i] if math.isnan(x) else scale[i] * np.float64(x) + offset[i]


@njit(cache=True, nogil=True)
def _edges_below(edges, start, end, x):
    """How many of the ascending edges[start:end] are below x."""
    first = start
    while start < end:
        middle = (start + end) // 2
        if edges[middle] < x:
            start = middle + 1
        else:
            end = middle
    return start - first


@njit(cache=True, nogil=True, parallel=True)
def bucket_inputs(rows, feature, edge_ptr, edges, values, missing, out):
    """out[d, i] = the value of the bucket that rows[d, feature[i]] lies in, or missing[i] for NaN."""
    for d in prange(rows.shape[0]):
        row = rows[d]
        for i in range(len(feature)):
            x = row[feature[i]]
            if math.isnan(x):
                out[d, i] = missing[i]
            else:
                bucket = _edges_below(edges, edge_ptr[i], edge_ptr[i + 1], x)
                out[d, i] = values[edge_ptr[i] + i + bucket]


@njit(cache=True, nogil=True)
def _dot(a, b):
    partial = np.zeros(8)
    whole = len(a) - len(a) % 8
    for i in range(0, whole, 8):
        for lane in range(8):
            partial[lane] += a[i + lane] * b[i + lane]
    total = 0.0
    for i in range(whole, len(a)):
        total += a[i] * b[i]
    for lane in range(8):
        total += partial[lane]
    return total


@njit(cache=True, nogil=True)
def _sigmoid(x):
    """1 / (1 + e^−x) without overflow for either sign of x."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    grown = math.exp(x)
    return grown / (1.0 + grown)


@njit(cache=True, nogil=True)
def _activate(x, activation):
    if activation == "sigmoid":
        return _sigmoid(x)
    if activation == "relu":
        return max(x, 0.0)
    if activation == "tanh":
        return math.tanh(x)
    return x


@njit(cache=True, nogil=True, parallel=True)
def dense_layer(values, weights, bias, activation):
    """activation(weights · values[d] + bias) for every row d: float64 (n_docs, n_out)."""
    out = np.empty((values.shape[0], weights.shape[0]))
    for d in prange(values.shape[0]):
        for unit in range(weights.shape[0]):
            out[d, unit] = _activate(_dot(values[d], weights[unit]) + bias[unit], activation)
    return out


@njit(cache=True, nogil=True, parallel=True)
def sum_layer(values):
    """The sum of each row: float64 (n_docs, 1)."""
    out = np.empty((values.shape[0], 1))
    for d in prange(values.shape[0]):
        total = 0.0
        for i in range(values.shape[1]):
            total += values[d, i]
        out[d, 0] = total
    return out
