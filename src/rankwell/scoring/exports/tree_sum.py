"""A ranker as a sum of trees over the features as they are given: what formats of tree ensembles can say.

    score = activation(bias + Σ value of the reached leaf)

Buckets become trees, weights of inputs are multiplied into leaves, and a normaliser that treats each document alone
becomes a part of the thresholds, without changing a decision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwell.kernels.scoring.rules import VALUE
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.exports.bucket_trees import bucket_trees
from rankwell.scoring.exports.refusal import cannot_say, check_normaliser
from rankwell.scoring.inputs import BucketInputs
from rankwell.scoring.layers import Dense, Layer, Mean, Sum
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.trees import TreeInputs

_LARGEST = np.finfo(np.float32).max

_AS_TREES: dict[str, Callable[[Any], TreeInputs]] = {
    TreeInputs.kind: lambda group: group,
    BucketInputs.kind: bucket_trees,
}


@dataclass(frozen=True)
class TreeSum:
    """groups : trees that test features as given; bias : added to their sum; activation : what the sum goes through"""

    groups: tuple[TreeInputs, ...]
    bias: float
    activation: str

    @property
    def n_trees(self) -> int:
        return sum(map(len, self.groups))


def is_tree_sum(description: RankerDescription) -> bool:
    """Whether all inputs are trees, or can be written as trees."""
    return bool(description.inputs) and all(group.kind in _AS_TREES for group in description.inputs)


def tree_sum(description: RankerDescription, format_title: str) -> TreeSum:
    """The sum of trees that scores as `description` does, or an error that says why there is none."""
    check_by_document(description, format_title)
    if not is_tree_sum(description):
        other = next((group.kind for group in description.inputs if group.kind not in _AS_TREES), "no")
        raise cannot_say(format_title, f"{other} inputs: it holds decision trees")
    weights, bias, activation = _through_layers(description.layers, description.n_inputs, format_title)
    groups, first = [], 0
    for group in description.inputs:
        trees = with_raw_thresholds(_AS_TREES[group.kind](group), description.normaliser)
        groups.append(_weighted(trees, weights[first : first + len(group)]))
        first += len(group)
    return TreeSum(tuple(groups), bias, activation)


def without_normaliser(description: RankerDescription) -> RankerDescription:
    """The same ranker without its normaliser, if it is the standard one and all inputs are trees; else unchanged."""
    if description.normaliser.name != "standard" or description.parts or not is_tree_sum(description):
        return description
    groups = (_AS_TREES[group.kind](group) for group in description.inputs)
    raw = tuple(with_raw_thresholds(trees, description.normaliser) for trees in groups)
    return replace(description, inputs=raw, normaliser=Normaliser("none"))


def check_by_document(description: RankerDescription, format_title: str) -> None:
    """Refuse rankers whose scores need more than one document's features: other documents, or another ranker."""
    check_normaliser(format_title, description.normaliser)
    if description.parts:
        names = ", ".join(part.name for part in description.parts)
        raise cannot_say(format_title, f"rankers inside a ranker ({names})")


def check_plain_columns(trees: TreeSum, format_title: str) -> None:
    """Refuse nodes that test anything but the size of a number."""
    if any((group.column_kind != VALUE).any() for group in trees.groups):
        raise cannot_say(
            format_title,
            "nodes that test categories, or that count zeros as missing values",
            "ONNX, C and LightGBM can: export it to onnx, c or lightgbm.",
        )


def with_raw_thresholds(trees: TreeInputs, normaliser: Normaliser) -> TreeInputs:
    """Trees that test features before `normaliser`, and decide as `trees` do after it."""
    if normaliser.name == "none":
        return trees
    feature = trees.column_feature[trees.column]
    mean, scale = normaliser.arrays["mean"][feature], normaliser.arrays["scale"][feature]
    return replace(trees, threshold=_raw_thresholds(trees.threshold, mean, scale))


def _raw_thresholds(threshold: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The largest float32 whose normalised value is not above each threshold; minus the largest if there is none.

    The normalised value, rounded to float32, never decreases with x, so a search by halves over all float32 finds it.
    """
    low = np.full(len(threshold), _order(np.float32(-_LARGEST)), dtype=np.int64)
    high = np.full(len(threshold), _order(_LARGEST), dtype=np.int64)
    while (low < high).any():
        middle = (low + high + 1) >> 1
        # A value beyond float32 is infinite, and above every threshold.
        with np.errstate(over="ignore"):
            fits = ((_float_at(middle) - mean) / scale).astype(np.float32) <= threshold
        low, high = np.where(fits, middle, low), np.where(fits, high, np.maximum(middle - 1, low))
    return _float_at(low)


def _order(value: np.float32) -> int:
    """The place of a float32 among all of them: zeros are 0, and neighbours differ by 1."""
    bits = int(np.float32(value).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def _float_at(place: np.ndarray) -> np.ndarray:
    """The inverse of `_order`, float32."""
    bits = np.where(place >= 0, place, -place | 0x80000000).astype(np.uint32)
    return bits.view(np.float32)


def _through_layers(layers: tuple[Layer, ...], n_inputs: int, format_title: str) -> tuple[np.ndarray, float, str]:
    """The weight of each input in the sum, the bias, and what the sum goes through."""
    weights, bias, activation, width = np.ones(n_inputs), 0.0, "identity", n_inputs
    for layer in layers:
        if activation != "identity" or (isinstance(layer, Dense) and len(layer.bias) != 1):
            raise cannot_say(format_title, "layers of a network over trees: it adds trees up")
        if isinstance(layer, Dense):
            weights = weights * (layer.weights[0] if width == n_inputs else layer.weights[0, 0])
            bias = bias * float(layer.weights[0, 0]) + float(layer.bias[0])
            activation = layer.activation
        elif isinstance(layer, Mean):
            weights = weights / width
        else:
            assert isinstance(layer, Sum)
            bias += float(layer.bias)
        width = 1
    return weights, bias, activation


def _weighted(trees: TreeInputs, weights: np.ndarray) -> TreeInputs:
    """Trees whose leaves are multiplied by their tree's weight."""
    return replace(trees, leaf_value=trees.leaf_value * np.repeat(weights, np.diff(trees.leaf_ptr)))
