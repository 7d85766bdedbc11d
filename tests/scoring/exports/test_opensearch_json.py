"""Requests of OpenSearch's learning to rank, evaluated by the rules of its plugin (OpenSearch itself is not run)."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.scoring.exports.exported_rankers import RANKERS, expected_scores, linear, rows_for

import rankwell
from rankwell import ParameterError
from rankwell.scoring.inputs import LinearInputs
from rankwell.scoring.layers import Sum

TREES = ["trees", "mean of trees", "trees of one leaf", "weighted trees", "standardised trees", "buckets"]


def model_of(description, name="mine"):
    body = json.loads(rankwell.export(description, to="opensearch", name=name))
    assert list(body) == ["model"]
    assert body["model"]["name"] == name
    return body["model"]["model"]["type"], body["model"]["model"]["definition"]


def plugin_score(definition, row):
    """The sum of trees in float32; the plugin refuses splits whose children are not where `yes` and `no` say."""
    total = np.float32(0)
    for node in definition["splits"]:
        while "leaf" not in node:
            assert [child["nodeid"] for child in node["children"]] == [node["yes"], node["no"]]
            assert node["missing"] in (node["yes"], node["no"])
            value = row[node["split"]]
            target = (
                node["missing"]
                if np.isnan(value)
                else node["yes" if np.float32(node["split_condition"]) > value else "no"]
            )
            node = next(child for child in node["children"] if child["nodeid"] == target)
        total += np.float32(node["leaf"])
    return total


@pytest.mark.parametrize("name", TREES)
def test_trees(name):
    kind, text = model_of(RANKERS[name])
    assert kind == "model/xgboost+json"
    definition = json.loads(text)
    assert definition["objective"] == "rank:ndcg"
    features = rows_for(name, 80)
    named = [{f"f{i + 1}": x for i, x in enumerate(row)} for row in features]
    scores = np.array([plugin_score(definition, row) for row in named])
    expected = expected_scores(RANKERS[name], features)
    assert np.abs(scores - expected).max() <= 2e-6 * max(1.0, np.abs(expected).max())


def test_a_probability_is_an_objective():
    _, text = model_of(RANKERS["probability of trees"])
    assert json.loads(text)["objective"] == "binary:logistic"


def test_linear_models():
    kind, text = model_of(linear(0.0))
    assert kind == "model/linear"
    assert json.loads(text) == {
        f"f{i + 1}": weight for i, weight in enumerate(linear(0.0).layers[0].weights[0].tolist())
    }
    kind, text = model_of(linear(0.5))
    assert kind == "model/ranklib"
    assert text == rankwell.export(linear(0.5), to="ranklib").decode()


def test_ranklib_in_place_of_xgboost():
    body = json.loads(rankwell.export(RANKERS["trees"], to="opensearch-ranklib", name="mine"))
    assert body["model"]["model"]["type"] == "model/ranklib"
    assert body["model"]["model"]["definition"] == rankwell.export(RANKERS["trees"], to="ranklib").decode()


def test_a_feature_set():
    names = ("bm25.title", "static.age", "bm25.body", "static.clicks", "bm25.a", "bm25.b", "bm25.c")
    body = json.loads(rankwell.export(replace(linear(), feature_names=names), to="opensearch-features", name="mine"))
    assert body["featureset"]["name"] == "mine"
    features = {feature["name"]: feature for feature in body["featureset"]["features"]}
    assert list(features) == list(names)
    # Lucene's BM25 lacks the factor k1 + 1 of the formula here.
    assert features["bm25.title"]["template"] == {"match": {"title": {"query": "{{keywords}}", "boost": 2.2}}}
    assert features["bm25.title"]["params"] == ["keywords"]
    age = features["static.age"]["template"]["function_score"]
    assert age["field_value_factor"] == {"field": "age", "missing": 0}


def test_features_that_are_not_read_need_no_query():
    """A ranker of the third feature alone: the feature set has one, and RankLib's numbers count in it."""
    inputs = LinearInputs(np.array([2], np.int32), np.array([0.5]), np.zeros(1), np.zeros(1))
    names = ("tf_sum.body", "idf.body", "bm25.title", "length.body", "a", "b", "c")
    description = replace(linear(), feature_names=names, inputs=(inputs,), layers=(Sum(0.25),))
    features = json.loads(rankwell.export(description, to="opensearch-features"))["featureset"]["features"]
    assert [feature["name"] for feature in features] == ["bm25.title"]
    assert model_of(description) == ("model/ranklib", "## Linear Regression\n## Lambda = 0.0\n0:0.25 1:0.5\n")


def test_features_that_opensearch_lacks_are_named():
    names = ("bm25.title", "bm25.whole", "bm25.title(b=0.4)", "tf_sum.body", "f5", "f6", "f7")
    with pytest.raises(
        ParameterError, match=r"no query that computes bm25\.whole, bm25\.title\(b=0\.4\), tf_sum\.body, f5"
    ):
        rankwell.export(replace(linear(), feature_names=names), to="opensearch-features")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("network", "OpenSearch's learning to rank cannot say linear inputs"),
        ("exponential of trees", "cannot say exp of the sum of trees"),
        ("categories and zeros", "cannot say nodes that test categories"),
        ("letor", "cannot say the normaliser letor"),
    ],
)
def test_what_cannot_be_said_is_named(name, complaint):
    with pytest.raises(ParameterError, match=complaint):
        rankwell.export(RANKERS[name], to="opensearch")
