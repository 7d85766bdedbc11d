"""Layers on the CPU, over blocks of 64 documents as `inputs` fills them. Sums run in the order of `SUM_RUN`."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.elementary_functions import exp64, tanh64
from rankwell.kernels.scoring.cpu.products import add_run_function
from rankwell.kernels.scoring.kinds import LANES, DenseArrays, SumArrays
from rankwell.kernels.scoring.rules import EXP, IDENTITY, RELU, SIGMOID, SUM_RUN, TANH

# Units and documents whose sums are in registers at a time; units that are left over take all 64 documents each.
_UNITS, _LANES = 4, 32
_add_run_of_tile, _add_run_of_unit = add_run_function(_UNITS, _LANES), add_run_function(1, LANES)


def run_dense(values: np.ndarray, layer: DenseArrays) -> np.ndarray:
    """activation(weights · values + bias): float64 (n_blocks, n_in, 64) to (n_blocks, n_out, 64)."""
    out = np.empty((len(values), len(layer.bias), LANES))
    _dense(values, layer.weights, layer.bias, out)
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
def _dense(values, weights, bias, out):
    n_in, n_units = values.shape[1], weights.shape[0]
    in_tiles = n_units // _UNITS * _UNITS
    for block in range(values.shape[0]):
        inputs, to = values[block], out[block]
        for unit in range(n_units):
            for lane in range(LANES):
                to[unit, lane] = 0.0
        for first in range(0, n_in, SUM_RUN):
            end = min(first + SUM_RUN, n_in)
            for lane in range(0, LANES, _LANES):
                for unit in range(0, in_tiles, _UNITS):
                    _add_run_of_tile(weights, inputs, to, unit, first, end, lane)
            for unit in range(in_tiles, n_units):
                _add_run_of_unit(weights, inputs, to, unit, first, end, 0)
        for unit in range(n_units):
            for lane in range(LANES):
                to[unit, lane] += bias[unit]


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


@kernel(error_model="numpy")
def _activate(values, activation):
    """values = activation(values), in place; any activation except the identity."""
    if activation == SIGMOID:
        for place in range(len(values)):
            # No overflow for either sign of x.
            x = values[place]
            shrunk = exp64(-abs(x))
            values[place] = (1.0 if x >= 0.0 else shrunk) / (1.0 + shrunk)
    elif activation == RELU:
        for place in range(len(values)):
            values[place] = max(values[place], 0.0)
    elif activation == TANH:
        for place in range(len(values)):
            values[place] = tanh64(values[place])
    elif activation == EXP:
        for place in range(len(values)):
            values[place] = exp64(values[place])
