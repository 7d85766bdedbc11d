"""Contributions of features: the kernel by its slow twin, as LightGBM's, and of every kind of ranker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from tests.scoring.random_rankers import describe, forest, random_rows, random_trees
from tests.tolerances import TOLERANCES

from rankwell import ImportedRanker, LambdaMART, LeastSquares, ListNet, RankBoost, RankingDataset, RankSVM, make_ranking
from rankwell.errors import ParameterError
from rankwell.kernels.threads import kernel_threads
from rankwell.scoring.composition import FirstPass, RankerPart, best_rows
from rankwell.scoring.contributions import feature_contributions
from rankwell.scoring.explanation import explain_rows
from rankwell.scoring.inputs import ExpressionInputs
from rankwell.scoring.layers import Mean, Sum
from rankwell.scoring.scorer import score_description
from rankwell.scoring.shapley import TreeShapley
from rankwell.scoring.tree_builder import TreeBuilder

DATA = make_ranking(n_docs=400, n_queries=20, n_features=6, random_state=0)
SCORES = TOLERANCES["cpu"]["scores"]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_docs", [0, 1, 65])
def test_the_kernel_agrees_with_its_twin(seed, n_docs):
    """Missing values, zeros that are missing and categories included."""
    rng = np.random.default_rng(seed)
    trees, rows = random_trees(rng, 7, 5, kinds=range(3)), random_rows(rng, 65, 5)[:n_docs]
    shapley = TreeShapley(trees)
    expected = [shapley.values(row, np.ones(len(trees)), 5) for row in rows]
    for n_jobs in (1, 2):
        with kernel_threads(n_jobs):
            np.testing.assert_allclose(shapley.sums(rows), np.reshape(expected, (n_docs, 5)), **SCORES)


def test_without_trees_or_cuts_nothing_belongs_to_a_feature():
    assert feature_contributions(forest(TreeBuilder().build(), 2), dataset(np.ones((3, 2)))).tolist() == [[0.0] * 3] * 3


def test_a_mean_of_trees_is_the_mean_of_their_contributions():
    rng = np.random.default_rng(1)
    trees, rows = random_trees(rng, 4, 3), dataset(random_rows(rng, 20, 3))
    whole = feature_contributions(forest(trees, 3), rows)
    mean = feature_contributions(describe(3, [trees], [Mean()]), rows)
    np.testing.assert_allclose(mean, whole / 4, **SCORES)


def test_a_bias_belongs_to_no_feature():
    rng = np.random.default_rng(1)
    trees, rows = random_trees(rng, 4, 3), dataset(random_rows(rng, 20, 3))
    plain, biased = (feature_contributions(forest(trees, 3, bias), rows) for bias in (0.0, 0.5))
    np.testing.assert_array_equal(biased[:, :-1], plain[:, :-1])
    np.testing.assert_allclose(biased[:, -1], plain[:, -1] + 0.5, **SCORES)


def dataset(rows: np.ndarray) -> RankingDataset:
    return RankingDataset(rows.astype(np.float32), group=[len(rows)])


def test_as_lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    features = DATA.features.copy()
    features[::7, 2] = np.nan
    features[:, 5] = np.round(np.abs(features[:, 5]) * 4)
    train = lightgbm.Dataset(features, DATA.labels.astype(int), group=DATA.query_sizes, categorical_feature=[5])
    settings = {"objective": "lambdarank", "verbose": -1, "num_leaves": 15, "min_data_in_leaf": 5, "seed": 1}
    booster = lightgbm.train(settings, train, num_boost_round=20)
    ranker = ImportedRanker.from_model(booster)
    np.testing.assert_allclose(ranker.contributions(features), booster.predict(features, pred_contrib=True), atol=1e-6)
    np.testing.assert_allclose(
        ranker.contributions(features, n_rounds=5),
        booster.predict(features, pred_contrib=True, num_iteration=5),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("settings", "factor"),
    [({"objective": "binary"}, None), ({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}, 10)],
    ids=["transformed", "forest"],
)
def test_where_lightgbm_divides_something_else(settings, factor):
    """Ours sum to the score; LightGBM's to the sum of the trees, before its transformation and before its mean."""
    lightgbm = pytest.importorskip("lightgbm")
    labels = (DATA.labels > 1).astype(int)
    shared = {"objective": "regression", "verbose": -1, "num_leaves": 7, "min_data_in_leaf": 5}
    booster = lightgbm.train(shared | settings, lightgbm.Dataset(DATA.features, labels), num_boost_round=10)
    ours = ImportedRanker.from_model(booster).contributions(DATA.features)
    theirs = booster.predict(DATA.features, pred_contrib=True)
    np.testing.assert_allclose(ours.sum(axis=1), booster.predict(DATA.features), atol=1e-9)
    np.testing.assert_allclose(theirs.sum(axis=1), booster.predict(DATA.features, raw_score=True), atol=1e-9)
    assert np.abs(ours - theirs).max() > 0.01
    if factor is not None:
        np.testing.assert_allclose(factor * ours, theirs, atol=1e-6)


@pytest.mark.parametrize(
    "ranker",
    [
        LambdaMART(n_rounds=5),
        LambdaMART(n_rounds=5, n_seeds=2, normalize="query-minmax"),
        RankBoost(n_rounds=5),
        RankSVM(),
        LeastSquares(),
        ListNet(n_epochs=2, hidden=(3,), device="cpu"),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
def test_rows_sum_to_the_scores_of_any_ranker(ranker):
    """In the user's order, whatever the order of queries."""
    order = np.random.default_rng(0).permutation(DATA.n_docs)
    qid = np.repeat(np.arange(DATA.n_queries), DATA.query_sizes)[order]
    ranker.fit(DATA)
    parts = ranker.contributions(DATA.features[order], qid=qid)
    assert parts.shape == (400, 7)
    np.testing.assert_allclose(parts.sum(axis=1), ranker.predict(DATA)[order], atol=1e-9)
    assert (np.ptp(parts[:, :-1], axis=0) > 0).any()
    (explained,) = explain_rows(ranker.description_, DATA, [order[3]])
    expected = [explained.features.get(name, 0.0) for name in ranker.description_.feature_names]
    np.testing.assert_allclose(parts[3], [*expected, explained.feature_base], atol=1e-9)


@pytest.mark.parametrize("normalize", ["none", "query-minmax"])
@pytest.mark.parametrize("keep", [1, 5, 100])
def test_rows_of_two_passes_sum_to_the_scores(normalize, keep):
    """Those that the first pass keeps, which alone the second one's normaliser compares, and those below them."""
    places = (4, 1)
    columns = RankingDataset(DATA.features[:, places], DATA.labels, group=DATA.query_sizes)
    first = LeastSquares(normalize="query-minmax").fit(columns)
    second = LambdaMART(n_rounds=5, normalize=normalize).fit(DATA)
    cascade = replace(
        second.description_,
        parts=(RankerPart("first", places, first.description_),),
        first_pass=FirstPass(0, keep),
    )
    scores, parts = score_description(cascade, DATA), feature_contributions(cascade, DATA)
    np.testing.assert_allclose(parts.sum(axis=1), scores, atol=1e-9)
    of_first, before = first.contributions(columns), first.predict(columns)
    kept = best_rows(before, DATA.query_ptr, keep)
    below = np.setdiff1d(np.arange(DATA.n_docs), kept)
    assert (len(below) > 0) == (keep < 100)
    np.testing.assert_array_equal(parts[np.ix_(below, places)], of_first[below, :-1])
    explained = explain_rows(cascade, DATA, range(DATA.n_docs))
    assert [row for row, one in enumerate(explained) if one.offset is not None] == below.tolist()
    for row, one in enumerate(explained):
        assert one.score == pytest.approx(scores[row], abs=1e-9)
        offset = one.offset or 0.0
        by_input = sum(part.contribution for part in one.inputs)
        assert one.base + by_input + offset == pytest.approx(scores[row], abs=1e-9)
        assert one.feature_base + sum(one.features.values()) + offset == pytest.approx(scores[row], abs=1e-9)
    after_two = feature_contributions(cascade, DATA, n_rounds=2)
    np.testing.assert_allclose(after_two.sum(axis=1), score_description(cascade, DATA, n_rounds=2), atol=1e-9)


def test_sparse_rows():
    ranker = LambdaMART(n_rounds=5).fit(DATA)
    features = np.where(np.abs(DATA.features) > 0.5, DATA.features, np.float32(0.0))
    np.testing.assert_array_equal(ranker.contributions(sparse.csr_array(features)), ranker.contributions(features))


def test_formulas_have_no_single_feature():
    description = describe(2, [ExpressionInputs(("f1 * f2",), np.zeros(1))], [Sum()])
    with pytest.raises(ParameterError, match="reads formulas or the scores of other rankers"):
        feature_contributions(description, dataset(np.ones((3, 2))))
