"""Documents that were judged and not found: by hand, and as trec_eval counts them."""

from __future__ import annotations

import numpy as np
import pytest

from rankwell import DataError, RankingDataset, evaluate
from rankwell.metrics.conventions import CONVENTIONS, get_convention
from rankwell.metrics.missed_documents import queries_of_run, with_missed

QRELS = {"1": {"a": 1.0, "b": 2.0, "c": 0.0, "x": 1.0}, "2": {"d": 1.0}, "3": {"e": 1.0}}
RUN = {"1": {"c": 3.0, "b": 2.0, "u": 1.5, "a": 1.0}, "2": {"z": 1.0, "d": 1.0, "e": 0.5}, "9": {"a": 1.0}}
METRICS = "map,ndcg@10,p@5,recall@2,mrr"


def test_a_missed_document_counts_as_relevant_but_is_never_found():
    data = RankingDataset([[0.0]] * 3, [1.0, 0.0, 2.0], qid=[1, 1, 1], comments=["a", "c", "b"])
    queries, scores, n_missed = with_missed(data, np.array([3.0, 2.0, 1.0]), {"1": QRELS["1"]})
    found = evaluate(queries, scores, metrics="map,recall@10,p@3,ndcg@3,err", convention="trec").mean
    assert n_missed == 1
    assert found["map"] == pytest.approx((1 / 1 + 2 / 3) / 3)
    assert found["recall@10"] == pytest.approx(2 / 3)
    assert found["p@3"] == pytest.approx(2 / 3)
    ideal = 2 / np.log2(2) + 1 / np.log2(3) + 1 / np.log2(4)
    assert found["ndcg@3"] == pytest.approx((1 / np.log2(2) + 2 / np.log2(4)) / ideal)
    without = evaluate(data, [3.0, 2.0, 1.0], metrics="map", convention="trec").mean["map"]
    assert without == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert data.labels.tolist() == [1.0, 0.0, 2.0]


def test_rows_of_a_query_may_be_scattered():
    data = RankingDataset([[0.0]] * 3, [1.0, 1.0, 0.0], qid=[1, 2, 1], comments=["a", "d", "c"])
    queries, scores, n_missed = with_missed(data, np.array([1.0, 5.0, 2.0]), QRELS)
    assert n_missed == 2  # b and x of query 1; query 3 is not in the data
    found = evaluate(queries, scores, metrics="map", convention="trec")
    assert found.per_query["map"].tolist() == pytest.approx([(1 / 2) / 3, 1.0])


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_without_missed_documents_nothing_changes(convention):
    random = np.random.default_rng(1)
    labels, groups = random.integers(0, 3, 60).astype(float), [20, 1, 39]
    scores = random.integers(0, 9, 60).astype(float)
    data = RankingDataset(np.zeros((60, 1)), labels, group=groups, comments=[f"d{n}" for n in range(60)])
    qrels = {str(query): {} for query in range(3)}
    queries, own, _ = with_missed(data, scores, qrels)
    metrics = "map,ndcg@10,ndcg,p@5,err,recall@5,pairwise_accuracy"
    plain = evaluate(data, scores, metrics=metrics, convention=convention)
    assert evaluate(queries, own, metrics=metrics, convention=convention).mean == plain.mean


def test_a_run_is_counted_as_trec_eval_does():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    random = np.random.default_rng(0)
    qrels = {
        f"q{q}": {f"d{d}": int(random.integers(-1, 4)) for d in random.permutation(50)[: random.integers(1, 20)]}
        for q in range(30)
    }
    run = {  # many equal scores, many documents without a judgment, judged ones that are not found
        query: {f"d{d}": float(random.integers(0, 5)) for d in random.permutation(50)[: random.integers(1, 25)]}
        for query in qrels
    }
    names = {"map": "map", "ndcg@10": "ndcg_cut_10", "p@5": "P_5", "recall@10": "recall_10", "mrr": "recip_rank"}
    expected = pytrec_eval.RelevanceEvaluator(qrels, set(names.values())).evaluate(run)
    queries, scores = queries_of_run(qrels, run, get_convention("trec"))
    found = evaluate(queries, scores, metrics=",".join(names), convention="trec")
    for ours, theirs in names.items():
        by_query = dict(zip(found.query_ids.tolist(), found.per_query[ours].tolist(), strict=True))
        assert by_query == pytest.approx({query: figures[theirs] for query, figures in expected.items()}, abs=1e-6)


def test_a_query_that_the_run_lacks_found_nothing():
    queries, scores = queries_of_run(QRELS, RUN, get_convention("trec"))
    found = evaluate(queries, scores, metrics=METRICS, convention="trec")
    assert found.query_ids.tolist() == ["1", "2", "3"]
    assert [figures[2] for figures in found.per_query.values()] == [0.0] * 5
    assert found.per_query["map"][0] == pytest.approx((1 / 2 + 2 / 4) / 3)


@pytest.mark.parametrize(("convention", "reciprocal"), [("trec", 0.5), ("letor4", 0.5), ("burges", 0.5)])
def test_equal_scores_of_a_run(convention, reciprocal):
    """z and d have one score: by id from the last to the first, and by the order of the file, z is first."""
    queries, scores = queries_of_run(QRELS, RUN, get_convention(convention))
    found = evaluate(queries, scores, metrics="mrr", convention=convention)
    assert found.per_query["mrr"][1] == reciprocal


def test_ids_are_needed():
    data = RankingDataset([[0.0]], [1.0], qid=[1])
    with pytest.raises(DataError, match="no document ids"):
        with_missed(data, np.array([1.0]), QRELS)
