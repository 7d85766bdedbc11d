"""The forward pass and the loss gradient in the accelerator's integers: the slow twin that its kernels must equal."""

from __future__ import annotations

import numpy as np

from rankwell.hardware.listnet.forward_format import (
    BITS,
    EXPONENTIAL_POINT,
    FIRST_POINT,
    GRADIENT_BITS,
    GRADIENT_POINT,
    OUTPUT_POINT,
    SIGMOID_LIMIT,
    SIGMOID_POINT,
    SUM_POINT,
    WEIGHT_POINT,
    exponential_table,
    sigmoid_table,
)
from rankwell.kernels.lists.fixed_point_format import BATCH, DIRECT, INTEGER_BITS


def fixed(values: np.ndarray, point: int, bits: int = BITS) -> np.ndarray:
    """Numbers with `point` bits after the point, rounded half up, limited to `bits` signed bits, int64."""
    scaled = np.floor(np.asarray(values, dtype=np.float64) * 2.0**point + 0.5)
    return np.clip(scaled, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1).astype(np.int64)


def fixed_features(values: np.ndarray) -> np.ndarray:
    return fixed(values, OUTPUT_POINT)


def fixed_weights(values: np.ndarray) -> np.ndarray:
    return fixed(values, WEIGHT_POINT)


def _sigmoid(sums: np.ndarray) -> np.ndarray:
    shift, limit = SUM_POINT - SIGMOID_POINT, SIGMOID_LIMIT << SIGMOID_POINT
    places = ((sums + (1 << shift - 1)) >> shift) + limit
    return sigmoid_table()(np.clip(places, 0, 2 * limit - 1))


def forward(
    features: np.ndarray, weights: np.ndarray, biases: np.ndarray, output_weights: np.ndarray, output_bias: int
) -> tuple[np.ndarray, np.ndarray]:
    """Hidden outputs (n_docs, hidden) and scores (n_docs,), int64.

    features : (n_docs, features); weights : (hidden, features); biases, output_weights : (hidden,)
    """
    hidden = _sigmoid(features @ weights.T + (biases << OUTPUT_POINT))
    return hidden, _sigmoid(hidden @ output_weights + (output_bias << OUTPUT_POINT))


def list_gradient(k: int, scores: np.ndarray, first: np.ndarray, membership: np.ndarray) -> np.ndarray:
    """∂L/∂s of a list, `GRADIENT_POINT` bits after the point; k is 1 or 2."""
    exponentials = exponential_table()(scores)
    total = int(exponentials.sum())
    gradient = (exponentials << GRADIENT_POINT) // total - membership
    if k == 2:
        ratios = (first << GRADIENT_POINT) // (total - exponentials)
        gradient += (exponentials * (int(ratios.sum()) - ratios)) >> EXPONENTIAL_POINT
    return gradient


def scaled_gradient(gradient: np.ndarray, bits: int, batches: int, method: int) -> tuple[np.ndarray, np.ndarray]:
    """u and B of every document."""
    lengths = np.array([int(abs(value)).bit_length() for value in gradient])
    longest = int(lengths.max())
    batch = np.minimum(longest - lengths, batches - 1) if method == BATCH else np.zeros_like(lengths)
    if method == DIRECT:
        down, shifted = GRADIENT_POINT + INTEGER_BITS + 1 - bits, gradient
    else:
        down, shifted = GRADIENT_BITS - bits, gradient << (GRADIENT_BITS - 1 - longest + batch)
    rounded = (shifted + (1 << down - 1)) >> down if down > 0 else shifted << -down
    return np.minimum(rounded, 2 ** (bits - 1) - 1), batch


def fixed_truth(first: np.ndarray, membership: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows FIRST and MEMBERSHIP of the truth (`kernels/lists/cpu/two_places.py`) as whole numbers."""
    return (
        np.floor(first * 2.0**FIRST_POINT + 0.5).astype(np.int64),
        np.floor(membership * 2.0**GRADIENT_POINT + 0.5).astype(np.int64),
    )
