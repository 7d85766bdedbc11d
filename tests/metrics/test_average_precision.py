"""Average precision, reciprocal rank, precision and recall: values a reader can check."""

from __future__ import annotations

import numpy as np
import pytest

from rankwell.metrics import evaluate

# Ranked by score: relevant, not, relevant, relevant, not.
LABELS = [1, 0, 2, 1, 0]
SCORES = [5, 4, 3, 2, 1]


def mean(metric, convention="letor4", labels=LABELS, scores=SCORES, **grouping):
    return evaluate(labels, scores, metrics=metric, convention=convention, **grouping).mean[metric]


def test_average_precision():
    assert mean("map") == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 3, abs=1e-15)


def test_cut_average_precision_divides_by_all_relevant_documents_or_by_the_reachable_ones():
    assert mean("map@2", "trec") == pytest.approx((1 / 1) / 3, abs=1e-15)
    assert mean("map@2", "gbdt") == pytest.approx((1 / 1) / 2, abs=1e-15)
    assert mean("map@10", "gbdt") == mean("map", "gbdt")


def test_tied_documents_are_retrieved_together_in_sklearn():
    # One tie of a relevant and an irrelevant document: precision 1/2 where the run ends, not 1.
    assert mean("map", "sklearn", [1, 0], [1, 1]) == 0.5
    assert mean("map", "letor4", [1, 0], [1, 1]) == 1.0


def test_mslr_counts_label_1_as_irrelevant():
    assert mean("map", "mslr") == pytest.approx(1 / 3, abs=1e-15)
    assert mean("mrr", "mslr") == pytest.approx(1 / 3, abs=1e-15)
    assert mean("p@3", "mslr") == pytest.approx(1 / 3, abs=1e-15)
    assert mean("recall@2", "mslr") == 0.0


def test_reciprocal_rank():
    assert mean("mrr", labels=[0, 0, 1, 1], scores=[4, 3, 2, 1]) == pytest.approx(1 / 3, abs=1e-15)
    assert mean("mrr@2", labels=[0, 0, 1, 1], scores=[4, 3, 2, 1]) == 0.0
    assert mean("mrr@3", labels=[0, 0, 1, 1], scores=[4, 3, 2, 1]) == pytest.approx(1 / 3, abs=1e-15)


def test_precision_pads_a_short_list_except_in_gbdt():
    assert mean("p@4") == 3 / 4
    assert mean("p@10") == 3 / 10
    assert mean("p@10", "trec") == 3 / 10
    assert mean("p@10", "gbdt") == 3 / 5


def test_recall():
    assert [mean(f"recall@{k}") for k in (1, 2, 3, 4, 10)] == [1 / 3, 1 / 3, 2 / 3, 1, 1]


@pytest.mark.parametrize(
    ("convention", "ratio", "count"),
    [("letor4", 0.0, 0.0), ("trec", 0.0, 0.0), ("sklearn", 0.0, 0.0), ("gbdt", 1.0, 0.0), ("burges", np.nan, np.nan)],
)
def test_a_query_without_relevant_documents(convention, ratio, count):
    for metric, expected in [("map", ratio), ("recall@1", ratio), ("mrr", count), ("p@1", count), ("err", count)]:
        evaluation = evaluate([0, 0], [1, 2], metrics=metric, convention=convention)
        np.testing.assert_array_equal(evaluation.per_query[metric], [expected])


@pytest.mark.parametrize(
    ("convention", "expected"), [("letor4", 0.5), ("gbdt", 1.0), ("burges", 1.0), ("trec", 0.5), ("sklearn", 0.5)]
)
def test_an_empty_query_is_one_without_relevant_documents(convention, expected):
    assert mean("map", convention, [1], [1], group=[1, 0]) == expected
    assert mean("ndcg", convention, [1], [1], group=[0, 1]) == expected
