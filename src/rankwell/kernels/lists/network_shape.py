"""The layout of a network's parameters in one flat array, for every backend.

A network is hidden layers and one output unit (equation 2.5; no hidden layer: a linear function). The flat float32
array holds, layer by layer, the weights as (inputs, units), an input's weights next to each other, then the biases;
last the output unit's weights and its bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

ACTIVATION_CODES = {"identity": 0, "sigmoid": 1, "relu": 2, "tanh": 3}


class NetworkShape(NamedTuple):
    """The sizes and places that kernels read; the int64 arrays have one entry per hidden layer.

    inputs, units : the layer's width in and out; weights, biases : where they start in the flat array; columns : how
    many hidden units come before the layer's. output_weights : where the output's weights start; its bias is last.
    """

    n_features: int
    inputs: np.ndarray
    units: np.ndarray
    weights: np.ndarray
    biases: np.ndarray
    columns: np.ndarray
    hidden_activation: int
    output_activation: int
    output_inputs: int
    output_weights: int
    n_hidden: int
    n_parameters: int


def network_shape(
    n_features: int, hidden: Sequence[int], hidden_activation: str, output_activation: str
) -> NetworkShape:
    """The shape of a network with `hidden` units per layer."""
    places = []
    width, place, column = n_features, 0, 0
    for units in hidden:
        places.append((width, units, place, place + width * units, column))
        place += (width + 1) * units
        column += units
        width = units
    inputs, units_, weights, biases, columns = np.array(places, dtype=np.int64).reshape(-1, 5).T.copy()
    return NetworkShape(
        n_features=n_features,
        inputs=inputs,
        units=units_,
        weights=weights,
        biases=biases,
        columns=columns,
        hidden_activation=ACTIVATION_CODES[hidden_activation],
        output_activation=ACTIVATION_CODES[output_activation],
        output_inputs=width,
        output_weights=place,
        n_hidden=column,
        n_parameters=place + width + 1,
    )


def pack_layers(shape: NetworkShape, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Weights (n_out, n_in) and biases (n_out,) of every layer, the output last, as the flat float32 array."""
    parts = [part for weights, bias in layers for part in (weights.T.ravel(), bias)]
    flat = np.concatenate(parts).astype(np.float32)
    if len(flat) != shape.n_parameters:
        raise ValueError(f"the layers have {len(flat)} parameters, the network has {shape.n_parameters}.")
    return flat


def unpack_layers(shape: NetworkShape, flat: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The inverse of `pack_layers`, as float64."""
    layers, place = [], 0
    sizes = [*zip(shape.inputs.tolist(), shape.units.tolist(), strict=True), (shape.output_inputs, 1)]
    for inputs, units in sizes:
        weights = flat[place : place + inputs * units].reshape(inputs, units).T
        place += inputs * units
        layers.append((weights.astype(np.float64), flat[place : place + units].astype(np.float64)))
        place += units
    return layers
