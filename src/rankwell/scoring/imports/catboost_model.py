"""CatBoost's models as JSON (`save_model(..., format="json")`), of numeric features.

CatBoost compares float32: x > border. Symmetric trees, CatBoost's default, have one test for each level, and bit k of a
leaf's number is the outcome of test k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription, default_feature_names
from rankwell.scoring.imports.numbered_features import MOST_FEATURES
from rankwell.scoring.layers import Sum
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.tree_builder import Tree, TreeBuilder

# CatBoost's own limit.
_DEEPEST_SYMMETRIC = 16


def is_catboost(content: Mapping[str, Any]) -> bool:
    """Whether JSON is CatBoost's."""
    return "features_info" in content and ("oblivious_trees" in content or "trees" in content)


def read_catboost(content: Mapping[str, Any]) -> RankerDescription:
    """The model in `content`."""
    if content["features_info"].get("categorical_features") or content["features_info"].get("text_features"):
        raise FileFormatError("the CatBoost model reads categories or texts; only numeric features can be imported.")
    names, features = _features(content["features_info"].get("float_features", []))
    scale, bias = _scale_and_bias(content.get("scale_and_bias", [1, [0]]))
    builder = TreeBuilder()
    for number, tree in enumerate(content.get("oblivious_trees") or ()):
        builder.add(_symmetric_tree(builder, tree, features, scale, number))
    for number, tree in enumerate(content.get("trees") or ()):
        builder.add(_nested_tree(builder, tree, features, scale, number))
    return RankerDescription(names, Normaliser("none"), (builder.build(),), (Sum(bias),))


class _Feature:
    """column : its place in a row; missing_left : where a missing value goes (left is "not above the border")"""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.column = int(entry.get("flat_feature_index", entry["feature_index"]))
        self.missing_left = entry.get("nan_value_treatment", "AsIs") != "AsTrue"
        self.name = str(entry.get("feature_id", "")).strip()
        if not 0 <= self.column < MOST_FEATURES:
            raise FileFormatError(f"the CatBoost model has a feature {self.column}, outside 0 to {MOST_FEATURES - 1}.")


def _features(entries: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], dict[int, _Feature]]:
    """The names of all columns, and the features by CatBoost's number."""
    features = {int(entry["feature_index"]): _Feature(entry) for entry in entries}
    n_features = max((feature.column + 1 for feature in features.values()), default=1)
    names = list(default_feature_names(n_features))
    own = {feature.column: feature.name for feature in features.values()}
    # CatBoost names a feature without a name by its number.
    if not all(name in ("", str(column)) for column, name in own.items()):
        for column, name in own.items():
            names[column] = name or names[column]
    return tuple(names), features


def _scale_and_bias(entry: Sequence[Any]) -> tuple[float, float]:
    scale, biases = entry
    listed = biases if isinstance(biases, list) else [biases]
    if len(listed) > 1:
        raise FileFormatError(f"the model gives {len(listed)} numbers per document, a ranker gives one score.")
    return float(scale), float(listed[0]) if listed else 0.0


def _test(split: Mapping[str, Any], features: Mapping[int, _Feature]) -> tuple[_Feature, np.float32]:
    if split.get("split_type", "FloatFeature") != "FloatFeature":
        raise FileFormatError(
            f"the CatBoost model has a split of type {split['split_type']!r}; only FloatFeature is read."
        )
    number = int(split["float_feature_index"])
    if number not in features:
        raise FileFormatError(f"the CatBoost model tests feature {number}, which it does not have.")
    return features[number], np.float32(split["border"])


def _symmetric_tree(
    builder: TreeBuilder, tree: Mapping[str, Any], features: Mapping[int, _Feature], scale: float, number: int
) -> Tree:
    splits, leaves = tree.get("splits") or [], [scale * float(value) for value in tree["leaf_values"]]
    depth = len(splits)
    if depth > _DEEPEST_SYMMETRIC or len(leaves) != 2**depth:
        raise FileFormatError(
            f"the CatBoost model's tree {number} has {depth} levels and {len(leaves)} leaf values; a ranker gives one "
            "score, and a tree of d levels has 2^d leaves."
        )
    tests = [_test(split, features) for split in splits]
    # Level by level from the root, which is the last test, the highest bit of a leaf's number.
    place = np.arange(2**depth - 1)
    level = np.frexp(place + 1)[1] - 1
    path = place - (2**level - 1)
    columns, thresholds, missing = [], [], []
    for k in level.tolist():
        feature, border = tests[depth - 1 - k]
        columns.append(builder.column(feature.column))
        thresholds.append(border)
        missing.append(feature.missing_left)
    last = level == depth - 1
    left, right = (np.where(last, -1 - (2 * path + side), 2 * place + 1 + side) for side in (0, 1))
    weights = [float(weight) for weight in tree.get("leaf_weights") or ()]
    known = weights if len(weights) == len(leaves) else ()
    return Tree(columns, np.array(thresholds, np.float32), missing, left.tolist(), right.tolist(), leaves, known)


def _nested_tree(
    builder: TreeBuilder, root: Mapping[str, Any], features: Mapping[int, _Feature], scale: float, number: int
) -> Tree:
    """Number nodes and leaves from the root down, level by level; no recursion, trees may be deep."""
    columns: list[int] = []
    thresholds, missing = [], []
    leaves: list[float] = []
    weights: list[float] = []
    children: list[list[int]] = []
    waiting: list[tuple[Mapping[str, Any], list[int] | None]] = [(root, None)]
    for item, siblings in waiting:
        if "split" in item:
            place = len(columns)
            feature, border = _test(item["split"], features)
            columns.append(builder.column(feature.column))
            thresholds.append(border)
            missing.append(feature.missing_left)
            children.append([])
            waiting.extend((item[side], children[place]) for side in ("left", "right"))
        else:
            place = -1 - len(leaves)
            if isinstance(item["value"], list):
                raise FileFormatError(f"the CatBoost model's tree {number} has several values in a leaf.")
            leaves.append(scale * float(item["value"]))
            weights.append(float(item.get("weight", 0.0)))
        if siblings is not None:
            siblings.append(place)
    left, right = ([pair[side] for pair in children] for side in (0, 1))
    return Tree(
        columns, np.array(thresholds, np.float32), missing, left, right, leaves, weights if any(weights) else ()
    )
