"""The ranker description: one form for every model.

    features ──> inputs (one number each, made from features) ──> layers ──> score

A linear model is linear inputs and one dense layer; a RankBoost model is bucket inputs and a sum; a ListNet is linear
inputs and a few dense layers; an imported LightGBM or XGBoost model is trees and a sum. A description may read the
scores of other descriptions, its parts, and rank in two passes (`composition`). Anything described here can be
evaluated, stored and served, so that the served model is the evaluated one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError, ParameterError
from rankwell.parameters import check_whole_number
from rankwell.scoring.array_checks import NUMBERS, check_array, check_numbers, require
from rankwell.scoring.composition import DEEPEST_NESTING, FirstPass, RankerPart, check_parts
from rankwell.scoring.feature_use import read_columns
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
    "FirstPass",
    "InputGroup",
    "Layer",
    "LinearInputs",
    "LogLinearInputs",
    "Mean",
    "RankerDescription",
    "RankerPart",
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
    """What a ranker computes: the features it reads, the inputs made from them, and the layers that give one score.

    Every ranker has one (`description_`), every ranker file holds one, and `rankwell ranker show` prints it; one that
    was written by hand is read by `MadeRanker.from_yaml`.

    Attributes
    ----------
    feature_names : tuple of str
        The columns of the data, in order.
    normaliser : Normaliser
        What is done to features before the inputs are made.
    inputs : tuple of LinearInputs, LogLinearInputs, BucketInputs, ExpressionInputs or TreeInputs
        Groups of inputs; each input is one number, made from the columns.
    layers : tuple of Dense, Sum or Mean
        What turns all inputs into one score. Without layers, the only input is the score.
    parts : tuple of RankerPart
        Other rankers, whose scores are columns after the features.
    first_pass : FirstPass, optional
        Only the best documents by one of the parts are scored; the others rank below them.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> description = rankwell.LeastSquares().fit(data).description_
    >>> description.feature_names
    ('f1', 'f2', 'f3', 'f4', 'f5')
    >>> description.normaliser.name
    'query-minmax'
    """

    feature_names: tuple[str, ...]
    normaliser: Normaliser
    inputs: tuple[InputGroup, ...]
    layers: tuple[Layer, ...]
    parts: tuple[RankerPart, ...] = ()
    first_pass: FirstPass | None = None

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names that inputs read: of the features, then of the parts."""
        return (*self.feature_names, *(part.name for part in self.parts))

    @property
    def n_columns(self) -> int:
        return len(self.feature_names) + len(self.parts)

    @property
    def needs_queries(self) -> bool:
        """Whether documents are compared with the others of their query, here or in a part."""
        return self.normaliser.needs_queries or any(part.description.needs_queries for part in self.parts)

    @cached_property
    def read_columns(self) -> frozenset[int]:
        """The columns that inputs read."""
        return read_columns(self)

    @cached_property
    def second_pass(self) -> RankerDescription:
        """What scores the documents that the first pass keeps; this description itself if it has no first pass.

        Always the same object, so that its scorer is prepared once.
        """
        if self.first_pass is None:
            return self
        reads_parts = any(column >= self.n_features for column in self.read_columns)
        return replace(self, first_pass=None, parts=self.parts if reads_parts else ())

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
        check_whole_number("n_rounds", n_rounds)
        if not 0 < n_rounds <= self.n_rounds:
            raise ParameterError(
                f"must be between 1 and the model's {self.n_rounds}, got {n_rounds}.", parameter="n_rounds"
            )
        trees = self.inputs[0]
        assert isinstance(trees, TreeInputs)
        return replace(self, inputs=(trees.first(n_rounds * trees.round_size),))

    def to_yaml(self, file: str) -> str:
        """The description as YAML: what `rankwell ranker show` prints and `MadeRanker.from_yaml` reads.

        file : the ranker file that holds the description, relative to where the YAML will be: trees and parts are
            references to it
        """
        from rankwell.scoring.written.writer import format_description

        return format_description(self, file)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The description as a JSON-able tree and named arrays."""
        arrays: dict[str, np.ndarray] = {f"normaliser.{name}": array for name, array in self.normaliser.arrays.items()}
        tree: dict[str, Any] = {
            "feature_names": list(self.feature_names),
            "normaliser": self.normaliser.name,
            "inputs": [_part_to_tree(part, f"inputs.{i}", arrays) for i, part in enumerate(self.inputs)],
            "layers": [_part_to_tree(part, f"layers.{i}", arrays) for i, part in enumerate(self.layers)],
        }
        if self.parts:
            tree["parts"] = []
        for i, part in enumerate(self.parts):
            subtree, own = part.description.to_parts()
            tree["parts"].append({"name": part.name, "features": list(part.features), "description": subtree})
            arrays |= {f"parts.{i}.{name}": array for name, array in own.items()}
        if self.first_pass is not None:
            tree["first_pass"] = {"part": self.first_pass.part, "keep": self.first_pass.keep}
        return tree, arrays

    @classmethod
    def from_parts(
        cls, tree: Mapping[str, Any], arrays: Mapping[str, np.ndarray], nesting: int = 1
    ) -> RankerDescription:
        """The inverse of `to_parts`. Every shape and index is checked, since the parts come from a file."""
        if nesting > DEEPEST_NESTING:
            raise FileFormatError(f"the ranker's description is damaged: parts are nested {nesting} deep.")
        try:
            if tree["normaliser"] not in NORMALISERS:
                raise FileFormatError(f"unknown normaliser {tree['normaliser']!r}.")
            description = cls(
                feature_names=_names_from_tree(tree["feature_names"]),
                normaliser=Normaliser(
                    tree["normaliser"],
                    _below("normaliser.", arrays),
                ),
                inputs=tuple(
                    _part_from_tree(part, f"inputs.{i}", arrays, _INPUT_KINDS) for i, part in enumerate(tree["inputs"])
                ),
                layers=tuple(
                    _part_from_tree(part, f"layers.{i}", arrays, _LAYER_KINDS) for i, part in enumerate(tree["layers"])
                ),
                parts=tuple(
                    RankerPart(
                        str(part["name"]),
                        tuple(part["features"]),
                        cls.from_parts(part["description"], _below(f"parts.{i}.", arrays), nesting + 1),
                    )
                    for i, part in enumerate(tree.get("parts", ()))
                ),
                first_pass=FirstPass(**tree["first_pass"]) if "first_pass" in tree else None,
            )
        except (KeyError, TypeError, AttributeError) as cause:
            raise FileFormatError(f"the ranker's description is incomplete ({cause!r}).") from cause
        check_description(description)
        return description


def default_feature_names(n_features: int) -> tuple[str, ...]:
    """f1, f2, ...: counted from 1, as the columns of LETOR files are."""
    return tuple(f"f{number}" for number in range(1, n_features + 1))


def _below(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin with `prefix`, without it."""
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def _part_to_tree(part: Any, place: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    tree: dict[str, Any] = {"kind": part.kind}
    for item in fields(part):
        value = getattr(part, item.name)
        if isinstance(value, np.ndarray):
            # An array that may be left out, and is empty, is not written: files stay as earlier releases wrote them.
            if len(value) or item.default_factory is MISSING:
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
            if item.default_factory is not MISSING and f"{place}.{item.name}" not in arrays:
                continue
            values[item.name] = arrays[f"{place}.{item.name}"]
        elif item.name in tree:
            value = tree[item.name]
            values[item.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def check_description(description: RankerDescription) -> None:
    """Refuse a description that the scorer could not run safely."""
    _check_names(description.column_names)
    _check_normaliser(description.normaliser, description.n_features)
    check_parts(description)
    for group in description.inputs:
        check_inputs(group, description.column_names)
    check_layers(description.layers, description.n_inputs)


def _check_names(names: tuple[str, ...]) -> None:
    require(len(set(names)) == len(names), "two features or parts have the same name")
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
