"""RankLib's model files: LambdaMART, MART, Random Forests, RankBoost, Coordinate Ascent, AdaRank, Linear Regression.

RankLib counts a missing value as 0, and so does the imported model. Its trees are float32 and so are its sums of trees;
the sum here is float64.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.imports.numbered_features import (
    checked_width,
    describe_numbered,
    feature_number,
    finite_number,
    linear_description,
)
from rankwell.scoring.imports.ranklib_trees import read_ensembles
from rankwell.scoring.inputs import BucketInputs
from rankwell.scoring.layers import Sum
from rankwell.scoring.step_functions import step_functions
from rankwell.scoring.tree_builder import float32_not_above

_NAME = re.compile(r"\s*##\s*(?P<name>[^\n]*)")
_NETWORKS = ("RANKNET", "LISTNET", "LAMBDARANK")


def is_ranklib(head: bytes) -> bool:
    """Whether a file that begins so is RankLib's."""
    found = _NAME.match(head.decode("utf-8", errors="replace"))
    return found is not None and found["name"].strip().upper() in (*_READERS, *_NETWORKS)


def read_ranklib(text: str, n_features: int | None) -> RankerDescription:
    """The model in `text`."""
    found = _NAME.match(text)
    name = "" if found is None else found["name"].strip()
    if name.upper() in _NETWORKS:
        raise FileFormatError(
            f"this is RankLib's {name}, a network. RankLib's trees, RankBoost and linear models are read."
        )
    if name.upper() not in _READERS:
        raise FileFormatError(f"RankLib has no model called {name[:40]!r} that can be read.")
    lines = (line.strip() for line in text.splitlines())
    content = "\n".join(line for line in lines if line and not line.startswith("##"))
    return _READERS[name.upper()](content, n_features)


def _read_trees(content: str, n_features: int | None) -> RankerDescription:
    trees = read_ensembles(content)
    read = int(trees.column_feature.max(initial=-1)) + 1
    return describe_numbered((trees,), (Sum(),), checked_width(read, n_features))


def _read_weights(content: str, n_features: int | None) -> RankerDescription:
    """`feature:weight ...`; a feature 0 is the constant."""
    weights: dict[int, float] = {}
    intercept = 0.0
    for number, pair in enumerate(_words(content), start=1):
        place = f"weight {number}"
        feature, colon, weight = pair.partition(":")
        if not colon:
            raise FileFormatError(f"{place} must be feature:weight, got {pair[:40]!r}.")
        value = finite_number(weight, place)
        if feature == "0":
            intercept += value
        else:
            column = feature_number(feature, place)
            weights[column] = weights.get(column, 0.0) + value
    return linear_description(weights, intercept, n_features)


def _read_rankboost(content: str, n_features: int | None) -> RankerDescription:
    """`feature:threshold:weight ...`: the weight is added where the feature is above the threshold."""
    features, thresholds, weights = [], [], []
    for number, triple in enumerate(_words(content), start=1):
        place, fields = f"weak ranker {number}", triple.split(":")
        if len(fields) != 3:
            raise FileFormatError(f"{place} must be feature:threshold:weight, got {triple[:40]!r}.")
        features.append(feature_number(fields[0], place))
        # Below every value: RankLib's word for it is Java's.
        thresholds.append(-np.inf if fields[1] == "-Infinity" else finite_number(fields[1], place))
        weights.append(finite_number(fields[2], place))
    threshold = float32_not_above(np.array(thresholds))
    steps = step_functions(np.array(features, dtype=np.int32), threshold, np.array(weights))
    read = max(features) + 1
    return describe_numbered((_zero_if_missing(steps),), (Sum(),), checked_width(read, n_features))


def _zero_if_missing(steps: BucketInputs) -> BucketInputs:
    """The same step functions, with the value at 0 for a missing value."""
    at_zero = []
    for i in range(len(steps)):
        start, end = int(steps.edge_ptr[i]), int(steps.edge_ptr[i + 1])
        at_zero.append(steps.values[start + i + int(np.count_nonzero(steps.edges[start:end] < 0))])
    return BucketInputs(steps.feature, steps.edge_ptr, steps.edges, steps.values, np.array(at_zero))


def _words(content: str) -> list[str]:
    """The pairs or triples of a model: the first line that is no comment, up to a #."""
    words = content.partition("\n")[0].partition("#")[0].split()
    if not words:
        raise FileFormatError("the RankLib model was cut short: it has no weights.")
    return words


_READERS: dict[str, Callable[[str, int | None], RankerDescription]] = {
    "LAMBDAMART": _read_trees,
    "MART": _read_trees,
    "RANDOM FORESTS": _read_trees,
    "RANKBOOST": _read_rankboost,
    "COORDINATE ASCENT": _read_weights,
    "ADARANK": _read_weights,
    "LINEAR REGRESSION": _read_weights,
}
