"""Models whose files number features from 1 and do not say how many there are, or are plain weights of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription, default_feature_names
from rankwell.scoring.inputs import InputGroup, LinearInputs
from rankwell.scoring.layers import Dense, Layer
from rankwell.scoring.normaliser import Normaliser

# A model without names gets f1, f2, ...: a few bytes of a file must not fill the memory with them.
MOST_FEATURES = 2**22


def feature_number(text: str, place: str) -> int:
    """The feature that a file calls `text`, from 0."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_FEATURES:
        raise FileFormatError(f"{place} must be a feature's number from 1 to {MOST_FEATURES}, got {text[:40]!r}.")
    return number - 1


def finite_number(text: str, place: str) -> float:
    """The number that a file calls `text`."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise FileFormatError(f"{place} must be a number, got {text[:40]!r}.")
    return number


def linear_description(weights: Mapping[int, float], intercept: float, n_features: int | None) -> RankerDescription:
    """score = Σ weight · x + intercept; a missing value counts as 0.

    weights : by feature, from 0; n_features : how many there are, None if that is not known
    """
    width = checked_width(max(weights, default=-1) + 1, n_features)
    row = np.zeros((1, width))
    row[0, list(weights)] = list(weights.values())
    layer = Dense(row, np.array([intercept]))
    return describe_numbered((LinearInputs.identity(width),), (layer,), width)


def describe_numbered(inputs: tuple[InputGroup, ...], layers: tuple[Layer, ...], n_features: int) -> RankerDescription:
    """A model over f1, f2, ..., as they are."""
    return RankerDescription(default_feature_names(n_features), Normaliser("none"), inputs, layers)


def checked_width(read: int, n_features: int | None) -> int:
    """The number of features: as many as are read, or as many as there are said to be."""
    if n_features is not None and n_features < read:
        raise FileFormatError(f"the model reads feature {read}, but there are {n_features} features.")
    return max(1, read) if n_features is None else n_features
