"""Back propagation in fixed point on the CPU: the integer arithmetic of `lists/fixed_point_format.py`, in int64.

The loop order is the definition's: documents in order, so that saturating sums are the same bit for bit.
"""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.lists.fixed_point_format import BATCH, DIRECT, INTEGER_BITS, LEAST_EXPONENT, SLOPE_BITS


@kernel(error_model="numpy", inline="always")
def _saturate(value, limit):
    """limit = 2^(bits − 1)"""
    return max(-limit, min(limit - 1, value))


@kernel(error_model="numpy")
def quantise(value, exponent, bits):
    limit = np.int64(1) << np.int64(bits - 1)
    scaled = np.floor(float(value) * 2.0 ** (bits - 1 - exponent) + 0.5)
    return np.int64(max(-float(limit), min(float(limit - 1), scaled)))


@kernel(error_model="numpy", inline="always")
def _multiply(p, q, bits, half, limit):
    return _saturate((p * q + half) >> np.int64(bits - 1), limit)


@kernel(error_model="numpy")
def _add_products(delta, inputs, bits, wide_limit, sums):
    """sums += delta·inputs, every product rounded, every sum saturated."""
    half, limit = np.int64(1) << np.int64(bits - 2), np.int64(1) << np.int64(bits - 1)
    for i in range(len(inputs)):
        sums[i] = _saturate(sums[i] + _multiply(delta, inputs[i], bits, half, limit), wide_limit)


@kernel(error_model="numpy")
def _slope(output, bits):
    """a·(1 − a) in the range up to 1/4"""
    limit, half = np.int64(1) << np.int64(bits - 1), np.int64(1) << np.int64(bits - 4)
    return _saturate((output * (limit - output) + half) >> np.int64(bits - 3), limit)


@kernel(error_model="numpy")
def _least_exponent(values):
    """The smallest e with |v| < 2^e for every v; 0 for zeros."""
    largest = 0.0
    for i in range(len(values)):
        largest = max(largest, abs(float(values[i])))
    return math.frexp(largest)[1]


@kernel(error_model="numpy")
def _layer(shape, place):
    """Inputs, units and first weight of a layer; the output layer comes after the hidden ones."""
    if place == len(shape.units):
        return shape.output_inputs, 1, shape.output_weights
    return shape.inputs[place], shape.units[place], shape.weights[place]


@kernel(error_model="numpy")
def quantise_weights(shape, parameters, bits, weights):
    """The weights as integers; returns each layer's exponent."""
    layers = len(shape.units) + 1
    exponents = np.zeros(layers, np.int64)
    for place in range(layers):
        inputs, units, start = _layer(shape, place)
        end = start + inputs * units
        exponents[place] = _least_exponent(parameters[start:end])
        for i in range(start, end):
            weights[i] = quantise(parameters[i], exponents[place], bits)
    return exponents


@kernel(error_model="numpy", inline="always")
def _gradient_exponent(gradient):
    """E_d; see `fixed_point_format`."""
    return max(math.frexp(gradient)[1], LEAST_EXPONENT) if gradient != 0.0 else LEAST_EXPONENT


@kernel(error_model="numpy")
def _query_exponent(score_gradient):
    """E_q"""
    largest = LEAST_EXPONENT
    for d in range(len(score_gradient)):
        largest = max(largest, _gradient_exponent(float(np.float32(score_gradient[d]))))
    return largest


@kernel(error_model="numpy")
def _guard_bits(terms):
    """⌈log2 terms⌉: by how much a sum of so many terms may exceed their range."""
    guard = 0
    while (1 << guard) < terms:
        guard += 1
    return guard


@kernel(error_model="numpy")
def _backward_document(shape, fmt, weights, inputs, score, value, sums, deltas):
    """One document: its score gradient `value` (quantised) through all layers into `sums` (units first, inputs within).

    inputs : int64 (n_features + n_hidden,), features first, then every layer's outputs; deltas : int64 (2, widest).
    """
    bits = fmt.bits
    half, limit = np.int64(1) << np.int64(bits - 2), np.int64(1) << np.int64(bits - 1)
    wide = np.int64(1) << np.int64(fmt.accumulator_bits - 1)
    layers = len(shape.units)
    if shape.output_activation == 1:
        value = _multiply(value, _slope(quantise(score, 0, bits), bits), bits, half, limit)
    start, width = shape.output_weights, shape.output_inputs
    first = shape.n_features + shape.columns[layers - 1] if layers > 0 else 0
    _add_products(value, inputs[first : first + width], bits, wide, sums[start : start + width])
    sums[start + width] = _saturate(sums[start + width] + value, wide)
    here, above = deltas[0], deltas[1]
    above[0] = value
    above_units, above_start = 1, start
    for place in range(layers - 1, -1, -1):
        units = shape.units[place]
        outputs = inputs[shape.n_features + shape.columns[place] :]
        guard = np.int64(_guard_bits(above_units))
        guard_half = (np.int64(1) << guard) >> np.int64(1)
        for i in range(units):
            total = np.int64(0)
            for unit in range(above_units):
                weight = weights[above_start + i * above_units + unit]
                total = _saturate(total + _multiply(above[unit], weight, bits, half, limit), wide)
            total = _saturate((total + guard_half) >> guard, limit)
            here[i] = _multiply(total, _slope(outputs[i], bits), bits, half, limit)
        below = shape.n_features + shape.columns[place - 1] if place > 0 else 0
        layer_inputs = inputs[below : below + shape.inputs[place]]
        start = shape.weights[place]
        for unit in range(units):
            row = start + unit * shape.inputs[place]
            _add_products(here[unit], layer_inputs, bits, wide, sums[row : row + shape.inputs[place]])
            bias = shape.biases[place] + unit
            sums[bias] = _saturate(sums[bias] + here[unit], wide)
        above_units, above_start = units, start
        here, above = above, here


@kernel(error_model="numpy")
def unscale(shape, fmt, scale_exponent, exponents, sums, used, gradient):
    """gradient += Σ_B sums[B]·2^e; the sums have units first, the parameters inputs first."""
    exponent = INTEGER_BITS - (fmt.bits - 1) - scale_exponent
    if shape.output_activation == 1:
        exponent += SLOPE_BITS
    for place in range(len(shape.units), -1, -1):
        inputs, units, start = _layer(shape, place)
        bias = start + units * inputs
        bias_scale = 2.0**exponent
        scale = bias_scale * 2.0 ** (fmt.feature_bits if place == 0 else 0)
        for unit in range(units):
            for i in range(inputs):
                total = _over_batches(sums, used, start + unit * inputs + i)
                gradient[start + i * units + unit] += np.float32(total * scale)
            gradient[bias + unit] += np.float32(_over_batches(sums, used, bias + unit) * bias_scale)
        exponent += exponents[place] + SLOPE_BITS + _guard_bits(units)


@kernel(error_model="numpy")
def _over_batches(sums, used, place):
    """Σ_B sums[B, place]/2^B"""
    total = 0.0
    for batch in range(len(used)):
        if used[batch]:
            total += float(sums[batch, place]) * 2.0**-batch
    return total


@kernel(error_model="numpy")
def fixed_point_backward(shape, fmt, parameters, features, hidden, chunk, scores, score_gradient, gradient):
    """Add one query's ∂L/∂parameters, computed in fixed point, to `gradient`.

    features : int32 (n_docs, n_features), quantised; hidden : float32, as `forward` filled it, `chunk` documents at a
    time; score_gradient : float64 (n_docs,)
    """
    n = features.shape[0]
    layers = len(shape.units)
    sums = np.zeros((fmt.batches, shape.n_parameters), np.int64)
    used = np.zeros(fmt.batches, np.bool_)
    widest = 1
    for place in range(layers):
        widest = max(widest, shape.units[place])
    deltas = np.empty((2, widest), np.int64)
    inputs = np.empty(shape.n_features + shape.n_hidden, np.int64)
    weights = np.empty(shape.n_parameters, np.int64)
    exponents = quantise_weights(shape, parameters, fmt.bits, weights)
    query_exponent = _query_exponent(score_gradient)
    scale_exponent = 0 if fmt.method == DIRECT else INTEGER_BITS - query_exponent
    for d in range(n):
        first = d - d % chunk
        docs = min(chunk, n - first)
        for i in range(shape.n_features):
            inputs[i] = features[d, i]
        for place in range(layers):
            units, column = shape.units[place], shape.columns[place]
            row = first * shape.n_hidden + column * docs + (d - first) * units
            for u in range(units):
                inputs[shape.n_features + column + u] = quantise(hidden[row + u], 0, fmt.bits)
        slope = float(np.float32(score_gradient[d]))
        batch = min(query_exponent - _gradient_exponent(slope), fmt.batches - 1) if fmt.method == BATCH else 0
        used[batch] = True
        value = quantise(slope * 2.0 ** (scale_exponent + batch), INTEGER_BITS, fmt.bits)
        _backward_document(shape, fmt, weights, inputs, scores[d], value, sums[batch], deltas)
    unscale(shape, fmt, scale_exponent, exponents, sums, used, gradient)
