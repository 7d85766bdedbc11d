"""A fully connected network with one score as its output (equation 2.5), in float64: slow and exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Layer = tuple[np.ndarray, np.ndarray, str]


def activate(values: np.ndarray, activation: str) -> np.ndarray:
    if activation == "sigmoid":
        return 0.5 * (1.0 + np.tanh(0.5 * values))
    if activation == "relu":
        return np.maximum(values, 0.0)
    if activation == "tanh":
        return np.tanh(values)
    return values


def slope(outputs: np.ndarray, activation: str) -> np.ndarray:
    """The activation's derivative, written in terms of its output."""
    if activation == "sigmoid":
        return outputs * (1.0 - outputs)
    if activation == "relu":
        return (outputs > 0.0).astype(np.float64)
    if activation == "tanh":
        return 1.0 - outputs**2
    return np.ones_like(outputs)


def forward(features: np.ndarray, layers: Sequence[Layer]) -> list[np.ndarray]:
    """The outputs of every layer, the features first.

    layers : (weights (n_out, n_in), bias (n_out,), activation) each; the last has one output: the scores.
    """
    outputs = [features.astype(np.float64)]
    for weights, bias, activation in layers:
        outputs.append(activate(outputs[-1] @ weights.T + bias, activation))
    return outputs


def backward(
    outputs: Sequence[np.ndarray], layers: Sequence[Layer], score_gradient: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """∂L/∂weights and ∂L/∂bias of every layer, from ∂L/∂score (n_docs,)."""
    gradients = []
    delta = score_gradient[:, None] * slope(outputs[-1], layers[-1][2])
    for place in range(len(layers) - 1, -1, -1):
        gradients.append((delta.T @ outputs[place], delta.sum(axis=0)))
        if place > 0:
            delta = (delta @ layers[place][0]) * slope(outputs[place], layers[place - 1][2])
    return gradients[::-1]
