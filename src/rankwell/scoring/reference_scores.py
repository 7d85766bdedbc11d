"""A description evaluated slowly, input by input: what the kernels are checked against, and what explains a score."""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.scoring import reference as reference
from rankwell.kernels.scoring.rules import ACTIVATIONS
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.expression import parse_expression
from rankwell.scoring.inputs import BucketInputs, ExpressionInputs, InputGroup, LinearInputs, LogLinearInputs
from rankwell.scoring.layers import Dense, Layer, Mean
from rankwell.scoring.trees import TreeInputs


def reference_scores(description: RankerDescription, rows: np.ndarray) -> np.ndarray:
    """Scores of rows whose features are already normalised, float64 (n_docs,)."""
    return np.array([run_layers(description.layers, input_values(description, row))[0] for row in rows], dtype=float)


def input_values(description: RankerDescription, row: np.ndarray) -> list[float]:
    """The inputs of one document, in the order of the description's groups."""
    return [value for group in description.inputs for value in group_values(group, row, description.feature_names)]


def group_values(group: InputGroup, row: np.ndarray, feature_names: tuple[str, ...]) -> list[float]:
    """The inputs of one group for one document."""
    if isinstance(group, TreeInputs):
        leaves = reached_leaves(group, row)
        return [float(group.leaf_value[start + leaf]) for start, leaf in zip(group.leaf_ptr, leaves, strict=False)]
    if isinstance(group, ExpressionInputs):
        return [_expression_value(group, i, row, feature_names) for i in range(len(group))]
    values = [float(row[feature]) for feature in group.feature]
    if isinstance(group, BucketInputs):
        return [_bucket_value(group, i, x) for i, x in enumerate(values)]
    formula = {LinearInputs: reference.linear_input, LogLinearInputs: reference.log_linear_input}[type(group)]
    return [
        formula(x, float(group.scale[i]), float(group.offset[i]), float(group.missing[i])) for i, x in enumerate(values)
    ]


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


def run_layers(layers: tuple[Layer, ...], values: list[float]) -> list[float]:
    """The outputs of the last layer."""
    for layer in layers:
        if isinstance(layer, Dense):
            activation = ACTIVATIONS.index(layer.activation)
            values = reference.dense_layer(values, np.asarray(layer.weights), np.asarray(layer.bias), activation)
        elif isinstance(layer, Mean):
            values = [reference.sum_in_runs(values) / len(values)]
        else:
            values = [reference.sum_in_runs(values) + layer.bias]
    return values


def _bucket_value(group: BucketInputs, i: int, x: float) -> float:
    start, end = int(group.edge_ptr[i]), int(group.edge_ptr[i + 1])
    return reference.bucket_input(
        x, group.edges[start:end], group.values[start + i : end + i + 1], float(group.missing[i])
    )


def _expression_value(group: ExpressionInputs, i: int, row: np.ndarray, feature_names: tuple[str, ...]) -> float:
    program = parse_expression(group.expressions[i], feature_names)
    value = reference.run_program(program.operation, program.operand, program.constants, row)
    return value if math.isfinite(value) else float(group.missing[i])
