"""Shapley values of trees: by the definition, and as LightGBM and XGBoost compute them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.scoring.random_rankers import forest, random_rows, random_trees

from rankwell import ImportedRanker, LambdaMART, RankingDataset, make_ranking
from rankwell.kernels.scoring import reference
from rankwell.scoring.explanation import explain_rows, explain_score
from rankwell.scoring.ranker_file import read_ranker_file
from rankwell.scoring.shapley import TreeShapley
from rankwell.scoring.tree_builder import Tree, TreeBuilder


def value_of(trees, t, row, known, node=0):
    """The expected value of a tree if only the features `known` are, by recursion."""
    start, leaf = int(trees.node_ptr[t]), int(trees.leaf_ptr[t])
    if trees.node_ptr[t + 1] == start:
        node = -1
    if node < 0:
        return float(trees.leaf_value[leaf - 1 - node])
    column = int(trees.column[start + node])
    feature = int(trees.column_feature[column])
    children = int(trees.left[start + node]), int(trees.right[start + node])
    if feature in known:
        x = reference.tested_value(float(row[feature]), int(trees.column_kind[column]), trees.categories_of(column))
        is_left = bool(trees.missing_left[start + node]) if math.isnan(x) else x <= trees.threshold[start + node]
        return value_of(trees, t, row, known, children[0 if is_left else 1])
    weights = [weight_of(trees, t, child) for child in children]
    return sum(w * value_of(trees, t, row, known, child) for w, child in zip(weights, children, strict=True)) / sum(
        weights
    )


def weight_of(trees, t, node):
    if node < 0:
        leaf = int(trees.leaf_ptr[t]) - 1 - node
        return float(trees.leaf_weight[leaf]) if len(trees.leaf_weight) else 1.0
    start = int(trees.node_ptr[t])
    return weight_of(trees, t, int(trees.left[start + node])) + weight_of(trees, t, int(trees.right[start + node]))


def by_definition(trees, row, n_features):
    """Every subset of the features."""
    values = np.zeros(n_features)
    for t, feature in itertools.product(range(len(trees)), range(n_features)):
        others = [other for other in range(n_features) if other != feature]
        for size in range(n_features):
            weight = math.factorial(size) * math.factorial(n_features - 1 - size) / math.factorial(n_features)
            for known in itertools.combinations(others, size):
                with_it, without = ({*known, feature}, set(known))
                values[feature] += weight * (value_of(trees, t, row, with_it) - value_of(trees, t, row, without))
    return values


@pytest.mark.parametrize("seed", range(4))
def test_by_the_definition(seed):
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, 4, 5)
    if seed % 2:
        weighted = rng.integers(1, 9, len(trees.leaf_value)).astype(float)
        trees = type(trees)(**{**trees.__dict__, "leaf_weight": weighted})
    shapley = TreeShapley(trees)
    for row in random_rows(rng, 3, 5):
        np.testing.assert_allclose(
            shapley.values(row, np.ones(len(trees)), 5), by_definition(trees, row, 5), rtol=1e-9, atol=1e-9
        )


def test_leaves_that_no_document_reached():
    builder = TreeBuilder()
    columns = [builder.column(0), builder.column(1)]
    builder.add(Tree(columns, [1.0, 5.0], [True, False], [-1, -2], [1, -3], [10.0, 20.0, 60.0], [4.0, 0.0, 0.0]))
    explanation = explain_score(forest(builder.build(), 2), np.array([2.0, 7.0]))
    assert explanation.feature_base == 10.0
    assert explanation.feature_base + sum(explanation.features.values()) == pytest.approx(60.0)


@pytest.mark.parametrize("kind", ["text", "object"])
def test_as_lightgbm(kind, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    data = make_ranking(n_docs=600, n_queries=20, n_features=6, random_state=0)
    features = data.features.copy()
    features[::7, 2] = np.nan
    features[:, 5] = np.round(features[:, 5])
    train = lightgbm.Dataset(features, data.labels.astype(int), group=data.query_sizes, categorical_feature=[5])
    settings = {"objective": "lambdarank", "verbose": -1, "num_leaves": 15, "min_data_in_leaf": 5, "seed": 1}
    booster = lightgbm.train(settings, train, num_boost_round=20)
    if kind == "text":
        booster.save_model(tmp_path / "model.txt")
    ranker = ImportedRanker.from_model(tmp_path / "model.txt" if kind == "text" else booster)
    ranker.save(tmp_path / "model.rank")
    description = read_ranker_file(tmp_path / "model.rank").description
    rows = list(range(0, 600, 37))
    expected = booster.predict(features[rows], pred_contrib=True)
    found = explain_rows(description, RankingDataset(features, group=[600]), rows)
    for explanation, contributions in zip(found, expected, strict=True):
        ours = [explanation.features.get(name, 0.0) for name in description.feature_names]
        np.testing.assert_allclose([*ours, explanation.feature_base], contributions, atol=1e-6)


def test_as_xgboost():
    xgboost = pytest.importorskip("xgboost")
    data = make_ranking(n_docs=600, n_queries=20, n_features=6, random_state=0)
    ranker = xgboost.XGBRanker(n_estimators=20, max_depth=4).fit(
        data.features, data.labels.astype(int), group=data.query_sizes
    )
    expected = ranker.get_booster().predict(xgboost.DMatrix(data.features[:20]), pred_contribs=True)
    description = ImportedRanker.from_model(ranker).description_
    found = explain_rows(description, RankingDataset(data.features, group=[600]), range(20))
    for explanation, contributions in zip(found, expected, strict=True):
        ours = [explanation.features.get(name, 0.0) for name in description.feature_names]
        np.testing.assert_allclose(ours, contributions[:-1], atol=1e-4)


def test_of_lambdamart_leaves_weigh_as_their_documents():
    data = make_ranking(n_docs=600, n_queries=20, n_features=6, random_state=0)
    ranker = LambdaMART(n_rounds=4, n_leaves=5).fit(data)
    trees = ranker.trees_
    assert trees.leaf_weight.sum() == 4 * 600
    [explanation] = explain_rows(ranker.description_, data, [5])
    assert explanation.feature_base == pytest.approx(np.mean(ranker.predict(data)))
