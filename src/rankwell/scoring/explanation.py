"""How a score is composed: the contribution of each input, tree and feature. The contributions sum to the score.

A score is the output of the layers for inputs of zero (`base`), plus what each input adds. In a linear model, that is
weight · value. Through a layer's activation a, a unit's change z - z0 (relative to inputs of zero) is multiplied by
(a(z) - a(z0)) / (z - z0), so that the parts still sum exactly: the rescale rule of DeepLIFT (Shrikumar et al. 2017).

An input made from one feature is attributed to it. A tree's value is divided among features by their Shapley values
(`shapley`); what belongs to no feature is the tree's mean over its leaves, which weigh as many documents as they had in
training, if the ranker file says so, and otherwise the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.validation import is_sparse
from rankwell.kernels.scoring.reference import activate, tested_value
from rankwell.kernels.scoring.rules import ACTIVATIONS, IN_CATEGORIES
from rankwell.scoring.composition import rows_of, run_first_pass
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.inputs import ExpressionInputs, InputGroup
from rankwell.scoring.layers import Dense, Layer, Mean
from rankwell.scoring.reference_scores import group_values, run_layers
from rankwell.scoring.scorer import model_columns, score_description
from rankwell.scoring.shapley import TreeShapley
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

    offset : of a document that a first pass did not keep, whose parts are those of the first pass's score: what takes
        that score down to the document's place below all that were kept, one more term of both sums; None of others
    columns : what the ranker read, by name: features after normalisation, and the scores of its parts
    """

    score: float
    base: float
    inputs: tuple[InputPart, ...]
    feature_base: float
    features: dict[str, float]
    columns: dict[str, float]
    offset: float | None = None


def explain_score(
    description: RankerDescription,
    row: np.ndarray,
    *,
    n_rounds: int | None = None,
    known: Mapping[int, TreeShapley] | None = None,
) -> Explanation:
    """Explain the score of one document, whose features (n_features,) are already normalised.

    known : by number of a group of inputs, its trees prepared, if several documents are explained
    """
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
    for number, (group, group_of_values) in enumerate(zip(description.inputs, values, strict=True)):
        if isinstance(group, TreeInputs):
            of_trees = slopes[first : first + len(group)]
            shapley = (known or {}).get(number) or TreeShapley(group)
            feature_base += float(of_trees @ shapley.expected)
            shares_of_trees = shapley.values(row, of_trees, len(description.column_names))
            for name, share in zip(description.column_names, shares_of_trees.tolist(), strict=True):
                features[name] += share
        for i, value in enumerate(group_of_values):
            part, slope = _explain_input(group, i, row, description.column_names), slopes[first + i]
            parts.append(InputPart(first + i, group.kind, part.name, value, float(slope * value), part.path))
            if not isinstance(group, TreeInputs):
                features[part.name] = features.get(part.name, 0.0) + slope * value
        first += len(group)
    changed = {name: float(share) for name, share in features.items() if share != 0.0}
    columns = dict(zip(description.column_names, row.tolist(), strict=True))
    return Explanation(score, float(base), tuple(parts), float(feature_base), changed, columns)


def explain_rows(
    description: RankerDescription, dataset: RankingDataset, rows: Sequence[int], *, n_rounds: int | None = None
) -> list[Explanation]:
    """Explain the scores of rows of `dataset`, in its own order and as it is: it is normalised here.

    Of a ranker with a first pass, the second one is explained, and the first for rows that it does not keep.
    """
    if description.first_pass is not None:
        return _explain_two_passes(description, dataset, rows, n_rounds)
    features = model_columns(description, dataset)
    if n_rounds is not None:
        description = description.first_rounds(n_rounds)
    groups = enumerate(description.inputs)
    known = {number: TreeShapley(group) for number, group in groups if isinstance(group, TreeInputs)}
    return [
        explain_score(description, features[row].toarray()[0] if is_sparse(features) else features[row], known=known)
        for row in rows
    ]


def _explain_two_passes(
    description: RankerDescription, dataset: RankingDataset, rows: Sequence[int], n_rounds: int | None
) -> list[Explanation]:
    run = run_first_pass(description, dataset, score_description)
    # What is kept is all that the second pass sees, and its normaliser compares.
    place = {row: number for number, row in enumerate(run.kept.tolist())}
    ranked = [place[row] for row in rows if row in place]
    below = [row for row in rows if row not in place]
    second = iter(explain_rows(description.second_pass, rows_of(dataset, run.kept), ranked, n_rounds=n_rounds))
    first = iter(explain_rows(run.part.description, run.dataset, below))
    scores = score_description(description, dataset, n_rounds=n_rounds)
    return [next(second) if row in place else placed_below(next(first), float(scores[row])) for row in rows]


def placed_below(explanation: Explanation, score: float) -> Explanation:
    """The explanation of a document that a first pass did not keep, by that pass, with the score that places it."""
    return replace(explanation, score=score, offset=score - explanation.score)


@dataclass(frozen=True)
class _Made:
    name: str
    path: tuple[Step, ...] = ()


def _explain_input(group: InputGroup, i: int, row: np.ndarray, names: tuple[str, ...]) -> _Made:
    """What input i is made of: the feature or formula that gets its whole value, or a tree."""
    if isinstance(group, TreeInputs):
        return _Made(f"tree {i + 1}", _path(group, i, row, names))
    if isinstance(group, ExpressionInputs):
        return _Made(group.expressions[i])
    return _Made(names[int(group.feature[i])])


def _path(trees: TreeInputs, t: int, row: np.ndarray, names: tuple[str, ...]) -> tuple[Step, ...]:
    """The nodes that the document passes in tree t."""
    start = int(trees.node_ptr[t])
    node, path = (0 if trees.node_ptr[t + 1] > start else -1), []
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
    return tuple(path)


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
