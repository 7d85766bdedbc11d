"""Inputs on the CPU: linear, log-linear and bucket inputs over blocks of 64 documents.

Values are stored as (block, input, lane): 64 documents next to each other, so that loops over lanes are vectorised and
each document's sums keep their order. A kernel fills all blocks of `out` on one thread; for many documents, several
threads call it with a range of rows each.

rows : float32 (n_docs, n_features), C order; arrays : the kind's named tuple of `kinds`; out : float64 (n_blocks,
n_inputs, 64), n_blocks = ceil(n_docs / 64). Lanes after the last document repeat it.
"""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.elementary_functions import log1p64
from rankwell.kernels.scoring.cpu.lanes import LANES, count_below, load_column


@kernel
def linear_inputs(rows, arrays, first_input, out):
    """out[b, first_input + i, lane] = scale[i] · x + offset[i], or missing[i] for NaN."""
    for block in range(out.shape[0]):
        start = block * LANES
        n_docs = min(LANES, len(rows) - start)
        for i in range(len(arrays.feature)):
            feature, scale, offset, missing = arrays.feature[i], arrays.scale[i], arrays.offset[i], arrays.missing[i]
            to = out[block, first_input + i]
            for lane in range(n_docs):
                x = rows[start + lane, feature]
                to[lane] = missing if math.isnan(x) else scale * np.float64(x) + offset
            for lane in range(n_docs, LANES):
                to[lane] = to[n_docs - 1]


@kernel(error_model="numpy")
def log_linear_inputs(rows, arrays, first_input, out):
    """out[b, first_input + i, lane] = scale[i] · log(x + 1) + offset[i], or missing[i] for NaN and x <= -1."""
    values = np.empty(LANES, dtype=np.float32)
    for block in range(out.shape[0]):
        for i in range(len(arrays.feature)):
            load_column(rows, block * LANES, arrays.feature[i], values)
            scale, offset, missing = arrays.scale[i], arrays.offset[i], arrays.missing[i]
            to = out[block, first_input + i]
            for lane in range(LANES):
                x = np.float64(values[lane])
                line = scale * log1p64(x) + offset
                to[lane] = line if x > -1.0 else missing


@kernel
def bucket_inputs(rows, arrays, first_input, out):
    """out[b, first_input + i, lane] = the value of the bucket of x, or missing[i] for NaN."""
    values, buckets = np.empty(LANES, dtype=np.float32), np.empty(LANES, dtype=np.uint32)
    for block in range(out.shape[0]):
        for i in range(len(arrays.feature)):
            load_column(rows, block * LANES, arrays.feature[i], values)
            start, end = arrays.edge_ptr[i], arrays.edge_ptr[i + 1]
            count_below(arrays.edges[start:end], values, buckets)
            of_input = arrays.values[start + i : end + i + 1]
            missing = arrays.missing[i]
            to = out[block, first_input + i]
            for lane in range(LANES):
                to[lane] = missing if math.isnan(values[lane]) else of_input[buckets[lane]]
