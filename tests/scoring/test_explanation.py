"""Explanations: parts sum to the score, and each part is what a reader computes by hand."""

import numpy as np
import pytest
from tests.scoring.random_rankers import describe, forest, random_ranker, random_rows, random_trees

from rankwell.scoring.description import Dense, LinearInputs, Mean, Sum
from rankwell.scoring.explanation import explain_score
from rankwell.scoring.scorer import RankerScorer
from rankwell.scoring.tree_builder import Tree, TreeBuilder


def test_a_linear_model_adds_weight_times_value():
    description = describe(2, [LinearInputs.identity(2)], [Dense(np.array([[2.0, -1.0]]), np.array([0.5]))])
    explanation = explain_score(description, np.array([3.0, 4.0]))
    assert explanation.score == 2 * 3 - 1 * 4 + 0.5
    assert explanation.base == 0.5
    assert [part.contribution for part in explanation.inputs] == [6, -4]
    assert explanation.features == {"f1": 6, "f2": -4}


def test_a_tree_shares_its_value_among_its_features():
    # f1 <= 1: leaf 0 (10); else f2 <= 5: leaf 1 (20), leaf 2 (60)
    builder = TreeBuilder()
    columns = [builder.column(0), builder.column(1)]
    builder.add(Tree(columns, [1.0, 5.0], [True, False], [-1, -2], [1, -3], [10.0, 20.0, 60.0]))
    explanation = explain_score(forest(builder.build(), 2, bias=1.0), np.array([2.0, np.nan]))
    assert explanation.score == 60 + 1
    # Nothing known: (10 + 20 + 60) / 3 = 30; f1 known: (20 + 60) / 2 = 40; f2 known (missing, it goes right): 10 with
    # 1/3, 60 with 2/3; both known: 60. f1 gets the mean of 40 − 30 and 60 − 130/3, f2 that of 130/3 − 30 and 60 − 40.
    assert explanation.features == pytest.approx({"f1": (10 + 50 / 3) / 2, "f2": (40 / 3 + 20) / 2})
    assert explanation.feature_base == pytest.approx(30 + 1)
    (part,) = explanation.inputs
    assert part.contribution == 60
    assert [(step.feature, step.test) for step in part.path] == [("f1", "> 1"), ("f2", "> 5")]


def assert_sums(explanation, score):
    by_input = explanation.base + sum(part.contribution for part in explanation.inputs)
    by_feature = explanation.feature_base + sum(explanation.features.values())
    assert by_input == pytest.approx(score, rel=1e-9, abs=1e-9)
    assert by_feature == pytest.approx(score, rel=1e-9, abs=1e-9)


def test_parts_of_a_network_sum_to_its_score():
    rng = np.random.default_rng(0)
    for seed in range(20):
        description = random_ranker(np.random.default_rng(seed))
        row = np.clip(random_rows(rng, 1, 7), -50, 50)
        assert_sums(explain_score(description, row[0]), RankerScorer(description).score(row)[0])


@pytest.mark.parametrize("layers", [[Sum(0.5)], [Mean()], [Sum(), Dense(np.array([[2.0]]), np.zeros(1), "sigmoid")]])
def test_parts_of_a_forest_sum_to_its_score(layers):
    rng = np.random.default_rng(1)
    description = describe(4, [random_trees(rng, 30, 4)], layers)
    for row in random_rows(rng, 20, 4):
        assert_sums(explain_score(description, row), RankerScorer(description).score(row[None])[0])
        after_ten = RankerScorer(description).score(row[None], n_rounds=10)[0]
        assert_sums(explain_score(description, row, n_rounds=10), after_ten)
