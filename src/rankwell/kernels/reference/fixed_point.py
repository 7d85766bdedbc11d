"""The integer model of fixed-point back propagation, in unbounded integers: what `fixed_point_format` defines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rankwell.kernels.fixed_point_format import BATCH, INTEGER_BITS, WEIGHT_BITS, FixedPointFormat


def saturate(value: int, bits: int) -> int:
    return max(-(1 << (bits - 1)), min((1 << (bits - 1)) - 1, value))


def quantise(value: float, exponent: int, bits: int) -> int:
    return saturate(math.floor(float(value) * 2.0 ** (bits - 1 - exponent) + 0.5), bits)


def multiply(p: int, q: int, bits: int) -> int:
    return saturate((p * q + (1 << (bits - 2))) >> (bits - 1), bits)


def slope(output: int, bits: int) -> int:
    """a·(1 − a)"""
    return multiply(output, saturate((1 << (bits - 1)) - output, bits), bits)


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
    whole = [[[quantise(v, WEIGHT_BITS, bits) for v in row] for row in w] for w, _ in layers]

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
    return [_unscaled(sums[place], place, len(layers), fmt, scale_exponent) for place in range(len(layers))]


def _unscaled(sums, place: int, n_layers: int, fmt: FixedPointFormat, scale_exponent: int):  # type: ignore[no-untyped-def]
    depth = n_layers - 1 - place
    bias_exponent = INTEGER_BITS + depth * WEIGHT_BITS - (fmt.bits - 1) - scale_exponent
    weight_exponent = bias_exponent + (fmt.feature_bits if place == 0 else 0)
    shape_w, shape_b = sums[0][0].shape, sums[0][1].shape
    weights, bias = np.zeros(shape_w, dtype=np.float64), np.zeros(shape_b, dtype=np.float64)
    for batch, (w, b) in sums.items():
        weights += w.astype(np.float64) * 2.0 ** (weight_exponent - batch)
        bias += b.astype(np.float64) * 2.0 ** (bias_exponent - batch)
    return weights, bias
