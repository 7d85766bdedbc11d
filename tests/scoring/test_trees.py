"""Trees: thresholds decide exactly, and whatever could not be walked safely is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.scoring.random_rankers import forest, random_rows, random_trees

from rankwell.errors import FileFormatError, ParameterError
from rankwell.scoring.scorer import RankerScorer
from rankwell.scoring.tree_builder import Tree, TreeBuilder, float32_below, float32_not_above
from rankwell.scoring.trees import check_trees

FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(FLOAT32, st.floats(allow_nan=False) | FLOAT32)
def test_a_float64_threshold_decides_the_same_in_float32(x, threshold):
    rounded = float32_not_above(np.array([threshold]))[0]
    assert (x <= threshold) == bool(np.float32(x) <= rounded)


@given(FLOAT32, st.floats(allow_nan=False, width=32))
@example(0.0, float(np.finfo(np.float32).min))
def test_less_than_becomes_at_most(x, threshold):
    assert (np.float32(x) < np.float32(threshold)) == (np.float32(x) <= float32_below(np.array([threshold]))[0])


def test_rounding_to_the_nearest_would_decide_otherwise():
    """0.1 in float64 lies below 0.1 in float32: x = float32(0.1) must go right."""
    assert not np.float32(0.1).astype(float) <= 0.1
    assert np.float32(0.1) <= np.array([0.1]).astype(np.float32)[0]
    assert not np.float32(0.1) <= float32_not_above(np.array([0.1]))[0]


def test_nodes_in_any_order_are_sorted_parents_first():
    builder = TreeBuilder()
    columns = [builder.column(0), builder.column(1), builder.column(2)]
    # root 0 -> node 2 -> node 1
    builder.add(Tree(columns, [0.0, 1.0, 2.0], [True] * 3, [2, -1, 1], [-2, -3, -4], [1.0, 2.0, 3.0, 4.0]))
    trees = builder.build()
    check_trees(trees, 3)
    # f1 = 0 left, f3 = 0 <= 2 left, f2 = 0 <= 1 left: leaf 0
    assert RankerScorer(forest(trees, 3)).score(np.zeros((1, 3), np.float32)) == [1.0]


def damaged(name, place, value):
    trees = random_trees(np.random.default_rng(0), 3, 4, most_leaves=9)
    array = getattr(trees, name).copy()
    array[place] = value
    return replace(trees, **{name: array})


@pytest.mark.parametrize(
    ("name", "place", "value", "complaint"),
    [
        ("left", 0, 0, "comes before its parent"),
        ("right", 0, 10_000, "does not exist"),
        ("left", 0, -10_000, "does not exist"),
        ("left", -1, -1, "has no parent, or two"),
        ("column", 0, 99, "a column that does not exist"),
        ("column_feature", 0, 4, "a feature that does not exist"),
        ("column_kind", 0, 3, "unknown kind"),
        ("threshold", 0, np.nan, "threshold is not a number"),
        ("leaf_value", 0, np.inf, "leaf_value has a value that is not finite"),
        ("missing_left", 0, 2, "neither 0 nor 1"),
        ("node_ptr", 0, 1, "does not ascend from 0"),
        ("node_ptr", 1, 9_999, "does not ascend"),
        ("leaf_ptr", 1, 1, "one leaf more than nodes"),
    ],
)
def test_damaged_trees_are_refused(name, place, value, complaint):
    with pytest.raises(FileFormatError, match=complaint):
        check_trees(damaged(name, place, value), 4)


def test_rounds_outside_the_model_are_refused():
    rng = np.random.default_rng(0)
    description, rows = forest(random_trees(rng, 5, 3), 3), random_rows(rng, 2, 3)
    for wrong in (0, 6, -1):
        with pytest.raises(ParameterError, match=f"between 1 and the model's 5, got {wrong}"):
            RankerScorer(description).score(rows, n_rounds=wrong)
        with pytest.raises(ParameterError, match=f"between 1 and the model's 5, got {wrong}"):
            description.first_rounds(wrong)
