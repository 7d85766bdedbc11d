"""LambdaMART under rules for its features: rising and falling ones, groups, categories; and symmetric trees."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from tests.rankers.test_lambdamart import ndcg, small

import rankwell
from rankwell import DataError, LambdaMART, ParameterError, RankingDataset
from rankwell.cli.settings import parse_settings
from rankwell.rankers.earlier_trees import features_outside_groups
from rankwell.rankers.feature_choices import FeatureChoices
from rankwell.scoring.explanation import explain_rows
from rankwell.scoring.exports.lightgbm_text import write_lightgbm
from rankwell.scoring.reference_scores import reference_scores
from rankwell.scoring.tree_builder import Tree, TreeBuilder


def noisy(n_queries=60, seed=0, missing=0.1) -> RankingDataset:
    """Labels that rise with the first feature by and large, fall with the second, and depend on a third, with noise."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(20 * n_queries, 4)).astype(np.float32)
    trends = (X[:, 0] + np.sin(4 * X[:, 0])) - (X[:, 1] + np.sin(4 * X[:, 1]))
    y = np.clip(np.round(1.5 + trends + np.sin(3 * X[:, 2]) + generator.normal(size=len(X))), 0, 4)
    X[generator.random(X.shape) < missing] = np.nan
    return RankingDataset(X, y, group=[20] * n_queries, feature_names=("age", "price", "wave", "noise"))


def changes(ranker, data, feature, n_values=200) -> np.ndarray:
    """How the score of each of some documents changes from one value of a feature to the next."""
    rows = np.repeat(data.features[:100], n_values, axis=0)
    rows[:, feature] = np.tile(np.linspace(-4, 4, n_values), 100)
    return np.diff(ranker.predict(rows, group=[len(rows)]).reshape(100, n_values), axis=1)


@pytest.mark.parametrize("growth", ["leaf", "symmetric"])
@pytest.mark.parametrize(
    "more", [{}, {"l1": 0.1, "l2": 0.5}, {"loss": "xendcg", "n_seeds": 2}, {"document_fraction": 0.5}]
)
def test_scores_rise_and_fall_exactly(more, growth):
    data = noisy()
    parameters = {"n_rounds": 25, "n_leaves": 16, "growth": growth, **more}
    free = small(**parameters).fit(data)
    assert changes(free, data, 0).min() < 0
    assert changes(free, data, 1).max() > 0
    bound = small(increasing=["age"], decreasing=["price"], **parameters).fit(data)
    # Sums of values that rise rise as well, rounding or not.
    assert changes(bound, data, 0).min() >= 0
    assert changes(bound, data, 1).max() <= 0
    assert np.abs(changes(bound, data, 2)).max() > 0
    test = noisy(seed=1)
    untrained = rankwell.evaluate(test, np.zeros(test.n_docs), metrics=("ndcg@10",)).mean["ndcg@10"]
    assert ndcg(bound, test) > untrained + 0.1


def test_features_by_name_and_by_number():
    data = noisy()
    named = small(increasing=["age"], decreasing=("price",)).fit(data)
    numbered = small(increasing=[0], decreasing=[np.int64(1)]).fit(data)
    np.testing.assert_array_equal(named.predict(data), numbered.predict(data))


def paths(trees) -> list[set[int]]:
    """The features on the way to each leaf."""
    found = []

    def walk(tree, node, features):
        if node < 0:
            found.append(features)
            return
        own = features | {int(tree.feature[node])}
        walk(tree, tree.left[node], own)
        walk(tree, tree.right[node], own)

    for tree in trees.trees:
        walk(tree, 0, set())
    return found


@pytest.mark.parametrize("growth", ["leaf", "symmetric"])
def test_features_interact_within_groups_only(growth, caplog):
    data = noisy(n_queries=100)
    groups = [{0, 1}, {1, 2}, {3}]
    parameters = {"n_rounds": 60, "n_leaves": 16, "growth": growth, "learning_rate": 0.3}
    free = paths(small(**parameters).fit(data).grown_trees())
    assert not all(any(path <= group for group in groups) for path in free)
    named = [["age", "price"], ["price", "wave"], ["noise"]]
    bound = paths(small(interaction_groups=named, **parameters).fit(data).grown_trees())
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert all(any(path <= group for group in groups) for path in bound)
    assert {0, 1} in bound
    assert {1, 2} in bound


def test_features_in_no_group_are_not_used(caplog):
    ranker = small(interaction_groups=[("age", "price")]).fit(noisy())
    assert set().union(*paths(ranker.grown_trees())) == {0, 1}
    assert "no tree uses wave, noise, since interaction_groups does not have them" in caplog.text


def colours(n_queries=80, seed=0, n_colours=30) -> RankingDataset:
    """Some categories are better than others, whatever their numbers; one value in ten is missing."""
    generator = np.random.default_rng(seed)
    worth = np.random.default_rng(99).permutation(np.linspace(-2, 2, n_colours))
    colour = generator.integers(0, n_colours, 20 * n_queries)
    X = np.stack([colour, generator.normal(size=len(colour))], axis=1).astype(np.float32)
    y = np.clip(np.round(1.5 + worth[colour] + 0.5 * X[:, 1] + 0.5 * generator.normal(size=len(X))), 0, 4)
    X[generator.random(len(X)) < 0.1, 0] = np.nan
    return RankingDataset(X, y, group=[20] * n_queries, feature_names=("colour", "size"))


def test_categories_are_learnt_faster_than_their_numbers(tmp_path):
    train, test = colours(), colours(seed=1)
    numbers = small(n_rounds=10).fit(train)
    sets = small(n_rounds=10, categorical_features=["colour"]).fit(train, eval_set=test)
    assert ndcg(sets, test) > ndcg(numbers, test) + 0.02
    # Bins of validation data, the description, and the file all say the same.
    assert sets.best_score_ == pytest.approx(ndcg(sets, test), abs=1e-9)
    np.testing.assert_allclose(
        sets.predict(test.features[:60], group=[60]),
        reference_scores(sets.description_, test.features[:60]),
        atol=1e-12,
    )
    sets.save(tmp_path / "colours.rank")
    loaded = rankwell.load(tmp_path / "colours.rank")
    np.testing.assert_array_equal(loaded.predict(test), sets.predict(test))
    np.testing.assert_array_equal(loaded.importances("gain"), sets.importances("gain"))
    more = small(n_rounds=2, categorical_features=["colour"]).fit(train, init_model=loaded)
    np.testing.assert_array_equal(more.predict(test, n_rounds=len(loaded.trees_)), loaded.predict(test))


@pytest.mark.parametrize("parameters", [{"categorical_features": ["colour"]}, {"growth": "symmetric"}])
def test_lightgbm_scores_an_exported_model_the_same(parameters, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    train = colours()
    # LightGBM has no category for missing values.
    train = train.replace(features=np.nan_to_num(train.features, nan=31.0))
    ranker = small(**parameters).fit(train)
    (tmp_path / "model.txt").write_bytes(write_lightgbm(ranker.description_))
    rows = np.concatenate([train.features[:200], [[77.0, 0.0], [np.nan, 0.5]]]).astype(np.float32)
    expected = lightgbm.Booster(model_file=tmp_path / "model.txt").predict(rows)
    np.testing.assert_allclose(ranker.predict(rows, group=[len(rows)]), expected, rtol=1e-12, atol=1e-12)
    imported = rankwell.ImportedRanker.from_model(tmp_path / "model.txt")
    np.testing.assert_allclose(imported.predict(rows, group=[len(rows)]), expected, rtol=1e-12, atol=1e-12)


def test_category_numbers_do_not_matter():
    """Renumbered categories give the same scores, if none of them gains as much as another."""
    train = colours()
    other = np.random.default_rng(5).permutation(100)[:30]
    renamed = train.features.copy()
    has_colour = ~np.isnan(renamed[:, 0])
    renamed[has_colour, 0] = other[renamed[has_colour, 0].astype(int)]
    first = small(categorical_features=[0]).fit(train)
    second = small(categorical_features=[0]).fit(renamed, train.labels, group=train.query_sizes)
    np.testing.assert_allclose(first.predict(train), second.predict(renamed, group=train.query_sizes), atol=1e-12)


def test_unseen_missing_and_rare_categories():
    train = colours()
    ranker = small(categorical_features=[0], n_rounds=5, n_bins=12).fit(train)
    kept = np.unique(ranker.trees_.categories)
    assert 0 < len(kept) <= 10
    rare = next(colour for colour in range(30) if colour not in kept)
    rows = np.array([[1000.0, 0.0], [rare, 0.0], [-3.0, 0.0], [1e9, 0.0]], np.float32)
    scores = ranker.predict(rows, group=[len(rows)])
    assert len(set(scores)) == 1
    # The same in the bins of validation data as in scoring.
    strange = RankingDataset(
        np.concatenate([rows, train.features[:20], [[np.nan, 0.1], [3.5, 0.0]]]), np.arange(26) % 3, group=[26]
    )
    watched = small(categorical_features=[0], n_rounds=5, n_bins=12, early_stopping_rounds=None).fit(
        train, eval_set=strange
    )
    assert watched.history_["validation ndcg@10"][-1] == pytest.approx(ndcg(watched, strange), abs=1e-9)


def test_a_missing_category_is_a_category():
    generator = np.random.default_rng(0)
    X = generator.integers(0, 9, (600, 1)).astype(np.float32)
    X[generator.random(600) < 0.3] = np.nan
    y = np.isnan(X[:, 0]) | (X[:, 0] == 4)
    data = RankingDataset(X, y.astype(float), group=[20] * 30)
    ranker = small(categorical_features=[0], n_rounds=3, category_smoothing=1.0).fit(data)
    assert ndcg(ranker, data) > 0.999


def test_categories_of_sparse_data():
    from scipy import sparse

    train = colours()
    features = np.nan_to_num(train.features)
    dense = small(categorical_features=[0]).fit(features, train.labels, group=train.query_sizes)
    thin = small(categorical_features=[0]).fit(sparse.csr_matrix(features), train.labels, group=train.query_sizes)
    np.testing.assert_array_equal(dense.predict(train), thin.predict(train))


@pytest.mark.parametrize("value", [1.5, -1.0, 2.0**25])
def test_values_that_are_no_categories(value):
    data = colours()
    features = data.features.copy()
    features[7, 0] = value
    with pytest.raises(DataError, match=r"'f1' is categorical, so its values must be whole numbers .* row 7 has"):
        small(categorical_features=[0]).fit(features, data.labels, group=data.query_sizes)


@pytest.mark.parametrize(
    "more", [{"categorical_features": ["colour"]}, {"growth": "symmetric"}, {"increasing": ["size"]}]
)
def test_a_killed_run_continues_to_the_same_bytes(more, tmp_path):
    train, test = colours(), colours(seed=1)
    path = str(tmp_path / "run.checkpoint")
    whole = small(**more).fit(train, eval_set=test)

    class KilledError(Exception):
        pass

    def kill(step):
        if step.number == 8:
            raise KilledError

    with pytest.raises(KilledError):
        small(checkpoint=path, checkpoint_every=3, **more).fit(train, eval_set=test, callback=kill)
    resumed = small(checkpoint=path, checkpoint_every=3, **more).fit(train, eval_set=test)
    for ranker in (whole, resumed):
        ranker.set_params(checkpoint=None, checkpoint_every=1).save(tmp_path / f"{ranker is whole}.rank")
    assert (tmp_path / "True.rank").read_bytes() == (tmp_path / "False.rank").read_bytes()


def test_explanations_of_categories():
    train = colours()
    ranker = small(categorical_features=["colour"]).fit(train)
    [explanation] = explain_rows(ranker.description_, train, [3])
    assert explanation.score == pytest.approx(ranker.predict(train)[3])
    assert explanation.feature_base + sum(explanation.features.values()) == pytest.approx(explanation.score)


@pytest.mark.parametrize(("n_leaves", "max_depth", "expected"), [(16, 0, 4), (31, 0, 4), (16, 2, 2), ("auto", 3, 3)])
def test_levels_of_symmetric_trees(n_leaves, max_depth, expected):
    ranker = small(growth="symmetric", n_leaves=n_leaves, max_depth=max_depth, n_rounds=5).fit(noisy())
    for tree in ranker.grown_trees().trees:
        tests = set(zip(tree.feature, tree.threshold, tree.missing_left, strict=True))
        assert len(tests) <= expected
        assert len(tree.leaf_value) <= 2**expected
    assert max(len(tree.leaf_value) for tree in ranker.grown_trees().trees) > 2 ** (expected - 1)


def test_symmetric_trees_learn_and_score_as_described():
    train, test = noisy(n_queries=150), noisy(seed=1)
    ranker = small(growth="symmetric", n_leaves=16, n_rounds=40).fit(train, eval_set=test)
    assert ndcg(ranker, test) > ndcg(small(n_rounds=1).fit(train), test)
    assert ranker.best_score_ == pytest.approx(ndcg(ranker, test), abs=1e-9)
    rows = test.features[:70]
    expected = reference_scores(ranker.description_, rows)
    for n_rows in (1, 5, 64, 70):
        np.testing.assert_allclose(ranker.predict(rows[:n_rows], group=[n_rows]), expected[:n_rows], atol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"increasing": ["agee"]}, "increasing has 'agee', which is no feature of the data. Did you mean 'age'"),
        ({"increasing": [4]}, "increasing must have names of features, or numbers from 0 to 3, got 4"),
        ({"increasing": "age"}, "increasing must be a list of features"),
        ({"increasing": [0, "age"]}, "increasing has the feature 'age' twice"),
        (
            {"increasing": [0], "decreasing": ["age"]},
            "increasing has the feature 'age', which is in decreasing as well",
        ),
        ({"decreasing": [0], "categorical_features": [0]}, "decreasing has the feature 'age', which is in categorical"),
        ({"interaction_groups": "age"}, "interaction_groups must be a list of groups"),
        ({"interaction_groups": ["age"]}, "interaction_groups must be a list of features"),
        ({"growth": "level"}, "growth must be one of 'leaf', 'symmetric', got 'level'"),
        ({"growth": "symmetric", "categorical_features": [0]}, "categorical_features are cut by sets of categories"),
        ({"normalize": "standard", "categorical_features": [0]}, "categorical_features are numbers of categories"),
        ({"max_category_set": 0}, "max_category_set must be from 1 to"),
        ({"category_smoothing": -1}, "category_smoothing must be a finite number of 0 or more"),
    ],
)
def test_parameters_are_checked(parameters, said):
    with pytest.raises(ParameterError, match=said):
        small(**parameters).fit(noisy(n_queries=5))


def test_rules_on_the_command_line():
    parsed = parse_settings(
        LambdaMART,
        ["increasing=age,2", "interaction_groups=age+price,wave", "categorical_features=none", "growth=symmetric"],
    )
    assert parsed == {
        "increasing": ("age", 2),
        "interaction_groups": (("age", "price"), ("wave",)),
        "categorical_features": None,
        "growth": "symmetric",
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("monotone_constraints", "It is called increasing here, and decreasing: each is a list of features."),
        ("interaction_constraints", "It is called interaction_groups here."),
        ("categorical_feature", "It is called categorical_features here."),
    ],
)
def test_other_names(name, said):
    with pytest.raises(ParameterError, match=said):
        LambdaMART(**{name: [1]})


def test_groups_that_earlier_trees_break_are_told(caplog):
    data = noisy(missing=0.0)
    groups = [["age", "price"], ["wave"], ["noise"]]
    free, grouped = small(n_rounds=3).fit(data), small(n_rounds=3, interaction_groups=groups).fit(data)
    caplog.clear()
    for kept in (groups, [["age", "price", "wave"], ["noise"]]):
        small(n_rounds=1, interaction_groups=kept).fit(data, init_model=grouped)
    small(n_rounds=1).fit(data, init_model=free)
    assert "interaction_groups" not in caplog.text
    small(n_rounds=1, interaction_groups=groups).fit(data, init_model=free)
    assert "interaction_groups holds for the new trees only: a tree of init_model has" in caplog.text
    assert "on one path, which no group has" in caplog.text
    caplog.clear()
    small(n_rounds=1, interaction_groups=[["age"], ["price"], ["wave"], ["noise"]]).fit(data, init_model=grouped)
    assert "a tree of init_model has age and price on one path" in caplog.text


def test_paths_are_followed_to_their_ends():
    """A node of the third level is in no group with the root, but with its parent."""
    builder = TreeBuilder()
    columns = [builder.column(feature) for feature in (0, 1, 2)]
    builder.add(Tree(columns, np.zeros(3, np.float32), [True] * 3, [1, 2, -1], [-2, -3, -4], np.zeros(4)))
    trees = builder.build()

    def found(*groups):
        return features_outside_groups(trees, FeatureChoices.from_parameters(tuple("abc"), None, None, groups, None))

    assert found(("a", "b"), ("b", "c")) == (0, 1, 2)
    assert found(("a", "b", "c")) == ()
    assert found(("a", "c"), ("b",)) == (0, 1)
    assert found() == ()
