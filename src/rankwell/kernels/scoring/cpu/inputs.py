"""Model evaluation on the CPU: inputs and layers over blocks of 64 documents, one block a task.

Values lie as (block, input, lane): 64 documents side by side, so that every loop over lanes becomes vector code while
each document's own sums keep their order (`SUM_RUN`). A document's score depends neither on its batch nor on threads.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.scoring.cpu.lanes import LANES, count_below, load_column
from rankwell.kernels.scoring.rules import EXP, RELU, SIGMOID, SUM_RUN, TANH


@kernel(parallel=True)
def linear_inputs(rows, feature, scale, offset, missing, first_input, out):
    """out[b, first_input + i, lane] = scale[i] · x + offset[i], or missing[i] for NaN.

    rows : float32 (n_docs, n_features); out : float64 (n_blocks, n_inputs, 64)
    """
    for block in prange(out.shape[0]):
        values = np.empty(LANES, dtype=np.float32)
        start = block * LANES
        for i in range(len(feature)):
            load_column(rows, start, min(LANES, len(rows) - start), feature[i], values)
            to = out[block, first_input + i]
            for lane in range(LANES):
                x = values[lane]
                to[lane] = missing[i] if math.isnan(x) else scale[i] * np.float64(x) + offset[i]


@kernel(parallel=True)
def log_linear_inputs(rows, feature, scale, offset, missing, first_input, out):
    """out[b, first_input + i, lane] = scale[i] · log(x + 1) + offset[i], or missing[i] for NaN and x <= -1."""
    for block in prange(out.shape[0]):
        values = np.empty(LANES, dtype=np.float32)
        start = block * LANES
        for i in range(len(feature)):
            load_column(rows, start, min(LANES, len(rows) - start), feature[i], values)
            to = out[block, first_input + i]
            for lane in range(LANES):
                x = np.float64(values[lane])
                to[lane] = scale[i] * math.log1p(x) + offset[i] if x > -1.0 else missing[i]


@kernel(parallel=True)
def bucket_inputs(rows, feature, edge_ptr, edges, bucket_values, missing, first_input, out):
    """out[b, first_input + i, lane] = the value of the bucket that x lies in, or missing[i] for NaN."""
    for block in prange(out.shape[0]):
        values, buckets = np.empty(LANES, dtype=np.float32), np.empty(LANES, dtype=np.uint32)
        start = block * LANES
        for i in range(len(feature)):
            load_column(rows, start, min(LANES, len(rows) - start), feature[i], values)
            count_below(edges[edge_ptr[i] : edge_ptr[i + 1]], values, buckets)
            of_input = bucket_values[edge_ptr[i] + i : edge_ptr[i + 1] + i + 1]
            to = out[block, first_input + i]
            for lane in range(LANES):
                to[lane] = missing[i] if math.isnan(values[lane]) else of_input[buckets[lane]]


@kernel
def _activate(x, activation):
    if activation == SIGMOID:
        # Without overflow for either sign of x.
        if x >= 0.0:
            return 1.0 / (1.0 + math.exp(-x))
        grown = math.exp(x)
        return grown / (1.0 + grown)
    if activation == RELU:
        return max(x, 0.0)
    if activation == TANH:
        return math.tanh(x)
    if activation == EXP:
        return math.exp(x)
    return x


@kernel(parallel=True)
def dense_layer(values, weights, bias, activation):
    """activation(weights · values + bias): float64 (n_blocks, n_in, 64) -> (n_blocks, n_out, 64)."""
    n_in, n_out = values.shape[1], weights.shape[0]
    out = np.empty((values.shape[0], n_out, LANES))
    for block in prange(values.shape[0]):
        run, total = np.empty(LANES), np.empty(LANES)
        for unit in range(n_out):
            total[:] = 0.0
            for first in range(0, n_in, SUM_RUN):
                run[:] = 0.0
                for i in range(first, min(first + SUM_RUN, n_in)):
                    weight, inputs = weights[unit, i], values[block, i]
                    for lane in range(LANES):
                        run[lane] += weight * inputs[lane]
                for lane in range(LANES):
                    total[lane] += run[lane]
            for lane in range(LANES):
                out[block, unit, lane] = _activate(total[lane] + bias[unit], activation)
    return out


@kernel(parallel=True)
def sum_layer(values):
    """The sum of a document's inputs: float64 (n_blocks, n_in, 64) -> (n_blocks, 1, 64)."""
    n_in = values.shape[1]
    out = np.zeros((values.shape[0], 1, LANES))
    for block in prange(values.shape[0]):
        run, total = np.empty(LANES), out[block, 0]
        for first in range(0, n_in, SUM_RUN):
            run[:] = 0.0
            for i in range(first, min(first + SUM_RUN, n_in)):
                inputs = values[block, i]
                for lane in range(LANES):
                    run[lane] += inputs[lane]
            for lane in range(LANES):
                total[lane] += run[lane]
    return out
