"""The integer model of fixed-point back propagation, in unbounded integers, as defined by `fixed_point_format`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rankwell.kernels.lists.fixed_point_format import BATCH, INTEGER_BITS, SLOPE_BITS, FixedPointFormat


def saturate(value: int, bits: int) -> int:
    return max(-(1 << (bits - 1)), min((1 << (bits - 1)) - 1, value))


def quantise(value: float, exponent: int, bits: int) -> int:
    return saturate(math.floor(float(value) * 2.0 ** (bits - 1 - exponent) + 0.5), bits)


def multiply(p: int, q: int, bits: int) -> int:
    return saturate((p * q + (1 << (bits - 2))) >> (bits - 1), bits)


def slope(output: int, bits: int) -> int:
    """a·(1 − a) in the range up to 1/4"""
    return saturate((output * ((1 << (bits - 1)) - output) + (1 << (bits - 4))) >> (bits - 3), bits)


def least_exponent(values: np.ndarray) -> int:
    """The smallest e with |v| < 2^e for every v; 0 for zeros."""
    largest = float(np.abs(values.astype(np.float32)).max(initial=0.0))
    return math.floor(math.log2(largest)) + 1 if largest > 0 else 0


def batch_of(probability: float, gradient: float, fmt: FixedPointFormat) -> int:
    largest = max(probability, abs(gradient))
    if fmt.method != BATCH:
        return 0
    if largest <= 0.0:
        return fmt.batches - 1
    return max(0, min(fmt.batches - 1, math.floor(-math.log2(largest))))


def fixed_point_backward(
    fmt: FixedPointFormat,
    scale_exponent: int,
    features: np.ndarray,
    hidden: Sequence[np.ndarray],
    scores: np.ndarray,
    layers: Sequence[tuple[np.ndarray, np.ndarray]],
    sigmoid_output: bool,
    score_gradient: np.ndarray,
    probabilities: np.ndarray,
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

    for d in range(len(features)):
        gradient = float(score_gradient[d])
        batch = batch_of(float(probabilities[d]), gradient, fmt)
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
                    below.append(multiply(saturate(total, bits), slope(output, bits), bits))
                delta = below
    gradients = []
    exponent = INTEGER_BITS - (bits - 1) - scale_exponent + (SLOPE_BITS if sigmoid_output else 0)
    for place in range(len(layers) - 1, -1, -1):
        gradients.append(_unscaled(sums[place], exponent, fmt.feature_bits if place == 0 else 0))
        exponent += exponents[place] + SLOPE_BITS
    return gradients[::-1]


def _unscaled(
    sums: dict[int, tuple[np.ndarray, np.ndarray]], exponent: int, input_exponent: int
) -> tuple[np.ndarray, np.ndarray]:
    """Σ_B sum·2^(exponent − B) of one layer's weights and biases."""
    weights, bias = np.zeros(sums[0][0].shape), np.zeros(sums[0][1].shape)
    for batch, (w, b) in sums.items():
        weights += w.astype(np.float64) * 2.0 ** (exponent + input_exponent - batch)
        bias += b.astype(np.float64) * 2.0 ** (exponent - batch)
    return weights, bias
