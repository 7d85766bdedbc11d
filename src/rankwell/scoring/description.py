"""The ranker description: one form for every model.

    features ──> inputs (one number each, made from features) ──> layers ──> score

A linear model is linear inputs and one dense layer; a RankBoost model is bucket inputs and a sum; a ListNet is linear
inputs and a few dense layers; an imported LightGBM or XGBoost model is trees and a sum. Anything described here can
be evaluated, stored and served, so that the served model is the evaluated one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError, ParameterError
from rankwell.scoring.array_checks import NUMBERS, check_array, check_numbers, require
from rankwell.scoring.inputs import (
    BucketInputs,
    ExpressionInputs,
    InputGroup,
    LinearInputs,
    LogLinearInputs,
    check_inputs,
)
from rankwell.scoring.layers import ACTIVATIONS, Dense, Layer, Mean, Sum, check_layers
from rankwell.scoring.normaliser import NORMALISERS, Normaliser
from rankwell.scoring.trees import TreeInputs

__all__ = [
    "ACTIVATIONS",
    "BucketInputs",
    "Dense",
    "ExpressionInputs",
    "InputGroup",
    "Layer",
    "LinearInputs",
    "LogLinearInputs",
    "Mean",
    "RankerDescription",
    "Sum",
    "TreeInputs",
    "check_description",
    "default_feature_names",
]

_INPUT_KINDS: dict[str, type[Any]] = {
    kind.kind: kind for kind in (LinearInputs, LogLinearInputs, BucketInputs, ExpressionInputs, TreeInputs)
}
_LAYER_KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (Dense, Sum, Mean)}


@dataclass(frozen=True, eq=False)
class RankerDescription:
    """What a ranker computes: the features it reads, the inputs made from them, and the layers that give one score."""

    feature_names: tuple[str, ...]
    normaliser: Normaliser
    inputs: tuple[InputGroup, ...]
    layers: tuple[Layer, ...]

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def n_inputs(self) -> int:
        return sum(len(group) for group in self.inputs)

    @property
    def n_rounds(self) -> int | None:
        """The number of boosting rounds; None if the description is not a sum or mean of trees."""
        if len(self.inputs) != 1 or not isinstance(self.inputs[0], TreeInputs) or isinstance(self.layers[0], Dense):
            return None
        return len(self.inputs[0]) // self.inputs[0].round_size

    def first_rounds(self, n_rounds: int) -> RankerDescription:
        """The model after its first `n_rounds` rounds of boosting."""
        if self.n_rounds is None:
            raise ParameterError("only a sum of trees has scores after some of its rounds; this ranker is not one.")
        if not 0 < n_rounds <= self.n_rounds:
            raise ParameterError(
                f"must be between 1 and the model's {self.n_rounds}, got {n_rounds}.", parameter="n_rounds"
            )
        trees = self.inputs[0]
        assert isinstance(trees, TreeInputs)
        return replace(self, inputs=(trees.first(n_rounds * trees.round_size),))

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The description as a JSON-able tree and named arrays."""
        arrays: dict[str, np.ndarray] = {f"normaliser.{name}": array for name, array in self.normaliser.arrays.items()}
        tree = {
            "feature_names": list(self.feature_names),
            "normaliser": self.normaliser.name,
            "inputs": [_part_to_tree(part, f"inputs.{i}", arrays) for i, part in enumerate(self.inputs)],
            "layers": [_part_to_tree(part, f"layers.{i}", arrays) for i, part in enumerate(self.layers)],
        }
        return tree, arrays

    @classmethod
    def from_parts(cls, tree: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> RankerDescription:
        """The inverse of `to_parts`. Every shape and index is checked, since the parts come from a file."""
        try:
            if tree["normaliser"] not in NORMALISERS:
                raise FileFormatError(f"unknown normaliser {tree['normaliser']!r}.")
            prefix = "normaliser."
            description = cls(
                feature_names=_names_from_tree(tree["feature_names"]),
                normaliser=Normaliser(
                    tree["normaliser"],
                    {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)},
                ),
                inputs=tuple(
                    _part_from_tree(part, f"inputs.{i}", arrays, _INPUT_KINDS) for i, part in enumerate(tree["inputs"])
                ),
                layers=tuple(
                    _part_from_tree(part, f"layers.{i}", arrays, _LAYER_KINDS) for i, part in enumerate(tree["layers"])
                ),
            )
        except (KeyError, TypeError, AttributeError) as cause:
            raise FileFormatError(f"the ranker's description is incomplete ({cause!r}).") from cause
        check_description(description)
        return description


def default_feature_names(n_features: int) -> tuple[str, ...]:
    """f1, f2, ...: counted from 1, as the columns of LETOR files are."""
    return tuple(f"f{number}" for number in range(1, n_features + 1))


def _part_to_tree(part: Any, place: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    tree: dict[str, Any] = {"kind": part.kind}
    for item in fields(part):
        value = getattr(part, item.name)
        if isinstance(value, np.ndarray):
            arrays[f"{place}.{item.name}"] = value
        else:
            tree[item.name] = value
    return tree


def _names_from_tree(names: Any) -> tuple[str, ...]:
    require(
        isinstance(names, list) and all(isinstance(name, str) for name in names), "feature_names is not a list of names"
    )
    return tuple(names)


def _part_from_tree(
    tree: Mapping[str, Any], place: str, arrays: Mapping[str, np.ndarray], kinds: Mapping[str, type[Any]]
) -> Any:
    kind = kinds.get(tree["kind"])
    if kind is None:
        raise FileFormatError(f"unknown kind {tree['kind']!r} at {place}; known are {', '.join(kinds)}.")
    values: dict[str, Any] = {}
    for item in fields(kind):
        # Arrays are in the file's binary part only: a list of JSON in their place would reach the scorer unchecked.
        if item.type == "np.ndarray":
            values[item.name] = arrays[f"{place}.{item.name}"]
        elif item.name in tree:
            value = tree[item.name]
            values[item.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def check_description(description: RankerDescription) -> None:
    """Refuse a description that the scorer could not run safely."""
    _check_names(description.feature_names)
    _check_normaliser(description.normaliser, description.n_features)
    for group in description.inputs:
        check_inputs(group, description.feature_names)
    check_layers(description.layers, description.n_inputs)


def _check_names(names: tuple[str, ...]) -> None:
    require(len(set(names)) == len(names), "two features have the same name")
    try:
        "".join(names).encode()
    except UnicodeEncodeError as cause:
        raise FileFormatError("the ranker's description is damaged: a feature's name is not text.") from cause


def _check_normaliser(normaliser: Normaliser, n_features: int) -> None:
    if normaliser.name != "standard":
        return
    check_numbers(normaliser.arrays["mean"], "normaliser.mean", (n_features,))
    # The scale of a feature that does not vary is infinite.
    check_array(normaliser.arrays["scale"], "normaliser.scale", NUMBERS, (n_features,))
    require(bool((normaliser.arrays["scale"] > 0).all()), "normaliser.scale is not above 0")
