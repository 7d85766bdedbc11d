"""Inputs: how each number that the layers read is made from features. Decision trees are in `trees`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwell.errors import FileFormatError, ParameterError
from rankwell.scoring.expression import parse_expression
from rankwell.scoring.trees import TreeInputs, check_trees


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
        """Every feature unchanged, a missing one as 0."""
        zeros = np.zeros(n_features)
        return cls(np.arange(n_features, dtype=np.int32), np.ones(n_features), zeros, zeros)


@dataclass(frozen=True)
class LogLinearInputs:
    """input = scale · log(x + 1) + offset; a missing value, or one of -1 and below, gives `missing`.

    feature : int32 (n_inputs,); scale, offset, missing : float64 (n_inputs,)
    """

    kind: ClassVar[str] = "log-linear"
    feature: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    missing: np.ndarray

    def __len__(self) -> int:
        return len(self.feature)


@dataclass(frozen=True)
class BucketInputs:
    """A step function of one feature: input = value[number of edges below x]; a missing value gives `missing`.

    Input i has edges ``edges[edge_ptr[i]:edge_ptr[i + 1]]``, ascending, and one more value than edges. x is in bucket
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
class ExpressionInputs:
    """input = the value of a formula over features, by name (see `expression`); one without a finite value gives
    `missing`.

    expressions : tuple of str (n_inputs,); missing : float64 (n_inputs,)
    """

    kind: ClassVar[str] = "expression"
    expressions: tuple[str, ...]
    missing: np.ndarray

    def __len__(self) -> int:
        return len(self.expressions)


InputGroup = LinearInputs | LogLinearInputs | BucketInputs | ExpressionInputs | TreeInputs


def check_inputs(group: InputGroup, feature_names: tuple[str, ...]) -> None:
    """Refuse inputs that the scorer could not run safely: everything that comes from a file is checked here."""
    if isinstance(group, TreeInputs):
        check_trees(group, len(feature_names))
    elif isinstance(group, ExpressionInputs):
        _check_expressions(group, feature_names)
    else:
        _check_single_features(group, len(feature_names))


def _check_expressions(group: ExpressionInputs, feature_names: tuple[str, ...]) -> None:
    _require(isinstance(group.expressions, tuple | list), "expressions are not a list")
    _require(group.missing.shape == (len(group),), "expression inputs' missing has a wrong shape")
    for text in group.expressions:
        _require(isinstance(text, str), "an expression is not a string")
        try:
            parse_expression(text, feature_names)
        except ParameterError as cause:
            raise FileFormatError(str(cause)) from cause


def _check_single_features(group: LinearInputs | LogLinearInputs | BucketInputs, n_features: int) -> None:
    feature = group.feature
    _require(feature.ndim == 1 and np.issubdtype(feature.dtype, np.integer), "an input's features are not a list")
    _require(bool(((feature >= 0) & (feature < n_features)).all()), "an input reads a feature that does not exist")
    if not isinstance(group, BucketInputs):
        for name in ("scale", "offset", "missing"):
            _require(getattr(group, name).shape == feature.shape, f"{group.kind} inputs' {name} has a wrong shape")
        return
    _require(group.edge_ptr.shape == (len(feature) + 1,), "bucket inputs' edge_ptr has a wrong shape")
    _require(
        group.edge_ptr[0] == 0
        and bool((np.diff(group.edge_ptr) >= 0).all())
        and group.edge_ptr[-1] == len(group.edges),
        "bucket inputs' edge_ptr does not match their edges",
    )
    _require(group.values.shape == (len(group.edges) + len(feature),), "bucket inputs' values have a wrong shape")
    _require(group.missing.shape == feature.shape, "bucket inputs' missing has a wrong shape")


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise FileFormatError(f"the ranker's description is damaged: {complaint}.")
