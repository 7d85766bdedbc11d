"""The linear form of a ranker: score = coef · x + intercept, if it is a linear function of its features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwell.scoring.description import RankerDescription
from rankwell.scoring.inputs import LinearInputs
from rankwell.scoring.layers import Dense, Layer, Mean


@dataclass(frozen=True)
class LinearForm:
    """coef : float64 (n_features,), of the features as they are given, so that X @ coef + intercept are the scores; if
    the normaliser works by query, of the normalised features, since no other coefficients exist."""

    coef: np.ndarray
    intercept: float


def linear_form(description: RankerDescription) -> LinearForm:
    """The linear form of `description`.

    Raises AttributeError if it is not linear, as scikit-learn's estimators do where `coef_` does not exist.
    """
    if not is_linear(description):
        raise AttributeError("coef_ and intercept_ exist only if the score is a linear function of the features.")
    weights, intercept = _through(description.layers, description.n_inputs)
    coef = np.zeros(description.n_features)
    first = 0
    for group in description.inputs:
        assert isinstance(group, LinearInputs)
        of_group = weights[first : first + len(group)]
        np.add.at(coef, group.feature, of_group * group.scale)
        intercept += float(of_group @ group.offset)
        first += len(group)
    if description.normaliser.name == "standard":
        coef = coef / description.normaliser.arrays["scale"]
        intercept -= float(coef @ description.normaliser.arrays["mean"])
    return LinearForm(coef, intercept)


def is_linear(description: RankerDescription) -> bool:
    if description.parts:
        return False
    return all(isinstance(group, LinearInputs) for group in description.inputs) and all(
        not isinstance(layer, Dense) or layer.activation == "identity" for layer in description.layers
    )


def _through(layers: tuple[Layer, ...], n_inputs: int) -> tuple[np.ndarray, float]:
    """What one unit of each input adds to the score, float64 (n_inputs,), and the score of inputs of zero."""
    weights, bias = np.eye(n_inputs), np.zeros(n_inputs)
    for layer in layers:
        if isinstance(layer, Dense):
            weights, bias = layer.weights @ weights, layer.weights @ bias + layer.bias
        else:
            share = 1.0 / len(bias) if isinstance(layer, Mean) else 1.0
            added = 0.0 if isinstance(layer, Mean) else layer.bias
            weights, bias = share * weights.sum(axis=0, keepdims=True), np.array([share * bias.sum() + added])
    return weights[0], float(bias[0])
