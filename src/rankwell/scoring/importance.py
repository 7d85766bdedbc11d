"""How important each feature is to a ranker, from the ranker alone: the larger, the more the feature moves the score.

An input counts as strongly as the layers let it through: by the absolute weights on its paths to the score, multiplied
along a path and summed over paths (Garson 1991). Its features share that:

- linear and log-linear inputs: |scale|, so that a linear ranker's importance is |weight|, of normalised features;
- step functions: the sum of their steps' heights;
- expressions: 1 for every feature they read;
- trees: the number of nodes that test the feature, LightGBM's `feature_importances_`;
- the score of another ranker: its features share the column's importance by their importance there.

Weights of features that differ in size do not compare: that needs a normaliser.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.scoring.rules import Operation
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.expression import parse_expression
from rankwell.scoring.inputs import BucketInputs, ExpressionInputs, InputGroup
from rankwell.scoring.layers import Dense, Layer
from rankwell.scoring.trees import TreeInputs


def feature_importances(description: RankerDescription) -> np.ndarray:
    """The importance of each feature, float64 (n_features,), not negative."""
    strengths = _strengths(description.layers, description.n_inputs)
    importances = np.zeros(description.n_columns)
    first = 0
    for group in description.inputs:
        _add(importances, group, strengths[first : first + len(group)], description.column_names)
        first += len(group)
    for number, part in enumerate(description.parts, start=description.n_features):
        own = feature_importances(part.description)
        if own.any():
            np.add.at(importances, list(part.features), importances[number] * own / own.sum())
    return importances[: description.n_features]


def _strengths(layers: tuple[Layer, ...], n_inputs: int) -> np.ndarray:
    """The absolute weights on each input's paths to the score, float64 (n_inputs,)."""
    strengths = np.ones((1, 1))
    widths = [n_inputs]
    for layer in layers:
        widths.append(len(layer.bias) if isinstance(layer, Dense) else 1)
    for layer, width in zip(reversed(layers), reversed(widths[:-1]), strict=True):
        # A mean's common factor says nothing about features: it counts as a sum.
        weights = np.abs(layer.weights) if isinstance(layer, Dense) else np.ones((1, width))
        strengths = strengths @ weights
    return strengths[0]


def _add(importances: np.ndarray, group: InputGroup, strengths: np.ndarray, names: tuple[str, ...]) -> None:
    if isinstance(group, TreeInputs):
        of_nodes = np.repeat(strengths, np.diff(group.node_ptr))
        np.add.at(importances, group.column_feature[group.column], of_nodes)
    elif isinstance(group, ExpressionInputs):
        for text, strength in zip(group.expressions, strengths.tolist(), strict=True):
            program = parse_expression(text, names)
            read = program.operand[program.operation == Operation.FEATURE]
            importances[np.unique(read)] += strength
    else:
        sizes = _step_heights(group) if isinstance(group, BucketInputs) else np.abs(group.scale)
        np.add.at(importances, group.feature, strengths * sizes)


def _step_heights(buckets: BucketInputs) -> np.ndarray:
    """Σ |step| of each step function; the values of input i begin at edge_ptr[i] + i."""
    starts = buckets.edge_ptr[:-1] + np.arange(len(buckets))
    ends = buckets.edge_ptr[1:] + np.arange(len(buckets)) + 1
    return np.array(
        [
            np.abs(np.diff(buckets.values[start:end])).sum()
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    )
