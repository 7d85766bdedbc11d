"""What LightGBM's two file formats have in common: a model's header, and how a node decides.

LightGBM compares float64: x <= threshold. A feature here is float32, so the largest float32 not above the threshold
gives the same decisions. If a feature's missing type is None, a NaN counts as 0; if it is Zero, a zero and a NaN are
missing; if it is NaN, only a NaN is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.kernels.scoring.rules import IN_CATEGORIES, NEARLY_ZERO, VALUE, ZERO_IS_MISSING
from rankwell.scoring.description import RankerDescription, default_feature_names
from rankwell.scoring.imports.first_column import from_first_feature
from rankwell.scoring.imports.import_choices import ImportChoices
from rankwell.scoring.imports.pandas_categories import are_places, category_values, have_values, warn_of_texts
from rankwell.scoring.layers import Dense, Layer, Mean, Sum
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.tree_builder import Tree, TreeBuilder, float32_not_above

NO_INFO = "none"
MISSING_NONE, MISSING_ZERO, MISSING_NAN = 0, 1, 2

_IDENTITY = frozenset(
    {
        "regression",
        "regression_l2",
        "l2",
        "mean_squared_error",
        "mse",
        "regression_l1",
        "l1",
        "mae",
        "mean_absolute_error",
        "huber",
        "fair",
        "quantile",
        "mape",
        "lambdarank",
        "rank_xendcg",
        "xendcg",
        "xe_ndcg",
        "custom",
        "none",
    }
)
_EXPONENTIAL = frozenset({"poisson", "gamma", "tweedie"})
_SIGMOID = frozenset({"cross_entropy", "xentropy"})


@dataclass(frozen=True)
class Header:
    """The header of a LightGBM model.

    objective : its name and options, as written ("binary sigmoid:1"); empty for a custom objective
    feature_infos : what training saw of each feature, `NO_INFO` if one value only; None if the file does not say it
    pandas_categories : the values of each column of categories, if the model was trained on a pandas frame
    """

    objective: str
    feature_names: tuple[str, ...]
    n_classes: int
    trees_per_round: int
    average_output: bool
    feature_infos: tuple[str, ...] | None = None
    pandas_categories: Sequence[Sequence[Any]] = ()


@dataclass(frozen=True)
class Split:
    """One node: where it sends a document. `categories` is None if it compares numbers."""

    feature: int
    threshold: float
    default_left: bool
    missing_type: int
    left: int
    right: int
    categories: Sequence[int] | None = None


def check_header(header: Header) -> None:
    if header.n_classes > 1 or header.trees_per_round > 1:
        raise FileFormatError(
            f"the model scores {max(header.n_classes, header.trees_per_round)} classes, a ranker gives one score. "
            "Train it with a ranking, regression or binary objective."
        )


def lists_of_categories(content: Any) -> list[list[Any]]:
    """The values of pandas categories as LightGBM writes them: null, or a list of lists."""
    if content is None:
        return []
    if not isinstance(content, list) or not all(isinstance(listed, list) for listed in content):
        raise FileFormatError("the LightGBM model's pandas_categorical must be a list of lists.")
    return content


def values_of_categories(header: Header) -> dict[int, list[int]]:
    """By feature, the values that its categories stand for; none for features whose categories are as they are.

    The file has lists of values for the frame's columns of categories, in their order, and does not name the columns.
    They are the features of which it lists the categories that training saw, if there are as many.
    """
    lists, names = header.pandas_categories, header.feature_names
    if all(map(are_places, lists)):
        return {}
    if not any(map(have_values, lists)):
        warn_of_texts(lists)
        return {}
    infos = header.feature_infos or ()
    columns = [feature for feature, info in enumerate(infos) if ":" in info and not info.startswith("[")]
    if len(columns) != len(lists) or not all(
        _largest_category(infos[column]) < len(listed) for column, listed in zip(columns, lists, strict=True)
    ):
        raise FileFormatError(
            f"the LightGBM model was trained on a pandas frame with {len(lists)} columns of categories, and "
            f"{len(columns)} of its features have categories: which of them the values belong to is not in the file. "
            "Train it on a frame of numbers, with the categories as whole numbers from 0 and categorical_feature."
        )
    values = category_values({names[column]: listed for column, listed in zip(columns, lists, strict=True)})
    return {column: values[names[column]] for column in columns if names[column] in values}


def _largest_category(info: str) -> int:
    return max(int(word) for word in info.split(":"))


def add_tree(
    builder: TreeBuilder,
    splits: Sequence[Split],
    leaf_values: Sequence[float],
    leaf_counts: Sequence[float],
    values: Mapping[int, Sequence[int]],
) -> None:
    """Append one tree. A single leaf has no splits; leaf_counts may be empty.

    values : as `values_of_categories` gives them
    """
    thresholds = _decide_zeros(
        float32_not_above(np.array([0.0 if s.categories is not None else s.threshold for s in splits]))
    )
    columns, missing_left, left, right = [], [], [], []
    for split, threshold in zip(splits, thresholds.tolist(), strict=True):
        if split.categories is not None:
            # "In the set goes left" here is "1 > 0 goes right" with the children swapped; a NaN is in no set.
            own = values.get(split.feature)
            categories = split.categories if own is None else [own[category] for category in split.categories]
            columns.append(builder.column(split.feature, IN_CATEGORIES, categories))
            missing_left.append(True)
            left.append(split.right)
            right.append(split.left)
            continue
        columns.append(builder.column(split.feature, ZERO_IS_MISSING if split.missing_type == MISSING_ZERO else VALUE))
        missing_left.append(split.default_left if split.missing_type != MISSING_NONE else threshold >= 0.0)
        left.append(split.left)
        right.append(split.right)
    builder.add(Tree(columns, thresholds, missing_left, left, right, leaf_values, leaf_counts))


def _decide_zeros(thresholds: np.ndarray) -> np.ndarray:
    """Thresholds that send a value within 1e-35 of zero where a zero goes, as LightGBM does: it drops such values."""
    if np.isnan(thresholds).any():
        raise FileFormatError("a threshold is not a number.")
    below_all_zeros = np.nextafter(-NEARLY_ZERO, np.float32(-np.inf))
    moved = np.where(thresholds >= 0, np.maximum(thresholds, NEARLY_ZERO), thresholds)
    return np.where((moved < 0) & (moved >= -NEARLY_ZERO), below_all_zeros, moved)


def describe(header: Header, builder: TreeBuilder, choices: ImportChoices) -> RankerDescription:
    """The description of the whole model."""
    trees = builder.build()
    is_forest = header.average_output and len(trees) > 0
    whole = RankerDescription(
        feature_names=_names(header.feature_names),
        normaliser=Normaliser("none"),
        inputs=(trees,),
        layers=(Mean() if is_forest else Sum(), *_output_layers(header.objective)),
    )
    return from_first_feature(whole, choices, is_empty=_column_0_is_empty(header))


def _column_0_is_empty(header: Header) -> bool | None:
    """Whether training saw nothing in column 0; None if the model says it of no feature, as exported models do."""
    infos = header.feature_infos
    if infos is None or all(info == NO_INFO for info in infos):
        return None
    return infos[0] == NO_INFO


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Column_0, Column_1, ... are LightGBM's names for unnamed features."""
    if names == tuple(f"Column_{i}" for i in range(len(names))):
        return default_feature_names(len(names))
    return names


def _output_layers(objective: str) -> tuple[Layer, ...]:
    """The transformation that `Booster.predict` applies to the sum of the trees."""
    name, *options = objective.split() or ["none"]
    if name in _IDENTITY and "sqrt" not in options:
        return ()
    if name in _EXPONENTIAL:
        return (Dense(np.ones((1, 1)), np.zeros(1), "exp"),)
    if name in _SIGMOID:
        return (Dense(np.ones((1, 1)), np.zeros(1), "sigmoid"),)
    if name == "binary":
        slope = next((float(option[8:]) for option in options if option.startswith("sigmoid:")), 1.0)
        return (Dense(np.full((1, 1), slope), np.zeros(1), "sigmoid"),)
    known = sorted(_IDENTITY | _EXPONENTIAL | _SIGMOID | {"binary"})
    raise FileFormatError(
        f"the model's objective is {objective!r}, which has no counterpart here. Known are {', '.join(known)}."
    )
