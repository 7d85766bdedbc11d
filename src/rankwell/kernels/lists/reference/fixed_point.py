"""The integer model of fixed-point back propagation, in unbounded integers, as defined by `fixed_point_format`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rankwell.kernels.lists.fixed_point_format import (
    BATCH,
    DIRECT,
    INTEGER_BITS,
    LEAST_EXPONENT,
    SLOPE_BITS,
    FixedPointFormat,
)


def saturate(value: int, bits: int) -> int:
    return max(-(1 << (bits - 1)), min((1 << (bits - 1)) - 1, value))


def quantise(value: float, exponent: int, bits: int) -> int:
    return saturate(math.floor(float(value) * 2.0 ** (bits - 1 - exponent) + 0.5), bits)


def multiply(p: int, q: int, bits: int) -> int:
    return saturate((p * q + (1 << (bits - 2))) >> (bits - 1), bits)


def guard_bits(terms: int) -> int:
    """⌈log2 terms⌉: by how much a sum of so many terms may exceed their range."""
    return (terms - 1).bit_length()


def shift_down(value: int, places: int) -> int:
    """value / 2^places, rounded half up"""
    return (value + (1 << (places - 1))) >> places if places else value


def slope(output: int, bits: int) -> int:
    """a·(1 − a) in the range up to 1/4"""
    return saturate((output * ((1 << (bits - 1)) - output) + (1 << (bits - 4))) >> (bits - 3), bits)


def least_exponent(values: np.ndarray) -> int:
    """The smallest e with |v| < 2^e for every v; 0 for zeros."""
    return math.frexp(float(np.abs(values.astype(np.float32)).max(initial=0.0)))[1]


def gradient_exponent(gradient: float) -> int:
    """E_d"""
    return max(math.frexp(gradient)[1], LEAST_EXPONENT) if gradient != 0.0 else LEAST_EXPONENT


def loss_scale_exponent(fmt: FixedPointFormat, query_exponent: int) -> int:
    """log2 F, from E_q"""
    return 0 if fmt.method == DIRECT else INTEGER_BITS - query_exponent


def batch_of(fmt: FixedPointFormat, query_exponent: int, exponent: int) -> int:
    """B, from E_q and E_d"""
    return min(query_exponent - exponent, fmt.batches - 1) if fmt.method == BATCH else 0


def fixed_point_backward(
    fmt: FixedPointFormat,
    features: np.ndarray,
    hidden: Sequence[np.ndarray],
    scores: np.ndarray,
    layers: Sequence[tuple[np.ndarray, np.ndarray]],
    sigmoid_output: bool,
    score_gradient: np.ndarray,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """∂L/∂weights and ∂L/∂bias of every layer for one query; hidden layers have sigmoids.

    hidden : each hidden layer's outputs (n_docs, units); layers : weights (n_out, n_in) and bias, the output last.
    """
    bits, wide = fmt.bits, fmt.accumulator_bits
    sums = [
        {batch: (np.zeros(w.shape, dtype=object), np.zeros(b.shape, dtype=object)) for batch in range(fmt.batches)}
        for w, b in layers
    ]
    exponents = [least_exponent(w) for w, _ in layers]
    whole = [[[quantise(v, e, bits) for v in row] for row in w] for (w, _), e in zip(layers, exponents, strict=True)]

    def add(place: int, batch: int, unit: int, delta: int, inputs: list[int]) -> None:
        weights, bias = sums[place][batch]
        for i, x in enumerate(inputs):
            weights[unit, i] = saturate(weights[unit, i] + multiply(delta, x, bits), wide)
        bias[unit] = saturate(bias[unit] + delta, wide)

    gradients = [float(gradient) for gradient in score_gradient.astype(np.float32)]
    query_exponent = max((gradient_exponent(gradient) for gradient in gradients), default=LEAST_EXPONENT)
    scale_exponent = loss_scale_exponent(fmt, query_exponent)
    for d, gradient in enumerate(gradients):
        batch = batch_of(fmt, query_exponent, gradient_exponent(gradient))
        delta = [quantise(gradient * 2.0 ** (scale_exponent + batch), INTEGER_BITS, bits)]
        if sigmoid_output:
            delta = [multiply(delta[0], slope(quantise(scores[d], 0, bits), bits), bits)]
        inputs = [[quantise(v, fmt.feature_bits, bits) for v in features[d]]]
        inputs += [[quantise(v, 0, bits) for v in outputs[d]] for outputs in hidden]
        for place in range(len(layers) - 1, -1, -1):
            for unit, value in enumerate(delta):
                add(place, batch, unit, value, inputs[place])
            if place > 0:
                below = []
                for i, output in enumerate(inputs[place]):
                    total = 0
                    for unit, value in enumerate(delta):
                        total = saturate(total + multiply(value, whole[place][unit][i], bits), wide)
                    total = shift_down(total, guard_bits(len(delta)))
                    below.append(multiply(saturate(total, bits), slope(output, bits), bits))
                delta = below
    layer_gradients = []
    exponent = INTEGER_BITS - (bits - 1) - scale_exponent + (SLOPE_BITS if sigmoid_output else 0)
    for place in range(len(layers) - 1, -1, -1):
        layer_gradients.append(_unscaled(sums[place], exponent, fmt.feature_bits if place == 0 else 0))
        exponent += exponents[place] + SLOPE_BITS + guard_bits(len(layers[place][1]))
    return layer_gradients[::-1]


def _unscaled(
    sums: dict[int, tuple[np.ndarray, np.ndarray]], exponent: int, input_exponent: int
) -> tuple[np.ndarray, np.ndarray]:
    """Σ_B sum·2^(exponent − B) of one layer's weights and biases."""
    weights, bias = np.zeros(sums[0][0].shape), np.zeros(sums[0][1].shape)
    for batch, (w, b) in sums.items():
        weights += w.astype(np.float64) * 2.0 ** (exponent + input_exponent - batch)
        bias += b.astype(np.float64) * 2.0 ** (exponent - batch)
    return weights, bias
