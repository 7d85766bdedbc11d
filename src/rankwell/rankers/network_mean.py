"""The mean of several networks of one shape, as the layers of one network.

Hidden layers lie next to each other, each unit with weights to its own network's units only. Above them either one unit
that adds all outputs up, where the output is linear, or one output for each network and then their mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwell.scoring.description import Dense

# Weights (n_out, n_in) and bias (n_out,) of one layer.
Layer = tuple[np.ndarray, np.ndarray]


def mean_network(networks: Sequence[Sequence[Layer]], hidden_activation: str, output_activation: str) -> list[Dense]:
    """The layers whose output is the mean of the networks' outputs; a single network's own layers.

    Parameters
    ----------
    networks : sequence of layers
        Of each network the hidden layers and the output layer.
    hidden_activation, output_activation : str
        As `Dense` names them.
    """
    n_networks, n_layers = len(networks), len(networks[0])
    layers = []
    for place in range(n_layers - 1):
        own = [network[place] for network in networks]
        weights = np.concatenate([w for w, _ in own]) if place == 0 else _block_diagonal([w for w, _ in own])
        layers.append(Dense(weights, np.concatenate([b for _, b in own]), hidden_activation))
    outputs = [network[-1] for network in networks]
    if output_activation == "identity" or n_networks == 1:
        # Without hidden layers all networks read the same inputs, so their weights add up too.
        joined = sum(w for w, _ in outputs) if n_layers == 1 else np.concatenate([w for w, _ in outputs], axis=1)
        bias = sum(b for _, b in outputs)
        return [*layers, Dense(np.asarray(joined) / n_networks, np.asarray(bias) / n_networks, output_activation)]
    own_weights = [w for w, _ in outputs]
    single = np.concatenate(own_weights) if n_layers == 1 else _block_diagonal(own_weights)
    layers.append(Dense(single, np.concatenate([b for _, b in outputs]), output_activation))
    return [*layers, Dense(np.full((1, n_networks), 1.0 / n_networks), np.zeros(1))]


def _block_diagonal(blocks: Sequence[np.ndarray]) -> np.ndarray:
    rows, columns = blocks[0].shape
    joined = np.zeros((rows * len(blocks), columns * len(blocks)))
    for place, block in enumerate(blocks):
        joined[place * rows : (place + 1) * rows, place * columns : (place + 1) * columns] = block
    return joined
