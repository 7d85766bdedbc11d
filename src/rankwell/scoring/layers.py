"""Layers turn a description's inputs into one score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.kernels.scoring.rules import ACTIVATIONS


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
            _require(layer.weights.ndim == 2 and layer.weights.shape[1] == width, "a dense layer has a wrong shape")
            _require(layer.bias.shape == (layer.weights.shape[0],), "a dense layer's bias has a wrong shape")
            _require(layer.activation in ACTIVATIONS, f"unknown activation {layer.activation!r}")
            width = layer.weights.shape[0]
        else:
            _require(not isinstance(layer, Mean) or width > 0, "the mean of no inputs does not exist")
            _require(
                not isinstance(layer, Sum) or (isinstance(layer.bias, int | float) and math.isfinite(layer.bias)),
                "a sum's bias is not a number",
            )
            width = 1
    _require(width == 1, f"the last layer must give one score, it gives {width}")


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise FileFormatError(f"the ranker's description is damaged: {complaint}.")
