"""Pairwise accuracy and Kendall's tau."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from rankwell.metrics import evaluate


def test_pairwise_accuracy_counts_pairs_with_different_labels():
    # Pairs (2,1) wrong, (2,0) right, (1,0) right.
    assert evaluate([2, 1, 0], [2, 3, 1], metrics="pairwise_accuracy").mean["pairwise_accuracy"] == 2 / 3


def test_a_pair_with_equal_scores_is_not_right():
    assert evaluate([1, 0], [5, 5], metrics="pairwise_accuracy").mean["pairwise_accuracy"] == 0.0


def test_the_overall_figure_counts_every_pair_once():
    # Query 1: one pair, right. Query 2: three pairs, none right. Query 3: no pair.
    evaluation = evaluate([1, 0, 0, 1, 2, 4, 4], [2, 1, 3, 2, 1, 1, 2], metrics="pairwise_accuracy", group=[2, 3, 2])
    np.testing.assert_array_equal(evaluation.per_query["pairwise_accuracy"], [1.0, 0.0, np.nan])
    assert evaluation.mean["pairwise_accuracy"] == 1 / 4


def test_negative_labels_are_ordinary_here():
    assert evaluate([-1, -2], [1, 0], metrics="pairwise_accuracy").mean["pairwise_accuracy"] == 1.0


def test_kendall_tau_without_ties():
    # Five of six pairs agree: (5 − 1) / 6.
    assert evaluate([3, 2, 1, 0], [9, 8, 6, 7], metrics="kendall_tau").mean["kendall_tau"] == pytest.approx(4 / 6)


@pytest.mark.parametrize(("labels", "scores"), [([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [7, 7, 7]), ([1], [1]), ([], [])])
def test_kendall_tau_of_all_equal_values_does_not_exist(labels, scores):
    evaluation = evaluate(labels, scores, metrics="kendall_tau", group=[len(labels)])
    assert np.isnan(evaluation.per_query["kendall_tau"][0])
    assert np.isnan(evaluation.mean["kendall_tau"])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-4, 4)), min_size=2, max_size=60))
def test_kendall_tau_is_scipys(rows):
    labels, scores = zip(*rows, strict=True)
    ours = evaluate(labels, scores, metrics="kendall_tau").mean["kendall_tau"]
    if len(set(labels)) == 1 or len(set(scores)) == 1:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(kendalltau(labels, scores).statistic, abs=1e-12)


def test_kendall_tau_of_a_query_with_as_many_levels_as_documents():
    rng = np.random.default_rng(3)
    labels, scores = rng.permutation(5_000), rng.normal(size=5_000)
    ours = evaluate(labels, scores, metrics="kendall_tau").mean["kendall_tau"]
    assert ours == pytest.approx(kendalltau(labels, scores).statistic, abs=1e-12)
