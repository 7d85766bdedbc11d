"""Exported rankers score in other libraries as they do here."""

import json
import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from tests.scoring.exports.exported_rankers import RANKERS, expected_scores, rows_for

import rankwell
from rankwell import FileFormatError, ParameterError
from rankwell.kernels.scoring.rules import IN_CATEGORIES

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


def test_onnx_says_that_a_part_needs_its_query():
    onnx = pytest.importorskip("onnx")
    first, *others = RANKERS["made of rankers"].parts
    parts = (replace(first, description=RANKERS["letor"]), *others)
    whole = rankwell.export(replace(RANKERS["made of rankers"], parts=parts), to="onnx")
    properties = {entry.key: entry.value for entry in onnx.load_from_string(whole).metadata_props}
    assert properties["rows_of_a_call"] == "one query"


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


def test_categories_of_lambdamart(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 3)).astype(np.float32)
    features[:, 2] = rng.integers(0, 9, 400)
    features[rng.random(features.shape) < 0.1] = np.nan
    labels = np.clip(np.round(np.nan_to_num(features[:, 0]) + 2 * (features[:, 2] % 3 == 1)), 0, 3)
    ranker = rankwell.LambdaMART(n_rounds=15, categorical_features=[2])
    ranker.fit(features, labels, group=[20] * 20)
    assert (ranker.description_.inputs[0].column_kind == IN_CATEGORIES).any()
    expected = ranker.predict(features, group=[20] * 20)
    np.testing.assert_allclose(
        onnx_scores(rankwell.export(ranker, to="onnx"), features), expected, rtol=1e-6, atol=1e-6
    )
    rankwell.export(ranker, tmp_path / "model.txt", to="lightgbm")
    scores = lightgbm.Booster(model_file=tmp_path / "model.txt").predict(features)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-13)


def test_without_the_package_onnx_the_error_names_the_extra(monkeypatch, tmp_path):
    content = rankwell.export(RANKERS["trees"], to="onnx") if find_spec("onnx") else b"\x08\x08\x12\x00"
    (tmp_path / "model.onnx").write_bytes(content)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ParameterError, match=r"ONNX needs the package onnx: pip install 'rankwell\[onnx\]'"):
        rankwell.export(RANKERS["trees"], to="onnx")
    with pytest.raises(FileFormatError, match=r"an ONNX model needs the package onnx: pip install 'rankwell\[onnx\]'"):
        rankwell.ImportedRanker.from_model(tmp_path / "model.onnx")


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
