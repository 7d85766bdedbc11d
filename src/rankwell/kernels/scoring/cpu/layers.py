"""Layers on the CPU, over blocks of 64 documents as `inputs` fills them. Sums run in the order of `SUM_RUN`."""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.scoring.kinds import LANES, DenseArrays, SumArrays
from rankwell.kernels.scoring.rules import EXP, IDENTITY, RELU, SIGMOID, SUM_RUN, TANH


def run_dense(values: np.ndarray, layer: DenseArrays) -> np.ndarray:
    """activation(weights · values + bias): float64 (n_blocks, n_in, 64) to (n_blocks, n_out, 64)."""
    out = np.empty((len(values), len(layer.bias), LANES))
    _dense(values, layer.weights, layer.bias, np.empty(LANES), out)
    if layer.activation != IDENTITY:
        _activate(out.reshape(-1), layer.activation)
    return out


def run_sum(values: np.ndarray, layer: SumArrays) -> np.ndarray:
    """The sum or mean of a document's inputs, plus bias: float64 (n_blocks, n_in, 64) to (n_blocks, 1, 64)."""
    out = np.empty((len(values), 1, LANES))
    _sum(values, np.empty(LANES), out)
    if layer.is_mean:
        out /= values.shape[1]
    out += layer.bias
    return out


@kernel
def _dense(values, weights, bias, run, out):
    n_in = values.shape[1]
    for block in range(values.shape[0]):
        for unit in range(weights.shape[0]):
            total = out[block, unit]
            for lane in range(LANES):
                total[lane] = 0.0
            for first in range(0, n_in, SUM_RUN):
                for lane in range(LANES):
                    run[lane] = 0.0
                for i in range(first, min(first + SUM_RUN, n_in)):
                    weight, inputs = weights[unit, i], values[block, i]
                    for lane in range(LANES):
                        run[lane] += weight * inputs[lane]
                for lane in range(LANES):
                    total[lane] += run[lane]
            for lane in range(LANES):
                total[lane] += bias[unit]


@kernel
def _sum(values, run, out):
    n_in = values.shape[1]
    for block in range(values.shape[0]):
        total = out[block, 0]
        for lane in range(LANES):
            total[lane] = 0.0
        for first in range(0, n_in, SUM_RUN):
            for lane in range(LANES):
                run[lane] = 0.0
            for i in range(first, min(first + SUM_RUN, n_in)):
                inputs = values[block, i]
                for lane in range(LANES):
                    run[lane] += inputs[lane]
            for lane in range(LANES):
                total[lane] += run[lane]


@kernel
def _activate(values, activation):
    """values = activation(values), in place; any activation except the identity."""
    for place in range(len(values)):
        x = values[place]
        if activation == SIGMOID:
            # No overflow for either sign of x.
            if x >= 0.0:
                values[place] = 1.0 / (1.0 + math.exp(-x))
            else:
                grown = math.exp(x)
                values[place] = grown / (1.0 + grown)
        elif activation == RELU:
            values[place] = max(x, 0.0)
        elif activation == TANH:
            values[place] = math.tanh(x)
        elif activation == EXP:
            values[place] = math.exp(x)
