"""`evaluate` and `MetricEvaluator`: row order, weights, what is printed, and mistakes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from rankwell import RankingDataset, evaluate
from rankwell.errors import DataError, ParameterError
from rankwell.metrics import CONVENTIONS, MetricEvaluator, metric_function

ALL = "ndcg@2,ndcg,mean_ndcg,map,map@2,mrr,p@2,recall@2,err@2,pairwise_accuracy,kendall_tau"


def scattered():
    """Two queries with interleaved rows, and scores in the user's order."""
    rng = np.random.default_rng(5)
    qid = np.array(["b", "a", "b", "a", "a", "b", "b"])
    labels = np.array([0, 2, 1, 0, 1, 2, 0])
    return labels, qid, rng.normal(size=7)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_scores_come_in_the_users_order(convention):
    labels, qid, scores = scattered()
    dataset = RankingDataset(np.zeros((7, 1)), labels, qid=qid)
    assert dataset.doc_idx is not None
    by_dataset = evaluate(dataset, scores, metrics=ALL, convention=convention)
    by_arrays = evaluate(labels, scores, metrics=ALL, convention=convention, qid=qid)
    assert by_dataset.query_ids.tolist() == by_arrays.query_ids.tolist() == ["b", "a"]
    for number, query in enumerate(["b", "a"]):
        alone = evaluate(labels[qid == query], scores[qid == query], metrics=ALL, convention=convention, max_grade=2)
        for name, values in by_dataset.per_query.items():
            assert values[number] == by_arrays.per_query[name][number] == alone.per_query[name][0]


def test_the_evaluator_takes_scores_in_the_data_sets_own_order():
    labels, qid, scores = scattered()
    dataset = RankingDataset(np.zeros((7, 1)), labels, qid=qid)
    expected = evaluate(dataset, scores, metrics=ALL)
    evaluator = MetricEvaluator(dataset, ALL)
    assert evaluator.means(scores[dataset.doc_idx]) == expected.mean
    assert evaluator.mean(scores[dataset.doc_idx]) == expected.mean["ndcg@2"]


def test_group_query_ptr_and_qid_mean_the_same():
    labels, scores = [1, 0, 2, 0, 1], [1, 2, 3, 4, 5]
    by_group = evaluate(labels, scores, metrics=ALL, group=[2, 3])
    by_pointer = evaluate(labels, scores, metrics=ALL, query_ptr=[0, 2, 5])
    by_qid = evaluate(labels, scores, metrics=ALL, qid=[7, 7, 8, 8, 8])
    assert by_group.mean == by_pointer.mean == by_qid.mean


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_order_of_queries_and_documents_does_not_matter(convention):
    rng = np.random.default_rng(11)
    qid, labels = np.repeat([0, 1, 2], [4, 1, 9]), rng.integers(0, 4, 14)
    scores = rng.permutation(14).astype(float)
    shuffled = rng.permutation(14)
    straight = evaluate(labels, scores, metrics=ALL, convention=convention, qid=qid)
    mixed = evaluate(labels[shuffled], scores[shuffled], metrics=ALL, convention=convention, qid=qid[shuffled])
    for name in straight.mean:
        for number, query in enumerate(mixed.query_ids):
            np.testing.assert_array_equal(mixed.per_query[name][number], straight.per_query[name][query])


def test_a_weight_of_2_is_the_query_twice():
    labels, scores = [1, 0, 0, 1, 0, 1], [2, 1, 2, 1, 3, 2]
    weighted = evaluate(labels, scores, metrics=ALL, group=[2, 2, 2], query_weights=[1, 2, 0])
    twice = evaluate([1, 0, 0, 1, 0, 1], [2, 1, 2, 1, 2, 1], metrics=ALL, group=[2, 2, 2])
    assert weighted.mean == pytest.approx(twice.mean, abs=1e-15)


def test_the_weights_of_a_data_set_count_unless_others_are_given():
    dataset = RankingDataset(np.zeros((4, 1)), [1, 0, 1, 0], group=[2, 2], query_weights=[3, 1])
    scores = [2, 1, 1, 2]
    assert evaluate(dataset, scores, metrics="mrr").mean["mrr"] == (3 * 1 + 1 * 0.5) / 4
    assert evaluate(dataset, scores, metrics="mrr", query_weights=[1, 1]).mean["mrr"] == (1 + 0.5) / 2


def test_every_printed_number_names_its_convention():
    evaluation = evaluate([1, 0, 0, 0], [1, 2, 3, 4], metrics="ndcg@10,map", convention="gbdt", group=[2, 2])
    assert repr(evaluation) == "Evaluation(ndcg@10 (gbdt)=0.8155, map (gbdt)=0.7500; 2 queries)"
    assert evaluation.table().splitlines() == [
        "metric   mean    convention  queries",
        "ndcg@10  0.8155  gbdt        2 of 2",
        "map      0.7500  gbdt        2 of 2",
    ]


def test_a_function_has_no_convention():
    def first_label(labels, scores):
        return labels[np.argmax(scores)]

    evaluation = evaluate([1, 0, 0, 2], [1, 2, 3, 4], metrics=["map", first_label], group=[2, 2])
    assert repr(evaluation) == "Evaluation(map (burges)=0.7500, first_label=1.0000; 2 queries)"
    assert evaluation.table().splitlines() == [
        "metric       mean    convention  queries",
        "map          0.7500  burges      2 of 2",
        "first_label  1.0000  -           2 of 2",
    ]
    assert evaluation.to_dict()["metrics"]["first_label"]["convention"] is None


def test_queries_left_out_are_counted_and_are_null_in_json():
    evaluation = evaluate([1, 0, 0, 0], [1, 2, 3, 4], metrics="map", qid=["x", "x", "y", "y"])
    assert evaluation.n_counted("map") == 1
    content = json.loads(json.dumps(evaluation.to_dict(per_query=True), allow_nan=False))
    assert content["metrics"]["map"] == {"mean": 0.5, "convention": "burges", "n_queries": 1}
    assert content["per_query"]["map"] == [0.5, None]
    assert content["query_ids"] == ["x", "y"]
    assert content["rules"]["no_relevant"] == "left out"


def test_nothing_to_count_is_nan_and_null():
    evaluation = evaluate([0, 0], [1, 2], metrics="ndcg")
    assert np.isnan(evaluation.mean["ndcg"])
    assert evaluation.to_dict()["metrics"]["ndcg"]["mean"] is None


def test_no_queries_at_all():
    evaluation = evaluate([], [], metrics=ALL, group=[])
    assert evaluation.n_queries == 0
    assert all(np.isnan(value) for value in evaluation.mean.values())


def test_infinite_scores_rank_first_and_last():
    assert evaluate([0, 1, 0], [-np.inf, np.inf, 0.0], metrics="mrr").mean["mrr"] == 1.0


def test_a_nan_score_is_refused_with_the_users_row():
    labels, qid, scores = scattered()
    scores[3] = np.nan
    with pytest.raises(DataError, match=r"scores must not be NaN: row 3 is, 1 in all"):
        evaluate(RankingDataset(np.zeros((7, 1)), labels, qid=qid), scores)


def test_data_and_scores_in_the_wrong_order():
    with pytest.raises(DataError, match="got a RankingDataset: pass it first, then the scores"):
        evaluate([0.5, -1.0], RankingDataset(np.zeros((2, 1)), [1, 0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [1, 2]}, r"scores must be one number per document: 3 documents, got shape \(2,\)"),
        ({"scores": ["a", "b", "c"]}, "scores must be numbers"),
        ({"labels": [1, np.nan, 0]}, "labels must be finite: row 1 is nan"),
        ({"labels": [[1, 0, 0]]}, "labels must have one dimension"),
        ({"labels": ["x", "y", "z"]}, "labels must be numbers"),
        ({"qid": [1, 1, 1], "group": [3]}, "qid and group all say which rows belong to a query"),
        ({"query_ptr": [0, 2]}, "query_ptr must rise from 0 to the number of documents, 3: it goes from 0 to 2"),
        ({"query_ptr": [0, 2, 1, 3]}, "query_ptr must rise"),
        ({"query_ptr": [0.0, 3.0]}, "query_ptr must be whole numbers"),
        ({"query_weights": [1, 2]}, r"query_weights must be one number per query: 1 queries, got shape \(2,\)"),
        ({"query_weights": [-1]}, "query_weights must be finite and not negative: query 0 has -1"),
        ({"max_grade": np.nan, "metrics": "err"}, "max_grade must be the highest grade of the scale, got nan"),
        ({"metrics": "ndgc"}, "metrics must be one of"),
        ({"convention": "trek"}, "convention must be one of"),
    ],
)
def test_mistakes(arguments, message):
    complete = {"labels": [1, 0, 2], "scores": [1, 2, 3], **arguments}
    labels, scores = complete.pop("labels"), complete.pop("scores")
    with pytest.raises((DataError, ParameterError), match=message):
        evaluate(labels, scores, **complete)


def test_a_data_set_knows_its_queries_and_needs_labels():
    with pytest.raises(DataError, match="a data set knows its queries"):
        evaluate(RankingDataset(np.zeros((2, 1)), [0, 1]), [1, 2], group=[2])
    with pytest.raises(DataError, match="has no labels"):
        evaluate(RankingDataset(np.zeros((2, 1))), [1, 2])


def test_metric_function_follows_the_arrays_it_is_given():
    function = metric_function("mrr", "letor4")
    labels, query_ptr = np.array([1.0, 0.0, 0.0, 1.0]), np.array([0, 2, 4])
    assert function(labels, np.array([2.0, 1.0, 2.0, 1.0]), query_ptr) == (1 + 1 / 2) / 2
    assert function(labels, np.array([2.0, 1.0, 1.0, 2.0]), query_ptr) == 1.0
    assert function(np.array([0.0, 1.0, 0.0, 1.0]), np.array([2.0, 1.0, 2.0, 1.0]), query_ptr) == 1 / 2
    assert function(labels, np.array([2.0, 1.0, 2.0, 3.0]), np.array([0, 4])) == 1.0
    with pytest.raises(ParameterError, match="takes one metric, got mrr, map"):
        metric_function("mrr,map")


def share_of_relevant(labels: np.ndarray, scores: np.ndarray) -> float:
    return float((labels > 0).mean()) if len(labels) > 1 else math.nan


def test_functions_are_metrics_among_others() -> None:
    evaluation = evaluate(
        [1, 0, 0, 0, 2], [5.0, 4.0, 3.0, 2.0, 1.0], group=[4, 0, 1], metrics=("mrr", share_of_relevant, "p@1")
    )
    assert list(evaluation.mean) == ["mrr", "share_of_relevant", "p@1"]
    np.testing.assert_array_equal(evaluation.per_query["share_of_relevant"], [0.25, math.nan, math.nan])
    assert evaluation.mean["share_of_relevant"] == 0.25
    alone = evaluate([1, 0], [1.0, 2.0], group=[2], metrics=share_of_relevant)
    assert alone.mean == {"share_of_relevant": 0.5}
    weighted = evaluate(
        [1, 0, 1, 1], [1.0, 2.0, 1.0, 2.0], group=[2, 2], metrics=share_of_relevant, query_weights=[3, 1]
    )
    assert weighted.mean["share_of_relevant"] == (3 * 0.5 + 1 * 1.0) / 4


def test_functions_that_are_no_metrics() -> None:
    with pytest.raises(ParameterError, match=r"the metric <lambda> must return one number .* it returned 'good'"):
        evaluate([1, 0], [1.0, 2.0], group=[2], metrics=lambda labels, scores: "good")
    with pytest.raises(ParameterError, match="two metrics are called '<lambda>'"):
        evaluate([1, 0], [1.0, 2.0], group=[2], metrics=(lambda labels, scores: 1, lambda labels, scores: 2))
    with pytest.raises(ParameterError, match="metrics must be the name of a metric or a function, got 10"):
        evaluate([1, 0], [1.0, 2.0], group=[2], metrics=[10])
