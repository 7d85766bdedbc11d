"""Exported rankers score in other libraries as they do here."""

import json

import numpy as np
import pytest
from tests.scoring.exports.exported_rankers import RANKERS, expected_scores, rows_for

import rankwell
from rankwell import ParameterError

# Of the largest score: trees are float32 in ONNX.
ONNX_TOLERANCE = 1e-6
SUMS_OF_TREES = [
    "trees",
    "mean of trees",
    "trees of one leaf",
    "weighted trees",
    "probability of trees",
    "exponential of trees",
    "standardised trees",
    "categories and zeros",
    "buckets",
    "standardised buckets",
]


def onnx_scores(content, features):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, {"features": features})
    return scores


@pytest.mark.parametrize("name", RANKERS)
def test_onnx_runtime(name):
    features = rows_for(name)
    scores = onnx_scores(rankwell.export(RANKERS[name], to="onnx"), features)
    expected = expected_scores(RANKERS[name], features)
    assert scores.dtype == np.float64
    assert scores.shape == expected.shape
    assert np.abs(scores - expected).max() <= ONNX_TOLERANCE * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("n_docs", [1, 2, 65])
def test_onnx_runtime_takes_any_number_of_documents(n_docs):
    for name in ("trees", "letor", "every kind"):
        features = rows_for(name, n_docs)
        scores = onnx_scores(rankwell.export(RANKERS[name], to="onnx"), features)
        np.testing.assert_allclose(scores, expected_scores(RANKERS[name], features), rtol=1e-6, atol=1e-6)


def test_onnx_says_what_its_rows_are():
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(rankwell.export(RANKERS["letor"], to="onnx", name="mine"))
    properties = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(properties["feature_names"]) == ["f1", "f2", "f3", "f4", "f5", "f6", "f7"]
    assert properties["rows_of_a_call"] == "one query"
    assert (model.producer_name, model.graph.name) == ("rankwell", "mine")


def test_trained_rankers_in_onnx_runtime():
    data = rankwell.make_ranking(n_queries=12, n_docs=400, n_features=10, missing=0.1, random_state=1)
    rankers = [
        rankwell.LambdaMART(n_rounds=20),
        rankwell.RankBoost(n_rounds=30),
        rankwell.RankSVM(),
        rankwell.ListNet(n_epochs=2),
    ]
    for ranker in rankers:
        ranker.fit(data)
        content = rankwell.export(ranker, to="onnx")
        expected = ranker.predict(data)
        assert data.doc_idx is None
        scores = np.concatenate([onnx_scores(content, data.dense_features()[query]) for query in data.queries()])
        assert np.abs(scores - expected).max() <= ONNX_TOLERANCE * max(1.0, np.abs(expected).max()), ranker


@pytest.mark.parametrize("name", SUMS_OF_TREES)
def test_lightgbm(name, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    rankwell.export(RANKERS[name], tmp_path / "model.txt", to="lightgbm")
    features = rows_for(name)
    # What LightGBM calls zero.
    features[np.abs(features) < 1e-34] = 0
    if "categories" in name:
        # Between -1 and 0 LightGBM sees category 0, and beyond its integers any.
        features[(features > -1) & (features < 0) | (np.abs(features) > 1e9)] = -1
    scores = lightgbm.Booster(model_file=tmp_path / "model.txt").predict(features)
    expected = expected_scores(RANKERS[name], features)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-13)
    back = rankwell.ImportedRanker.from_model(tmp_path / "model.txt")
    np.testing.assert_allclose(back.predict(features), expected, rtol=1e-12, atol=1e-13)


def test_lightgbm_keeps_names_and_leaf_counts(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    made = rankwell.make_ranking(n_queries=12, n_docs=400, n_features=5, random_state=1)
    names = ["a", "b b", "c", "d", "e"]
    data = rankwell.RankingDataset(
        made.dense_features(), made.labels, group=np.diff(made.query_ptr), feature_names=names
    )
    ranker = rankwell.LambdaMART(n_rounds=8).fit(data)
    rankwell.export(ranker, tmp_path / "model.txt", to="lightgbm")
    booster = lightgbm.Booster(model_file=tmp_path / "model.txt")
    assert booster.feature_name() == ["a", "b_b", "c", "d", "e"]
    features = data.dense_features()
    np.testing.assert_allclose(booster.predict(features), ranker.predict(data), rtol=1e-12)
    # Shapley values need the documents of each leaf.
    assert booster.predict(features, pred_contrib=True).shape == (400, 6)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("network", "LightGBM's text cannot say linear inputs"),
        ("linear", "LightGBM's text cannot say linear inputs"),
        ("letor", "LightGBM's text cannot say the normaliser letor"),
    ],
)
def test_lightgbm_refuses(name, complaint):
    with pytest.raises(ParameterError, match=complaint):
        rankwell.export(RANKERS[name], to="lightgbm")
