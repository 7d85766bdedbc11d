"""A description evaluated literally, input by input: the kernels are checked against it, and it explains scores.

The kernel of a kind is a slow function of one document here. It reads the description, not the plan that fast devices
use, so that the plan is checked as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwell.kernels.scoring import reference
from rankwell.kernels.scoring.rules import ACTIVATIONS
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.inputs import BucketInputs, ExpressionInputs, InputGroup, LinearInputs, LogLinearInputs
from rankwell.scoring.layers import Dense, Layer, Mean, Sum
from rankwell.scoring.trees import TreeInputs


def reference_scores(description: RankerDescription, rows: np.ndarray) -> np.ndarray:
    """Scores of rows whose features are already normalised, float64 (n_docs,)."""
    return np.array([run_layers(description.layers, input_values(description, row))[0] for row in rows], dtype=float)


def input_values(description: RankerDescription, row: np.ndarray) -> list[float]:
    """The inputs of one document, in the order of the description's groups."""
    return [value for group in description.inputs for value in group_values(group, row, description.column_names)]


def group_values(group: InputGroup, row: np.ndarray, feature_names: tuple[str, ...]) -> list[float]:
    """The inputs of one group for one document."""
    return _INPUTS[group.kind](group, row, feature_names)


def run_layers(layers: tuple[Layer, ...], values: list[float]) -> list[float]:
    """The outputs of the last layer."""
    for layer in layers:
        values = _LAYERS[layer.kind](layer, values)
    return values


def reached_leaves(trees: TreeInputs, row: np.ndarray) -> list[int]:
    """The leaf of each tree that a document reaches, counted within its tree."""
    columns = [
        reference.tested_value(float(row[feature]), int(kind), trees.categories_of(c))
        for c, (feature, kind) in enumerate(zip(trees.column_feature, trees.column_kind, strict=True))
    ]
    leaves = []
    for t in range(len(trees)):
        nodes = slice(trees.node_ptr[t], trees.node_ptr[t + 1])
        parts = (trees.column, trees.threshold, trees.missing_left, trees.left, trees.right)
        leaves.append(reference.reached_leaf(columns, *(part[nodes] for part in parts)))
    return leaves


def _linear_values(group: LinearInputs, row: np.ndarray, feature_names: tuple[str, ...]) -> list[float]:
    return _line_values(reference.linear_input, group, row)


def _log_linear_values(group: LogLinearInputs, row: np.ndarray, feature_names: tuple[str, ...]) -> list[float]:
    return _line_values(reference.log_linear_input, group, row)


def _line_values(
    formula: Callable[[float, float, float, float], float], group: LinearInputs | LogLinearInputs, row: np.ndarray
) -> list[float]:
    return [
        formula(float(row[feature]), float(group.scale[i]), float(group.offset[i]), float(group.missing[i]))
        for i, feature in enumerate(group.feature)
    ]


def _bucket_values(group: BucketInputs, row: np.ndarray, feature_names: tuple[str, ...]) -> list[float]:
    values = []
    for i, feature in enumerate(group.feature):
        start, end = int(group.edge_ptr[i]), int(group.edge_ptr[i + 1])
        edges, of_buckets = group.edges[start:end], group.values[start + i : end + i + 1]
        values.append(reference.bucket_input(float(row[feature]), edges, of_buckets, float(group.missing[i])))
    return values


def _expression_values(group: ExpressionInputs, row: np.ndarray, feature_names: tuple[str, ...]) -> list[float]:
    values = []
    for program, missing in zip(group.programs(feature_names), group.missing, strict=True):
        value = reference.run_program(program.operation, program.operand, program.constants, row)
        values.append(value if math.isfinite(value) else float(missing))
    return values


def _tree_values(trees: TreeInputs, row: np.ndarray, feature_names: tuple[str, ...]) -> list[float]:
    leaves = reached_leaves(trees, row)
    return [float(trees.leaf_value[start + leaf]) for start, leaf in zip(trees.leaf_ptr, leaves, strict=False)]


def _run_dense(layer: Dense, values: list[float]) -> list[float]:
    activation = ACTIVATIONS.index(layer.activation)
    return reference.dense_layer(values, np.asarray(layer.weights), np.asarray(layer.bias), activation)


_INPUTS: dict[str, Callable[[Any, np.ndarray, tuple[str, ...]], list[float]]] = {
    LinearInputs.kind: _linear_values,
    LogLinearInputs.kind: _log_linear_values,
    BucketInputs.kind: _bucket_values,
    ExpressionInputs.kind: _expression_values,
    TreeInputs.kind: _tree_values,
}
_LAYERS: dict[str, Callable[[Any, list[float]], list[float]]] = {
    Dense.kind: _run_dense,
    Sum.kind: lambda layer, values: [reference.sum_in_runs(values) + layer.bias],
    Mean.kind: lambda layer, values: [reference.sum_in_runs(values) / len(values)],
}
