"""Our metrics against the libraries whose conventions they follow, on data with every awkward kind of query."""

from __future__ import annotations

import gzip
import shutil
import warnings
from itertools import groupby

import numpy as np
import pytest
from benchmarks.rivals.metric_libraries import RIVALS

from rankwell import evaluate

NAMES = [rival.name for rival in RIVALS]
GRADED = ["ndcg", "ndcg@1", "ndcg@3", "ndcg@10", "ndcg@50"]
BINARY = ["map", "map@1", "map@3", "map@10", "mrr", "p@1", "p@3", "p@10", "p@50", "recall@1", "recall@3", "recall@10"]
TOLERANCE = 1e-9


def rival_named(name):
    rival = next(rival for rival in RIVALS if rival.name == name)
    if not rival.installed:
        pytest.skip(f"{name} is not installed")
    return rival


def make_queries(seed, n_scores):
    """Queries of 2 to 60 documents, some without relevant ones, scores with more or fewer ties."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate(([2, 3, 9, 10, 11, 49, 50, 51], rng.integers(2, 60, 60)))
    query_ptr = np.concatenate(([0], np.cumsum(sizes)))
    labels = rng.choice(5, query_ptr[-1], p=[0.6, 0.2, 0.1, 0.06, 0.04]).astype(float)
    for query in rng.choice(len(sizes), 12, replace=False):
        labels[query_ptr[query] : query_ptr[query + 1]] = 0
    # Whole numbers divided by a power of two: every library holds them exactly, whatever its type.
    scores = rng.integers(0, n_scores, query_ptr[-1]) / 64
    return labels, scores, query_ptr


def figures_of(rival, labels, scores, query_ptr, metrics):
    with warnings.catch_warnings():
        # scikit-learn warns of queries without relevant documents and of labels it finds few of.
        warnings.simplefilter("ignore")
        return rival.prepare(labels, scores, query_ptr, metrics)()


def assert_same(rival, labels, scores, query_ptr, metrics):
    theirs = figures_of(rival, labels, scores, query_ptr, metrics)
    ours = evaluate(labels, scores, metrics=metrics, convention=rival.convention, query_ptr=query_ptr)
    for metric in metrics:
        if theirs[metric].ndim:
            np.testing.assert_allclose(ours.per_query[metric], theirs[metric], rtol=0, atol=TOLERANCE, err_msg=metric)
        assert ours.mean[metric] == pytest.approx(float(theirs[metric].mean()), abs=TOLERANCE), metric


@pytest.mark.parametrize("n_scores", [4, 30, 10**6])
@pytest.mark.parametrize("name", NAMES)
def test_graded_metrics(name, n_scores):
    rival = rival_named(name)
    labels, scores, query_ptr = make_queries(1, n_scores)
    assert_same(rival, labels, scores, query_ptr, [metric for metric in GRADED if rival.has(metric)])


@pytest.mark.parametrize("n_scores", [4, 30, 10**6])
@pytest.mark.parametrize("name", NAMES)
def test_binary_metrics(name, n_scores):
    rival = rival_named(name)
    metrics = [metric for metric in BINARY if rival.has(metric)]
    if name == "scikit-learn":
        # average_precision_score has no cut-off.
        metrics = ["map"]
    labels, scores, query_ptr = make_queries(2, n_scores)
    assert_same(rival, labels, scores, query_ptr, metrics)


@pytest.mark.parametrize("name", NAMES)
def test_real_judgments(name, shared_data):
    rival = rival_named(name)
    labels, qids, scores = [], [], []
    with gzip.open(shared_data / "mslr-sample" / "train.txt.gz", "rt") as file:
        for line in file:
            label, qid, *pairs = line.split()
            labels.append(float(label))
            qids.append(qid)
            scores.append(float(np.float32(dict(pair.split(":") for pair in pairs)["130"])))
    sizes = [len(list(rows)) for _, rows in groupby(qids)]
    query_ptr = np.concatenate(([0], np.cumsum(sizes)))
    metrics = [metric for metric in ("ndcg@1", "ndcg@5", "ndcg@10") if rival.has(metric)]
    assert_same(rival, np.array(labels), np.array(scores), query_ptr, metrics)


@pytest.mark.parametrize("name", ["pytrec_eval", "ir-measures"])
def test_trec_compares_scores_in_float32(name):
    rival = rival_named(name)
    # One float32, so a tie: the later document, which is relevant in the second query only, comes first.
    labels, scores = np.array([1.0, 0.0, 0.0, 1.0]), np.array([1 + 1e-12, 1.0, 1 + 1e-12, 1.0])
    theirs = figures_of(rival, labels, scores, np.array([0, 2, 4]), ["mrr"])["mrr"]
    assert theirs.tolist() == [0.5, 1.0]
    assert_same(rival, labels, scores, np.array([0, 2, 4]), ["mrr", "map", "ndcg"])


@pytest.mark.parametrize("name", ["pytrec_eval", "ir-measures"])
def test_trec_gives_negative_labels_no_gain(name):
    # (pytrec_eval never comes back from a query that has only negative labels, so none is here.)
    rival = rival_named(name)
    labels, scores = np.array([-2.0, 2.0, 1.0, -1.0, 0.0, 1.0]), np.array([6.0, 5, 4, 3, 2, 1])
    assert_same(rival, labels, scores, np.array([0, 3, 6]), ["ndcg", "ndcg@2", "map", "mrr", "p@2", "recall@2"])


def test_catboost_puts_equal_scores_in_the_worst_order():
    rival = rival_named("CatBoost")
    # The worst of the orders of three equal scores is 0, 1, 2, whatever the rows' order; the second query has no
    # relevant document, so that NDCG and recall count 1 and AP 0.
    labels, scores, query_ptr = np.array([2.0, 1, 0, 0, 0]), np.array([1.0, 1, 1, 2, 1]), np.array([0, 3, 5])
    ours = evaluate(labels, scores, metrics=["ndcg", "map", "recall@1"], convention="catboost", query_ptr=query_ptr)
    ndcg = (1 / np.log2(3) + 2 / 2) / (2 + 1 / np.log2(3))
    np.testing.assert_allclose(ours.per_query["ndcg"], [ndcg, 1.0])
    np.testing.assert_allclose(ours.per_query["map"], [(1 / 2 + 2 / 3) / 2, 0.0])
    assert ours.per_query["recall@1"].tolist() == [0.0, 1.0]
    assert_same(rival, labels, scores, query_ptr, ["ndcg", "ndcg@1", "map", "map@1", "mrr", "p@1", "recall@1"])


def test_lightgbm_weights_queries_and_counts_empty_ones_as_1():
    lightgbm = pytest.importorskip("lightgbm")
    labels, scores, group = [0, 1, 2, 2, 1, 0], [1, 2, 3, 1, 2, 3], [3, 0, 3]
    quiet = {"verbose": -1, "feature_pre_filter": False, "min_data_in_bin": 1}
    data = lightgbm.Dataset(np.zeros((6, 1)), labels, group=group, init_score=scores, params=quiet)
    settings = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [1, 3], **quiet}
    theirs = {figure[1]: figure[2] for figure in lightgbm.Booster(settings, data).eval_train()}
    ours = evaluate(labels, scores, metrics=list(theirs), convention="gbdt", group=group)
    assert ours.mean == pytest.approx(theirs, abs=TOLERANCE)

    weighted = lightgbm.Dataset(
        np.zeros((6, 1)), labels, group=[3, 3], init_score=scores, weight=[1, 1, 1, 5, 5, 5], params=quiet
    )
    theirs = {figure[1]: figure[2] for figure in lightgbm.Booster(settings, weighted).eval_train()}
    ours = evaluate(labels, scores, metrics=list(theirs), convention="gbdt", group=[3, 3], query_weights=[1, 5])
    assert ours.mean == pytest.approx(theirs, abs=TOLERANCE)


def test_burges_and_err_are_those_of_the_web_tracks_gdeval():
    ir_measures = pytest.importorskip("ir_measures")
    if shutil.which("perl") is None:
        pytest.skip("gdeval, which ir-measures runs, needs perl")
    labels, _, query_ptr = make_queries(3, 10)
    # gdeval's own order of ties is not ours, so there are none.
    scores = np.random.default_rng(4).permutation(len(labels)).astype(float)
    judgments, run = [], []
    for query in range(len(query_ptr) - 1):
        for row in range(query_ptr[query], query_ptr[query + 1]):
            judgments.append(ir_measures.Qrel(str(query + 1), f"d{row}", int(labels[row])))
            run.append(ir_measures.ScoredDoc(str(query + 1), f"d{row}", float(scores[row])))
    measures = {
        ir_measures.parse_measure("nDCG(dcg='exp-log2')@10"): "ndcg@10",
        ir_measures.parse_measure("ERR@10"): "err@10",
    }
    ours = evaluate(labels, scores, metrics="ndcg@10,err@10", convention="burges", max_grade=4, query_ptr=query_ptr)
    n_compared = 0
    for figure in ir_measures.iter_calc(list(measures), judgments, run):
        value = ours.per_query[measures[figure.measure]][int(figure.query_id) - 1]
        if np.isnan(value):
            # gdeval leaves the query out; ir-measures fills in a 0.
            assert figure.value == 0.0
        else:
            # gdeval prints five decimals.
            assert value == pytest.approx(figure.value, abs=0.51e-5)
            n_compared += 1
    assert n_compared == 2 * ours.n_counted("ndcg@10") > 80
