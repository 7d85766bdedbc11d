"""NDCG and MeanNDCG: values a reader can check, and labels far beyond what 2^label fits into."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from rankwell.errors import DataError
from rankwell.metrics import evaluate

# Ranked by score: labels 1, 2, 0.
LABELS, SCORES = [2, 1, 0], [0.5, 0.9, 0.1]


def mean(labels, scores, metric, convention, **grouping):
    return evaluate(labels, scores, metrics=metric, convention=convention, **grouping).mean[metric]


def test_burges_gain_and_discount():
    dcg = 1 / log2(2) + 3 / log2(3)
    ideal = 3 / log2(2) + 1 / log2(3)
    assert mean(LABELS, SCORES, "ndcg", "burges") == pytest.approx(dcg / ideal, abs=1e-15)
    assert mean(LABELS, SCORES, "ndcg@1", "burges") == pytest.approx(1 / 3, abs=1e-15)


def test_letor4_leaves_ranks_1_and_2_undiscounted():
    labels, scores = [2, 1, 0, 1], [0.5, 0.9, 0.1, 0.3]
    assert mean(labels, scores, "ndcg@2", "letor4") == pytest.approx((1 + 3) / (3 + 1), abs=1e-15)
    dcg = 1 + 3 + 1 / log2(3)
    ideal = 3 + 1 + 1 / log2(3)
    assert mean(labels, scores, "ndcg@3", "letor4") == pytest.approx(dcg / ideal, abs=1e-15)


def test_linear_gain_of_trec():
    dcg = 1 / log2(2) + 2 / log2(3)
    ideal = 2 / log2(2) + 1 / log2(3)
    assert mean(LABELS, SCORES, "ndcg", "trec") == pytest.approx(dcg / ideal, abs=1e-15)


def test_sklearn_averages_over_ties():
    # Either order of the two tied documents: (2 + 1)/2 on each of the first two ranks.
    dcg = 1.5 / log2(2) + 1.5 / log2(3)
    ideal = 2 / log2(2) + 1 / log2(3)
    assert mean([2, 1, 0], [0.5, 0.5, 0.1], "ndcg", "sklearn") == pytest.approx(dcg / ideal, abs=1e-15)
    assert mean([2, 1, 0], [0.5, 0.5, 0.1], "ndcg@1", "sklearn") == pytest.approx(1.5 / 2, abs=1e-15)


@pytest.mark.parametrize(("convention", "first"), [("letor4", 1), ("gbdt", 1), ("burges", 1), ("trec", 2)])
def test_ties_keep_the_order_of_the_convention(convention, first):
    # Two documents with one score: label 1 in the first row, label 2 in the second.
    gain = {"letor4": (1, 3), "gbdt": (1, 3), "burges": (1, 3), "trec": (1, 2)}[convention]
    assert mean([1, 2], [0.0, 0.0], "ndcg@1", convention) == pytest.approx(gain[first - 1] / gain[1], abs=1e-15)


@pytest.mark.parametrize(
    ("convention", "expected"),
    [("letor4", 0.0), ("mslr", 0.0), ("gbdt", 1.0), ("burges", 1.0), ("trec", 1.0), ("sklearn", 1.0)],
)
def test_a_query_with_fewer_than_k_documents(convention, expected):
    assert mean([1, 0], [2.0, 1.0], "ndcg@3", convention) == expected
    assert mean([1, 0], [2.0, 1.0], "ndcg@2", convention) == 1.0


@pytest.mark.parametrize(
    ("convention", "expected"),
    [("letor4", 0.5), ("mslr", 0.5), ("trec", 0.5), ("sklearn", 0.5), ("gbdt", 1.0), ("burges", 1.0)],
)
@pytest.mark.parametrize("metric", ["ndcg@1", "ndcg", "mean_ndcg"])
def test_a_query_without_relevant_documents(convention, expected, metric):
    evaluation = evaluate([1, 0, 0, 0], [2, 1, 2, 1], metrics=metric, convention=convention, group=[2, 2])
    assert evaluation.mean[metric] == expected
    assert np.isnan(evaluation.per_query[metric][1]) == (convention == "burges")


def test_mean_ndcg_is_the_mean_over_every_depth():
    at = [mean(LABELS, SCORES, f"ndcg@{k}", "letor4") for k in (1, 2, 3)]
    assert mean(LABELS, SCORES, "mean_ndcg", "letor4") == pytest.approx(sum(at) / 3, abs=1e-15)


def test_labels_beyond_the_range_of_float64_give_the_right_ratio():
    # Gains 2^1268 − 1 and 2^1267 − 1: their ratio is 1/2 to more digits than float64 has.
    dcg = 0.5 + 1 / log2(3)
    ideal = 1 + 0.5 / log2(3)
    assert mean([1268, 1267, 3], [0.2, 0.9, 0.1], "ndcg", "burges") == pytest.approx(dcg / ideal, rel=1e-15)
    assert mean([2e5, 1.0], [0.0, 1.0], "ndcg@1", "burges") == 0.0


def test_scaled_and_plain_gains_agree():
    # The same differences between labels on both sides of the limit where gains get scaled.
    labels = np.array([511.0, 508.5, 510.25, 0.0])
    scores = [0.1, 0.4, 0.2, 0.3]
    below = mean(labels, scores, "ndcg", "burges")
    above = mean(labels + np.array([2, 2, 2, 0]), scores, "ndcg", "burges")
    assert above == pytest.approx(below, rel=1e-14)


def test_huge_linear_gains_do_not_overflow():
    labels = np.full(100, 1.7e308)
    assert mean(labels, np.arange(100.0), "ndcg", "trec") == pytest.approx(1.0, abs=1e-15)


def test_tiny_labels_keep_their_digits():
    # 2^l − 1 is l · ln 2 for small l; computed as a difference it would be 0 here.
    dcg = 1 / log2(2) + 2 / log2(3)
    ideal = 2 / log2(2) + 1 / log2(3)
    assert mean([2e-18, 1e-18], [0.0, 1.0], "ndcg", "burges") == pytest.approx(dcg / ideal, rel=1e-12)


@pytest.mark.parametrize("convention", ["letor4", "mslr", "gbdt", "sklearn", "burges"])
def test_negative_labels_are_refused_with_the_row(convention):
    with pytest.raises(DataError, match=rf"ndcg@10 under {convention} .* row 1 has label -1\. .*pairwise_accuracy"):
        mean([1, -1, 0], [1, 2, 3], "ndcg@10", convention)


def test_negative_labels_gain_nothing_in_trec():
    assert mean([-3, 2, 1], [3, 2, 1], "ndcg", "trec") == mean([0, 2, 1], [3, 2, 1], "ndcg", "trec")
