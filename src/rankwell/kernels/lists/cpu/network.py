"""The network on the CPU, some neighbouring documents at a time: forward and backward (the thesis's tasks FP and BP).

The parameters' layout is `kernels/lists/network_shape.py`'s. Hidden layers are BLAS matrix products over at most
`chunk_docs` documents, small enough that a query stays in cache and BLAS runs on this thread (so the number of threads
never changes a bit). The output unit's dot products are vector code whose sum the compiler may reorder (`reassoc`),
once, at compile time.

Dropout keeps a hidden unit's output with probability 1 − rate and divides it by that; a dropped output is 0, which also
stops its gradient, so no mask is stored.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.cpu.elementary_functions import exp32, sigmoid32
from rankwell.kernels.cpu.random_numbers import random_unit

IDENTITY, SIGMOID, RELU, TANH = range(4)
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
# OpenBLAS runs a product of fewer multiplications than this on the calling thread.
_SERIAL_PRODUCT = 1 << 17
_MOST_DOCS = 256


def chunk_docs(inputs: np.ndarray, units: np.ndarray) -> int:
    """How many documents go through the layers at a time."""
    widest = int((inputs * units).max()) if len(units) else 1
    return max(16, min(_MOST_DOCS, _SERIAL_PRODUCT // widest))


@inner_kernel(error_model="numpy", fastmath={"reassoc", "contract"})
def dot(a, b):
    total = _ZERO
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@inner_kernel(error_model="numpy", fastmath={"contract"})
def add_scaled(scale, x, y):
    """y += scale · x"""
    for i in range(len(y)):
        y[i] += scale * x[i]


@inner_kernel(error_model="numpy")
def activate(values, activation):
    """Replace values by their activation."""
    if activation == SIGMOID:
        for i in range(len(values)):
            values[i] = sigmoid32(values[i])
    elif activation == RELU:
        for i in range(len(values)):
            values[i] = max(values[i], _ZERO)
    elif activation == TANH:
        for i in range(len(values)):
            values[i] = np.float32(2.0) / (_ONE + exp32(np.float32(-2.0) * values[i])) - _ONE


@inner_kernel(error_model="numpy")
def times_slope(delta, outputs, activation, keep):
    """delta times the activation's derivative at its output; `keep` undoes dropout's scale."""
    if activation == SIGMOID:
        for i in range(len(delta)):
            a = outputs[i] * keep
            delta[i] *= a * (_ONE - a)
    elif activation == RELU:
        for i in range(len(delta)):
            delta[i] = delta[i] if outputs[i] > _ZERO else _ZERO
    elif activation == TANH:
        for i in range(len(delta)):
            a = outputs[i] * keep
            delta[i] *= _ONE - a * a


@kernel(error_model="numpy", inline="always")
def _drop(values, units, rate, seed, column):
    keep = np.float32(1.0 - rate)
    for i in range(len(values)):
        if random_unit(seed, i // units, column + i % units) < rate:
            values[i] = _ZERO
        else:
            values[i] /= keep


@inner_kernel(error_model="numpy")
def _layer_block(shape, buffer, place, n):
    """One layer's (n_docs, units) block of a buffer that holds all layers one after another."""
    units = shape.units[place]
    start = shape.columns[place] * n
    return buffer[start : start + n * units].reshape(n, units)


@inner_kernel(error_model="numpy")
def _layer_weights(shape, flat, place):
    start, inputs, units = shape.weights[place], shape.inputs[place], shape.units[place]
    return flat[start : start + inputs * units].reshape(inputs, units)


@kernel(error_model="numpy", inline="always")
def forward(shape, parameters, features, hidden, scores, rate, seed):
    """Score some documents; their hidden units' outputs stay in `hidden` for `backward`.

    features : float32 (n_docs, n_features), C order; hidden : float32 (≥ n_docs · n_hidden,); scores : float32
    (n_docs,). rate, seed : dropout; rate is 0.0 except in training.
    """
    n = features.shape[0]
    x = features
    for place in range(len(shape.units)):
        units = shape.units[place]
        out = _layer_block(shape, hidden, place, n)
        np.dot(x, _layer_weights(shape, parameters, place), out)
        bias = parameters[shape.biases[place] : shape.biases[place] + units]
        for d in range(n):
            for u in range(units):
                out[d, u] += bias[u]
        values = out.reshape(n * units)
        activate(values, shape.hidden_activation)
        if rate > 0.0:
            _drop(values, units, rate, seed, shape.columns[place])
        x = out
    start = shape.output_weights
    weights = parameters[start : start + shape.output_inputs]
    bias = parameters[start + shape.output_inputs]
    for d in range(n):
        scores[d] = dot(x[d], weights) + bias
    activate(scores, shape.output_activation)


@kernel(error_model="numpy", inline="always")
def _output_gradient(shape, x, score_gradient, gradient):
    start, width = shape.output_weights, shape.output_inputs
    weights = gradient[start : start + width]
    for d in range(x.shape[0]):
        add_scaled(score_gradient[d], x[d], weights)
        gradient[start + width] += score_gradient[d]


@kernel(error_model="numpy", inline="always")
def _layer_gradient(shape, place, x, delta, product, gradient):
    """Add ∂L/∂weights = xᵀ·delta and ∂L/∂bias = Σ_d delta_d of one layer."""
    inputs, units = shape.inputs[place], shape.units[place]
    block = product[: inputs * units]
    np.dot(x.T, delta, block.reshape(inputs, units))
    start = shape.weights[place]
    add_scaled(_ONE, block, gradient[start : start + inputs * units])
    bias = gradient[shape.biases[place] : shape.biases[place] + units]
    for d in range(delta.shape[0]):
        for u in range(units):
            bias[u] += delta[d, u]


@kernel(error_model="numpy", inline="always")
def backward(shape, parameters, features, hidden, scores, score_gradient, gradient, deltas, product, rate):
    """Add ∂L/∂parameters of some documents to `gradient`, from ∂L/∂score (overwritten).

    deltas : float32 (≥ n_docs · n_hidden,), scratch; product : float32 (n_parameters,), scratch
    """
    n = features.shape[0]
    layers = len(shape.units)
    times_slope(score_gradient, scores, shape.output_activation, _ONE)
    last = features if layers == 0 else _layer_block(shape, hidden, layers - 1, n)
    _output_gradient(shape, last, score_gradient, gradient)
    if layers == 0:
        return
    delta = _layer_block(shape, deltas, layers - 1, n)
    start = shape.output_weights
    for d in range(n):
        for u in range(shape.output_inputs):
            delta[d, u] = score_gradient[d] * parameters[start + u]
    keep = np.float32(1.0 - rate)
    for place in range(layers - 1, -1, -1):
        outputs = _layer_block(shape, hidden, place, n).reshape(n * shape.units[place])
        values = delta.reshape(n * shape.units[place])
        times_slope(values, outputs, shape.hidden_activation, keep)
        if rate > 0.0:
            for i in range(len(values)):
                values[i] = values[i] / keep if outputs[i] != _ZERO else _ZERO
        x = features if place == 0 else _layer_block(shape, hidden, place - 1, n)
        _layer_gradient(shape, place, x, delta, product, gradient)
        if place > 0:
            below = _layer_block(shape, deltas, place - 1, n)
            np.dot(delta, _layer_weights(shape, parameters, place).T, below)
            delta = below
