"""Inputs: how each number that the layers read is made from features. Decision trees are in `trees`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwell.errors import FileFormatError, ParameterError
from rankwell.scoring.array_checks import (
    INTEGERS,
    check_array,
    check_ascending,
    check_numbers,
    check_offsets,
    check_vector,
    check_within,
    require,
)
from rankwell.scoring.expression import Expression, parse_expressions
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

    def programs(self, feature_names: tuple[str, ...]) -> list[Expression]:
        """The parsed expressions. They are kept: a file's are parsed to check them, and again to plan the scoring."""
        known: tuple[tuple[str, ...], list[Expression]] | None = self.__dict__.get("_programs")
        if known is None or known[0] != feature_names:
            known = self.__dict__["_programs"] = (feature_names, parse_expressions(self.expressions, feature_names))
        return known[1]


InputGroup = LinearInputs | LogLinearInputs | BucketInputs | ExpressionInputs | TreeInputs


def check_inputs(group: InputGroup, feature_names: tuple[str, ...]) -> None:
    """Refuse inputs that the scorer could not run safely: everything that comes from a file is checked here."""
    if isinstance(group, TreeInputs):
        check_trees(group, len(feature_names))
    elif isinstance(group, ExpressionInputs):
        _check_expressions(group, feature_names)
    elif isinstance(group, BucketInputs):
        _check_buckets(group, len(feature_names))
    else:
        _check_lines(group, len(feature_names))


def _check_expressions(group: ExpressionInputs, feature_names: tuple[str, ...]) -> None:
    require(isinstance(group.expressions, tuple | list), "expressions are not a list")
    require(all(isinstance(text, str) for text in group.expressions), "an expression is not a string")
    check_numbers(group.missing, "expression inputs' missing", (len(group),))
    try:
        group.programs(feature_names)
    except ParameterError as cause:
        raise FileFormatError(str(cause)) from cause


def _check_lines(group: LinearInputs | LogLinearInputs, n_features: int) -> None:
    n_inputs = _check_features(group.feature, n_features)
    for name in ("scale", "offset", "missing"):
        check_numbers(getattr(group, name), f"{group.kind} inputs' {name}", (n_inputs,))


def _check_buckets(group: BucketInputs, n_features: int) -> None:
    n_inputs = _check_features(group.feature, n_features)
    n_edges = check_offsets(group.edge_ptr, "bucket inputs' edge_ptr", n_inputs)
    check_array(group.edges, "bucket inputs' edges", ("f4",), (n_edges,))
    check_numbers(group.values, "bucket inputs' values", (n_edges + n_inputs,))
    check_numbers(group.missing, "bucket inputs' missing", (n_inputs,))
    check_ascending(group.edges, group.edge_ptr, "bucket inputs' edges")


def _check_features(feature: np.ndarray, n_features: int) -> int:
    """Check which features a group of inputs reads; returns how many inputs it has."""
    n_inputs = check_vector(feature, "an input's features", INTEGERS)
    check_within(feature, n_features, "an input reads a feature that does not exist")
    return n_inputs
