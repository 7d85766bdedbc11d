"""Layers turn a description's inputs into one score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwell.kernels.scoring.rules import ACTIVATIONS
from rankwell.scoring.array_checks import NUMBERS, check_numbers, check_vector, require


@dataclass(frozen=True)
class Dense:
    """output = activation(weights · input + bias). weights : float (n_out, n_in); bias : float (n_out,)"""

    kind: ClassVar[str] = "dense"
    weights: np.ndarray
    bias: np.ndarray
    activation: str = "identity"


@dataclass(frozen=True)
class Sum:
    """The sum of all inputs, plus bias: one output."""

    kind: ClassVar[str] = "sum"
    bias: float = 0.0


@dataclass(frozen=True)
class Mean:
    """The mean of all inputs (a random forest's vote): one output."""

    kind: ClassVar[str] = "mean"


Layer = Dense | Sum | Mean


def check_layers(layers: tuple[Layer, ...], width: int) -> None:
    """Refuse layers that do not match `width` inputs or each other, or do not give one score."""
    for layer in layers:
        if isinstance(layer, Dense):
            width = _check_dense(layer, width)
            continue
        require(not isinstance(layer, Mean) or width > 0, "the mean of no inputs does not exist")
        require(not isinstance(layer, Sum) or _is_finite(layer.bias), "a sum's bias is not a finite number")
        width = 1
    require(width == 1, f"the last layer must give one score, it gives {width}")


def _check_dense(layer: Dense, width: int) -> int:
    """Check a dense layer that reads `width` numbers; returns how many it gives."""
    n_out = check_vector(layer.bias, "a dense layer's bias", NUMBERS)
    check_numbers(layer.bias, "a dense layer's bias", (n_out,))
    check_numbers(layer.weights, "a dense layer's weights", (n_out, width))
    require(layer.activation in ACTIVATIONS, f"unknown activation {layer.activation!r}")
    return n_out


def _is_finite(value: object) -> bool:
    """Whether `value` is a number of finite size; of an integer as large as JSON allows, too."""
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:
        return False
