"""XGBoost models (`Booster.save_model`, as JSON or UBJSON: the same tree of values).

XGBoost compares float32: x < threshold goes left, so the threshold here is the float32 just below it. A missing value
follows the node's default direction. A category in the node's set goes right. Leaves are float32 and so are
XGBoost's sums; the sum here is float64 and therefore differs from XGBoost's own by rounding.

A model that early stopping ended has the number of its best round among its attributes, and the rounds after it among
its trees. `predict` of XGBoost's estimators leaves those out, `Booster.predict` does not.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError, Parameter
from rankwell.kernels.scoring.rules import IN_CATEGORIES
from rankwell.scoring.description import RankerDescription, default_feature_names
from rankwell.scoring.imports.complaint import complaint
from rankwell.scoring.imports.first_column import from_first_feature
from rankwell.scoring.imports.import_choices import ImportChoices
from rankwell.scoring.imports.numbered_features import MOST_FEATURES
from rankwell.scoring.imports.pandas_categories import category_values
from rankwell.scoring.layers import Dense, Layer, Sum
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.tree_builder import Tree, TreeBuilder, float32_below

logger = logging.getLogger(__name__)

_IDENTITY = frozenset(
    {
        "rank:pairwise",
        "rank:ndcg",
        "rank:map",
        "reg:squarederror",
        "reg:linear",
        "reg:absoluteerror",
        "reg:pseudohubererror",
        "reg:quantileerror",
        "reg:squaredlogerror",
        "binary:logitraw",
    }
)
_SIGMOID = frozenset({"binary:logistic", "reg:logistic"})
_EXPONENTIAL = frozenset({"count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"})


def read_xgboost(content: Mapping[str, Any], choices: ImportChoices) -> RankerDescription:
    """The model in `content`, XGBoost's schema as nested mappings and lists."""
    try:
        learner = content["learner"]
        settings = learner["learner_model_param"]
        _check_one_output(settings)
        booster = learner["gradient_booster"]
        trees, weights = _trees_and_weights(booster)
        round_size = _trees_in_a_round(booster)
        if not choices.all_rounds:
            trees = trees[: _best_rounds(learner, len(trees) // round_size) * round_size]
        names = tuple(str(name) for name in learner.get("feature_names", ()))
        values = _values_of_categories(booster, names)
        builder = TreeBuilder()
        for number, tree in enumerate(trees):
            _add_tree(builder, tree, weights[number], number, values)
        objective = str(learner["objective"]["name"])
        n_features = int(settings["num_feature"])
        if not 0 <= n_features <= MOST_FEATURES:
            raise FileFormatError(f"the XGBoost model has {n_features} features; at most {MOST_FEATURES} can be read.")
        if names and len(names) != n_features:
            raise FileFormatError(f"the XGBoost model has {n_features} features, but {len(names)} names.")
        layers = (Sum(bias=_bias(settings, objective)), *_output_layers(objective))
    except FileFormatError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as cause:
        raise FileFormatError(f"the XGBoost model is incomplete or damaged ({complaint(cause)}).") from cause
    whole = RankerDescription(
        feature_names=names or default_feature_names(n_features),
        normaliser=Normaliser("none"),
        inputs=(builder.build(round_size=round_size),),
        layers=layers,
    )
    return from_first_feature(whole, choices, is_empty=None)


def _check_one_output(settings: Mapping[str, Any]) -> None:
    outputs = max(int(settings.get("num_class", 0)), int(settings.get("num_target", 1)))
    if outputs > 1:
        raise FileFormatError(
            f"the model gives {outputs} numbers per document (num_class or num_target), a ranker gives one score. "
            "Train it with a ranking, regression or binary objective."
        )


def _trees_and_weights(booster: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[float]]:
    """The trees, and the weight of each: 1, except in a dart model."""
    name = booster["name"]
    if name == "dart":
        trees = booster["gbtree"]["model"]["trees"]
        weights = [float(weight) for weight in booster["weight_drop"]]
        if len(weights) != len(trees):
            raise FileFormatError(f"the dart model has {len(trees)} trees, but {len(weights)} weights.")
        return trees, weights
    if name != "gbtree":
        raise FileFormatError(f"the XGBoost model's booster is {name!r}; gbtree and dart can be imported.")
    trees = booster["model"]["trees"]
    return trees, [1.0] * len(trees)


def _tree_model(booster: Mapping[str, Any]) -> Mapping[str, Any]:
    model: Mapping[str, Any] = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
    return model


def _values_of_categories(booster: Mapping[str, Any], names: tuple[str, ...]) -> dict[int, list[int]]:
    """By feature, the values that its categories stand for in the data frame; none where they are as they are."""
    lists = _tree_model(booster).get("cats", {}).get("enc", ())
    categories = {feature: _categories(entry) for feature, entry in enumerate(lists)}
    names = names or default_feature_names(len(categories))
    values = category_values({names[feature]: listed for feature, listed in categories.items() if listed})
    return {feature: values[names[feature]] for feature in categories if names[feature] in values}


def _categories(entry: Mapping[str, Any]) -> list[Any]:
    """The categories of one feature: numbers, or texts one after another with their offsets; none of other features."""
    values = np.asarray(entry["values"], np.int64).tolist()
    if "offsets" not in entry:
        return values
    # XGBoost writes bytes as signed numbers.
    text = bytes(value & 0xFF for value in values)
    offsets = np.asarray(entry["offsets"], np.int64).tolist()
    return [text[start:end].decode("utf-8", errors="replace") for start, end in pairwise(offsets)]


def _trees_in_a_round(booster: Mapping[str, Any]) -> int:
    model = _tree_model(booster)
    return max(1, int(model["gbtree_model_param"].get("num_parallel_tree", 1)))


def _best_rounds(learner: Mapping[str, Any], n_rounds: int) -> int:
    """The rounds up to the best one, which early stopping writes down counted from 0; all of them if it did not."""
    best = learner.get("attributes", {}).get("best_iteration")
    if best is None:
        return n_rounds
    if not 0 <= int(best) < n_rounds:
        raise FileFormatError(
            f"the XGBoost model's best_iteration must be one of its {n_rounds} rounds, counted from 0, got {best}."
        )
    kept = int(best) + 1
    if kept < n_rounds:
        logger.info(
            "early stopping ended this model of XGBoost: its best %d of %d rounds are imported, as XGBRanker predicts; "
            "Booster.predict uses all, and so does an import with %s",
            kept,
            n_rounds,
            Parameter("all_rounds", True),
        )
    return kept


def _add_tree(
    builder: TreeBuilder, tree: Mapping[str, Any], weight: float, number: int, values: Mapping[int, Sequence[int]]
) -> None:
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise FileFormatError(f"tree {number} has leaves with several numbers, a ranker gives one score.")
    left, right = np.asarray(tree["left_children"], np.int64), np.asarray(tree["right_children"], np.int64)
    condition = np.asarray(tree["split_conditions"], np.float32)
    feature = np.asarray(tree["split_indices"], np.int64)
    default_left = np.asarray(tree["default_left"], np.int64)
    reached = _reachable(left, right, number)
    is_leaf = left[reached] < 0
    # Nodes and leaves are numbered separately here, in the order of the traversal.
    code = np.zeros(len(left), np.int64)
    code[reached[~is_leaf]] = np.arange(np.count_nonzero(~is_leaf))
    code[reached[is_leaf]] = -1 - np.arange(np.count_nonzero(is_leaf))
    nodes, leaves = reached[~is_leaf], reached[is_leaf]
    sets = _category_sets(tree)
    if np.isnan(condition[[node for node in nodes.tolist() if node not in sets]]).any():
        raise FileFormatError(f"tree {number} has a threshold that is not a number.")
    columns = [
        builder.column(int(feature[node]), IN_CATEGORIES, _values_in(sets[node], values.get(int(feature[node]))))
        if node in sets
        else builder.column(int(feature[node]))
        for node in nodes.tolist()
    ]
    thresholds = float32_below(np.where(np.isin(nodes, list(sets)), np.float32(0.5), condition[nodes]))
    # XGBoost multiplies in float32 as well.
    leaf_values = (np.float32(weight) * condition[leaves]).astype(np.float64)
    hessians = np.asarray(tree.get("sum_hessian", ()), np.float64)
    weights = hessians[leaves] if len(hessians) == len(left) else ()
    children = code[left[nodes]], code[right[nodes]]
    builder.add(Tree(columns, thresholds, default_left[nodes] != 0, *children, leaf_values, weights))


def _values_in(categories: Sequence[int], values: Sequence[int] | None) -> Sequence[int]:
    """A set of categories as the data has them, which are places among `values` if there are any."""
    return categories if values is None else [values[category] for category in categories]


def _reachable(left: np.ndarray, right: np.ndarray, number: int) -> np.ndarray:
    """The nodes of a tree from its root down, parents first; pruned nodes may be between them in the file."""
    order = [0]
    for node in order:
        if left[node] >= 0:
            order.extend((int(left[node]), int(right[node])))
        if len(order) > len(left):
            raise FileFormatError(f"tree {number} contains a cycle.")
    return np.array(order, dtype=np.int64)


def _category_sets(tree: Mapping[str, Any]) -> dict[int, list[int]]:
    """The categories of each categorical node."""
    nodes = np.asarray(tree.get("categories_nodes", ()), np.int64).tolist()
    if not nodes and np.any(np.asarray(tree.get("split_type", ()), np.int64) == 1):
        raise FileFormatError("the model has categorical splits, but no categories for them.")
    categories = np.asarray(tree.get("categories", ()), np.int64)
    starts = np.asarray(tree.get("categories_segments", ()), np.int64)
    sizes = np.asarray(tree.get("categories_sizes", ()), np.int64)
    return {
        node: categories[start : start + size].tolist()
        for node, start, size in zip(nodes, starts.tolist(), sizes.tolist(), strict=True)
    }


def _bias(settings: Mapping[str, Any], objective: str) -> float:
    """base_score as a term of the sum: XGBoost stores it as a prediction, one number or a list of one."""
    words = str(settings["base_score"]).strip("[]").split(",")
    if len(words) != 1:
        raise FileFormatError(f"the model has {len(words)} base scores, a ranker gives one score.")
    base = float(np.float32(words[0]))
    if objective in _SIGMOID:
        if not 0.0 < base < 1.0:
            raise FileFormatError(f"the model's base_score {base} is not a probability.")
        return float(np.float32(-math.log(1.0 / base - 1.0)))
    if objective in _EXPONENTIAL:
        return float(np.float32(math.log(base))) if base > 0 else -math.inf
    return base


def _output_layers(objective: str) -> tuple[Layer, ...]:
    """The transformation that `Booster.predict` applies to the sum of the trees."""
    if objective in _IDENTITY:
        return ()
    if objective in _SIGMOID:
        return (Dense(np.ones((1, 1)), np.zeros(1), "sigmoid"),)
    if objective in _EXPONENTIAL:
        return (Dense(np.ones((1, 1)), np.zeros(1), "exp"),)
    known = ", ".join(sorted(_IDENTITY | _SIGMOID | _EXPONENTIAL))
    raise FileFormatError(f"the model's objective is {objective!r}, which has no counterpart here. Known are {known}.")
