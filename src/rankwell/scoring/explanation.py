"""How a score is composed: the contribution of each input, tree and feature. The contributions sum to the score.

A score is the output of the layers for inputs of zero (`base`), plus what each input adds. In a linear model, that is
weight · value. Through a layer's activation a, a unit's change z - z0 (relative to inputs of zero) is multiplied by
(a(z) - a(z0)) / (z - z0), so that the parts still sum exactly: the rescale rule of DeepLIFT (Shrikumar et al. 2017).

An input made from one feature is attributed to it. A tree's value is divided among the features on the document's
path: a node's value is the mean of its leaves, the root's is the tree's own, and each step down adds the difference to
the feature tested (Saabas 2014; all leaves have equal weight, since a ranker file keeps no document counts).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.validation import is_sparse
from rankwell.kernels.scoring.reference import activate, tested_value
from rankwell.kernels.scoring.rules import ACTIVATIONS, IN_CATEGORIES
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.inputs import ExpressionInputs, InputGroup
from rankwell.scoring.layers import Dense, Layer, Mean
from rankwell.scoring.reference_scores import group_values, run_layers
from rankwell.scoring.scorer import model_columns
from rankwell.scoring.trees import TreeInputs


@dataclass(frozen=True)
class Step:
    """One node on a document's path down a tree."""

    feature: str
    value: float
    test: str
    went_left: bool


@dataclass(frozen=True)
class InputPart:
    """One input's part of a score.

    number : its place among the inputs; kind : linear, log-linear, bucket, expression or tree
    name : its feature, formula or tree; value : the input itself; contribution : what it added to the score
    path : a tree's nodes from the root down
    """

    number: int
    kind: str
    name: str
    value: float
    contribution: float
    path: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """A score in parts: score = base + the inputs' contributions = feature_base + the features' contributions.

    columns : what the ranker read, by name: features after normalisation, and the scores of its parts
    """

    score: float
    base: float
    inputs: tuple[InputPart, ...]
    feature_base: float
    features: dict[str, float]
    columns: dict[str, float]


def explain_score(description: RankerDescription, row: np.ndarray, *, n_rounds: int | None = None) -> Explanation:
    """Explain the score of one document, whose features (n_features,) are already normalised."""
    if n_rounds is not None:
        description = description.first_rounds(n_rounds)
    row = np.asarray(row, dtype=np.float32)
    values = [group_values(group, row, description.column_names) for group in description.inputs]
    flat = [value for group in values for value in group]
    slopes = _slopes(description.layers, flat)
    score, base = run_layers(description.layers, flat)[0], run_layers(description.layers, [0.0] * len(flat))[0]
    parts: list[InputPart] = []
    features = dict.fromkeys(description.column_names, 0.0)
    feature_base, first = base, 0
    for group, group_of_values in zip(description.inputs, values, strict=True):
        for i, value in enumerate(group_of_values):
            part, root, shares = _explain_input(group, i, value, row, description.column_names)
            slope = slopes[first + i]
            parts.append(
                InputPart(first + i, group.kind, part.name, value, float(slope * value), part.path),
            )
            feature_base += slope * root
            for name, share in shares.items():
                features[name] = features.get(name, 0.0) + slope * share
        first += len(group)
    changed = {name: float(share) for name, share in features.items() if share != 0.0}
    columns = dict(zip(description.column_names, row.tolist(), strict=True))
    return Explanation(score, float(base), tuple(parts), float(feature_base), changed, columns)


def explain_rows(
    description: RankerDescription, dataset: RankingDataset, rows: Sequence[int], *, n_rounds: int | None = None
) -> list[Explanation]:
    """Explain the scores of rows of `dataset`, in its own order and as it is: it is normalised here.

    Of a ranker with a first pass, the second one is explained, also for rows that the first would not keep.
    """
    features = model_columns(description, dataset)
    return [
        explain_score(
            description, features[row].toarray()[0] if is_sparse(features) else features[row], n_rounds=n_rounds
        )
        for row in rows
    ]


@dataclass(frozen=True)
class _Made:
    name: str
    path: tuple[Step, ...] = ()


def _explain_input(
    group: InputGroup, i: int, value: float, row: np.ndarray, names: tuple[str, ...]
) -> tuple[_Made, float, dict[str, float]]:
    """The source of input i, the part of its value that belongs to no feature, and the features' shares of the rest."""
    if isinstance(group, TreeInputs):
        return _explain_tree(group, i, row, names)
    if isinstance(group, ExpressionInputs):
        return _Made(group.expressions[i]), 0.0, {group.expressions[i]: value}
    name = names[int(group.feature[i])]
    return _Made(name), 0.0, {name: value}


def _explain_tree(
    trees: TreeInputs, t: int, row: np.ndarray, names: tuple[str, ...]
) -> tuple[_Made, float, dict[str, float]]:
    start = int(trees.node_ptr[t])
    leaves = trees.leaf_value[trees.leaf_ptr[t] : trees.leaf_ptr[t + 1]]
    means = _means(trees, t, leaves)
    node, here, path = (0 if len(means) else -1), float(leaves.mean()), []
    shares: dict[str, float] = {}
    root = here
    while node >= 0:
        column = int(trees.column[start + node])
        feature = int(trees.column_feature[column])
        x = tested_value(float(row[feature]), int(trees.column_kind[column]), trees.categories_of(column))
        threshold = trees.threshold[start + node]
        went_left = bool(trees.missing_left[start + node]) if math.isnan(x) else bool(x <= threshold)
        path.append(
            Step(names[feature], float(row[feature]), _test_text(trees, column, threshold, went_left), went_left)
        )
        node = int((trees.left if went_left else trees.right)[start + node])
        there = means[node] if node >= 0 else float(leaves[-1 - node])
        shares[names[feature]] = shares.get(names[feature], 0.0) + there - here
        here = there
    return _Made(f"tree {t + 1}", tuple(path)), root, shares


def _means(trees: TreeInputs, t: int, leaves: np.ndarray) -> list[float]:
    """The mean leaf value below each node, from the last node to the root: children come after their parents."""
    start, end = int(trees.node_ptr[t]), int(trees.node_ptr[t + 1])
    totals, counts = [0.0] * (end - start), [0] * (end - start)
    for node in range(end - start - 1, -1, -1):
        for child in (int(trees.left[start + node]), int(trees.right[start + node])):
            totals[node] += totals[child] if child >= 0 else float(leaves[-1 - child])
            counts[node] += counts[child] if child >= 0 else 1
    return [total / count for total, count in zip(totals, counts, strict=True)]


def _test_text(trees: TreeInputs, column: int, threshold: float, went_left: bool) -> str:
    if trees.column_kind[column] == IN_CATEGORIES:
        listed = ", ".join(map(str, trees.categories_of(column).tolist()))
        return f"{'not in' if went_left else 'in'} {{{listed}}}"
    return f"{'<=' if went_left else '>'} {threshold:.6g}"


def _slopes(layers: tuple[Layer, ...], values: list[float]) -> np.ndarray:
    """What one unit of each input added to the score, through all layers."""
    here, zero = np.array(values), np.zeros(len(values))
    slopes_by_layer: list[np.ndarray] = []
    for layer in layers:
        weights = layer.weights if isinstance(layer, Dense) else np.full((1, len(here)), _weight(layer, len(here)))
        slope = np.ones(weights.shape[0])
        if isinstance(layer, Dense):
            activation = ACTIVATIONS.index(layer.activation)
            z, z0 = (layer.weights @ inputs + layer.bias for inputs in (here, zero))
            slope = np.array([_rescaled(a, b, activation) for a, b in zip(z.tolist(), z0.tolist(), strict=True)])
        slopes_by_layer.append(weights * slope[:, None])
        here, zero = (np.array(run_layers((layer,), inputs.tolist())) for inputs in (here, zero))
    total = np.ones((1, 1))
    for slopes in reversed(slopes_by_layer):
        total = total @ slopes
    return total[0]


def _weight(layer: Layer, width: int) -> float:
    return 1.0 / width if isinstance(layer, Mean) else 1.0


def _rescaled(z: float, z0: float, activation: int) -> float:
    if abs(z - z0) < 1e-9 * max(1.0, abs(z)):
        # The derivative, by a symmetric difference: a quotient of two rounding errors would be meaningless.
        return (activate(z + 1e-6, activation) - activate(z - 1e-6, activation)) / 2e-6
    return (activate(z, activation) - activate(z0, activation)) / (z - z0)
