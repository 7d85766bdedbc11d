"""The ranker description: one form for every model.

    features ──> inputs (one number each, made from a feature) ──> layers ──> score

A linear model is linear inputs and one dense layer; a RankBoost model is bucket inputs and a sum; a ListNet is linear
inputs and a few dense layers. Whatever is described here can be evaluated, stored and served, so what is served is
what was evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.scoring.normaliser import NORMALISERS, Normaliser

ACTIVATIONS = ("identity", "sigmoid", "relu", "tanh")


@dataclass(frozen=True)
class LinearInputs:
    """input = scale · x + offset; a missing value gives `missing`.

    feature : int32 (n_inputs,); scale, offset, missing : float64 (n_inputs,)
    """

    kind: ClassVar[str] = "linear"
    feature: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    missing: np.ndarray

    def __len__(self) -> int:
        return len(self.feature)

    @classmethod
    def identity(cls, n_features: int) -> LinearInputs:
        """Every feature as it is, a missing one as 0."""
        zeros = np.zeros(n_features)
        return cls(np.arange(n_features, dtype=np.int32), np.ones(n_features), zeros, zeros)


@dataclass(frozen=True)
class BucketInputs:
    """A step function of one feature: input = value[number of edges below x]; a missing value gives `missing`.

    Input i has edges ``edges[edge_ptr[i]:edge_ptr[i + 1]]``, ascending, and one more value than edges. x lies in bucket
    b when exactly b edges e satisfy x > e.

    feature : int32 (n_inputs,); edge_ptr : int64 (n_inputs + 1,); edges : float32; values : float64
    (n_edges + n_inputs,); missing : float64 (n_inputs,)
    """

    kind: ClassVar[str] = "bucket"
    feature: np.ndarray
    edge_ptr: np.ndarray
    edges: np.ndarray
    values: np.ndarray
    missing: np.ndarray

    def __len__(self) -> int:
        return len(self.feature)


@dataclass(frozen=True)
class Dense:
    """output = activation(weights · input + bias). weights : float (n_out, n_in); bias : float (n_out,)"""

    kind: ClassVar[str] = "dense"
    weights: np.ndarray
    bias: np.ndarray
    activation: str = "identity"


@dataclass(frozen=True)
class Sum:
    """The sum of all inputs, one output."""

    kind: ClassVar[str] = "sum"


InputGroup = LinearInputs | BucketInputs
Layer = Dense | Sum

_INPUT_KINDS: dict[str, type[Any]] = {LinearInputs.kind: LinearInputs, BucketInputs.kind: BucketInputs}
_LAYER_KINDS: dict[str, type[Any]] = {Dense.kind: Dense, Sum.kind: Sum}


@dataclass(frozen=True)
class RankerDescription:
    """What a ranker computes: which features it reads, how inputs are made of them, and the layers to one score."""

    feature_names: tuple[str, ...]
    normaliser: Normaliser
    inputs: tuple[InputGroup, ...]
    layers: tuple[Layer, ...]

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

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
        """The description back from `to_parts`, every shape and index checked, since the parts come from a file."""
        try:
            if tree["normaliser"] not in NORMALISERS:
                raise FileFormatError(f"unknown normaliser {tree['normaliser']!r}.")
            prefix = "normaliser."
            description = cls(
                feature_names=tuple(str(name) for name in tree["feature_names"]),
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
        _check(description)
        return description


def _part_to_tree(part: Any, place: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    tree: dict[str, Any] = {"kind": part.kind}
    for item in fields(part):
        value = getattr(part, item.name)
        if isinstance(value, np.ndarray):
            arrays[f"{place}.{item.name}"] = value
        else:
            tree[item.name] = value
    return tree


def _part_from_tree(
    tree: Mapping[str, Any], place: str, arrays: Mapping[str, np.ndarray], kinds: Mapping[str, type[Any]]
) -> Any:
    kind = kinds.get(tree["kind"])
    if kind is None:
        raise FileFormatError(f"unknown kind {tree['kind']!r} at {place}; known are {', '.join(kinds)}.")
    return kind(
        **{item.name: tree[item.name] if item.name in tree else arrays[f"{place}.{item.name}"] for item in fields(kind)}
    )


def _check(description: RankerDescription) -> None:
    """Refuse what the evaluator could not run safely."""
    n_features = description.n_features
    if description.normaliser.name == "standard":
        for name in ("mean", "scale"):
            _require(
                description.normaliser.arrays[name].shape == (n_features,),
                f"normaliser.{name} has a wrong shape",
            )
    width = 0
    for group in description.inputs:
        _check_inputs(group, n_features)
        width += len(group)
    for layer in description.layers:
        if isinstance(layer, Dense):
            _require(layer.weights.ndim == 2 and layer.weights.shape[1] == width, "a dense layer has a wrong shape")
            _require(layer.bias.shape == (layer.weights.shape[0],), "a dense layer's bias has a wrong shape")
            _require(layer.activation in ACTIVATIONS, f"unknown activation {layer.activation!r}")
            width = layer.weights.shape[0]
        else:
            width = 1
    _require(width == 1, f"the last layer must give one score, it gives {width}")


def _check_inputs(group: InputGroup, n_features: int) -> None:
    feature = group.feature
    _require(feature.ndim == 1 and np.issubdtype(feature.dtype, np.integer), "an input's features are no list")
    _require(bool(((feature >= 0) & (feature < n_features)).all()), "an input reads a feature that does not exist")
    if isinstance(group, LinearInputs):
        for name in ("scale", "offset", "missing"):
            _require(getattr(group, name).shape == feature.shape, f"linear inputs' {name} has a wrong shape")
        return
    _require(group.edge_ptr.shape == (len(feature) + 1,), "bucket inputs' edge_ptr has a wrong shape")
    _require(
        group.edge_ptr[0] == 0
        and bool((np.diff(group.edge_ptr) >= 0).all())
        and group.edge_ptr[-1] == len(group.edges),
        "bucket inputs' edge_ptr does not fit their edges",
    )
    _require(group.values.shape == (len(group.edges) + len(feature),), "bucket inputs' values have a wrong shape")
    _require(group.missing.shape == feature.shape, "bucket inputs' missing has a wrong shape")


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise FileFormatError(f"the ranker's description is damaged: {complaint}.")
