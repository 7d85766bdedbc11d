"""Cascades: what is chosen, what it costs, and that the file ranks as the trained cascade does."""

import numpy as np
import pytest

import rankwell
from rankwell import Cascade, DataError, ParameterError, RankBoost
from rankwell.data.dataset import RankingDataset
from rankwell.rankers import cascade_passes
from rankwell.rankers.cascade_curve import CascadePoint, best_points, choose_point
from rankwell.rankers.cascade_passes import SELECTED
from rankwell.rankers.feature_order import feature_orders
from rankwell.scoring.costs import Cost, FeatureCost, FeatureCosts
from rankwell.scoring.feature_use import read_features

N_FEATURES = 12


def make_data(seed, n_queries=40, size=30):
    """One cheap feature says something, two others more; the rest is noise, or repeats them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * size, N_FEATURES)).astype(np.float32)
    X[:, 5] = X[:, 0]
    truth = X[:, 0] + 1.5 * X[:, 1] + X[:, 2]
    y = np.clip(np.round(truth + 0.5 * rng.normal(size=len(X))), 0, 4)
    return RankingDataset(X, y, group=[size] * n_queries, feature_names=[f"x{number}" for number in range(N_FEATURES)])


COSTS = FeatureCosts({"x0": FeatureCost(0.1)}, default=10.0, source="test")
BOOSTED = {"n_rounds": 30, "n_jobs": 1, "device": "cpu", "normalize": "none"}
SETTINGS = {"second": "rankboost", "second_parameters": BOOSTED, "second_sizes": (3, 6), "keep": (5, 10, 15)}


@pytest.fixture(scope="module", autouse=True)
def models_cost_what_they_read():
    """Measured times, and what is chosen by them, depend on what else the machine does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cascade_passes, "measure_model", lambda ranker, rows: Cost(5.0, 0.02 * rows.shape[1]))
        yield


@pytest.fixture(scope="module")
def cascade():
    return Cascade(**SETTINGS).fit(make_data(1), eval_set=make_data(2), costs=COSTS)


def test_the_cascade_is_cheaper_and_as_good(cascade):
    full = RankBoost(**SETTINGS["second_parameters"]).fit(make_data(1), eval_set=make_data(2))
    test = make_data(3)
    assert cascade.point_.cost < 0.85 * cascade.full_.cost  # which reads no noise either
    assert cascade.score(test) > full.score(test) - 0.02
    # Noise and what repeats others is left out.
    assert set(cascade.point_.second) <= {"x0", "x1", "x2", "x5", "x3", "x4"}
    assert {"x1", "x2"} <= set(cascade.point_.second)


def test_costs_are_those_of_the_table(cascade):
    n_docs, full = 30, cascade.full_
    read = n_docs * (0.1 + 10.0 * (len(full.second) - 1))  # only features that it reads
    assert "x0" in full.second
    assert len(full.second) < N_FEATURES
    assert read <= full.cost < read + 100
    assert full in cascade.points_
    point = next(point for point in cascade.points_ if point.first == ("x0",) and point.keep == 5)
    assert 0.1 * n_docs <= point.first_cost < 0.1 * n_docs + 100
    # What the first pass fetched is not paid again.
    fetched = 10.0 * 5 * len(set(point.second) - {"x0"})
    assert fetched <= point.second_cost < fetched + 100


def test_prediction_ranks_what_is_not_kept_below_in_the_first_pass_s_order(cascade):
    chosen = next(point for point in cascade.points_ if point.keep == 5 and point.first_size == 2)
    again = Cascade(**SETTINGS | {"keep": (5,), "first_sizes": (2,), "tolerance": 1.0})
    again.fit(make_data(1), eval_set=make_data(2), costs=COSTS)
    assert again.point_.keep == 5
    test = make_data(3)
    scores = again.predict(test)
    part = again.description_.parts[0].description
    first = rankwell.MadeRanker.from_description(part).predict(test)
    second = rankwell.MadeRanker.from_description(again.description_.second_pass).predict(test)
    for rows in test.queries():
        by_first = np.argsort(-first[rows], kind="stable")
        kept = by_first[:5]
        np.testing.assert_array_equal(scores[rows][kept], second[rows][kept])
        np.testing.assert_array_equal(np.argsort(-scores[rows], kind="stable")[5:], by_first[5:])
    assert chosen.cost > 0


def test_the_file_ranks_as_the_cascade(cascade, tmp_path):
    cascade.save(tmp_path / "cascade.rank")
    again = rankwell.load(tmp_path / "cascade.rank")
    assert isinstance(again, Cascade)
    test = make_data(3)
    np.testing.assert_array_equal(again.predict(test), cascade.predict(test))
    assert again.metrics_["cascade"]["chosen"]["cost"] == pytest.approx(cascade.point_.cost)
    assert again.get_params() == cascade.get_params()


def test_a_budget_is_kept(cascade):
    budget = cascade.full_.cost / 10
    small = Cascade(**SETTINGS, budget=budget).fit(make_data(1), eval_set=make_data(2), costs=COSTS)
    assert small.point_.cost <= budget
    with pytest.raises(ParameterError, match=r"budget must be at least .* microseconds a query, what the cheapest"):
        Cascade(**SETTINGS, budget=0.5).fit(make_data(1), eval_set=make_data(2), costs=COSTS)


def test_without_validation_data_parts_of_the_training_queries_validate():
    cascade = Cascade(**SETTINGS, n_folds=3).fit(make_data(1), costs=COSTS)
    assert len(cascade.point_.by_query) == 40
    assert cascade.score(make_data(3)) > 0.8
    with pytest.raises(DataError, match="2 queries cannot be divided into 3 parts"):
        Cascade(**SETTINGS, n_folds=3).fit(make_data(1, n_queries=2))


@pytest.mark.parametrize("normalize", ["query-minmax", "standard"])
def test_passes_that_normalise(normalize, tmp_path):
    cascade = Cascade(
        first_parameters={"normalize": normalize},
        second="least-squares",
        second_parameters={"normalize": normalize},
        second_sizes=(3,),
        keep=(10,),
        tolerance=1.0,
    ).fit(make_data(1), eval_set=make_data(2), costs=COSTS)
    assert cascade.point_.keep == 10
    metric = rankwell.evaluate(make_data(2), cascade.predict(make_data(2)), metrics="ndcg@10").mean["ndcg@10"]
    assert cascade.point_.metric == pytest.approx(metric)


def test_mistakes_are_told():
    with pytest.raises(ParameterError, match="there is no ranker called 'boost'"):
        Cascade(second="boost").fit(make_data(1))
    with pytest.raises(ParameterError, match="rankboost has no parameter 'rounds'"):
        Cascade(second="rankboost", second_parameters={"rounds": 3}).fit(make_data(1))
    with pytest.raises(ParameterError, match="keep must be 1 or more, got 0"):
        Cascade(keep=(0,)).fit(make_data(1))
    with pytest.raises(ParameterError, match="budget must be a finite number above 0"):
        Cascade(budget=-1).fit(make_data(1))


def test_features_come_by_what_they_are_worth():
    data = make_data(1)
    by_gain, order = feature_orders(
        data, lambda taken, feature: 1.0, lambda taken, feature: 100.0 if feature == 1 else 1.0
    )
    assert by_gain[0] == 1
    assert order[0] in (0, 2, 5)
    assert order.index(5) > 2 or order.index(0) > 2  # the second of two equal features gains nothing
    assert sorted(order) == list(range(N_FEATURES))


def point(cost, by_query):
    return CascadePoint((), (), 0, 1, None, False, 0.0, cost, float(np.mean(by_query)), np.asarray(by_query, float))


def test_the_curve_has_what_nothing_beats():
    points = [point(5, [0.5]), point(1, [0.2]), point(2, [0.1]), point(3, [0.4]), point(9, [0.5])]
    assert [one.cost for one in best_points(points)] == [1, 3, 5]


def test_a_lucky_point_is_not_chosen():
    full = point(100, np.full(50, 0.5))
    # The same mean, once with every query a little worse or better, once with large swings.
    steady = point(20, np.full(50, 0.5) + np.tile([0.001, -0.001], 25))
    lucky = point(10, np.full(50, 0.5) + np.tile([0.3, -0.3], 25))
    assert choose_point([full, steady, lucky], full, budget=None, tolerance=0.003) is steady
    assert choose_point([full, steady, lucky], full, budget=30, tolerance=0.003) is steady
    assert choose_point([full, lucky], full, budget=None, tolerance=0.003) is full


def test_what_selection_knows_is_a_first_pass_of_its_own():
    """The features worth most share an expensive step: without a first pass that does without it, no budget is met."""
    shared = {"hits": Cost(2000.0, 0.0), "lookup": Cost(1.0, 0.0)}
    features = {f"x{number}": FeatureCost(0.01, ("hits",)) for number in range(1, N_FEATURES)}
    costs = FeatureCosts(features | {"x0": FeatureCost(0.0)}, shared, frozenset({"x0", "x5"}), source="test")
    features = costs.features | {"x5": FeatureCost(0.0)}
    costs = FeatureCosts(features, shared, frozenset({"x0", "x5"}), source="test")
    cascade = Cascade(**SETTINGS | {"first_sizes": (4,)}).fit(make_data(1), eval_set=make_data(2), costs=costs)
    free = [point for point in cascade.points_ if point.keep is not None and point.first_pass == SELECTED]
    assert free
    assert max(point.first_cost for point in free) < 100
    assert min(point.first_cost for point in cascade.points_ if point.first_size == 4) > 2000
    for point in (free[0], cascade.point_):
        assert not {"by_query", "first_pass", "second_pass"} & point.to_json().keys()


def test_an_expensive_feature_that_is_worth_it_is_tried_with_few_others():
    """x1 says most and costs most: by worth per cost it comes last, by what it says alone it is among the first."""
    costs = FeatureCosts({"x1": FeatureCost(10_000.0)}, default=1.0, source="test")
    cascade = Cascade(**SETTINGS | {"second_sizes": (2,)}).fit(make_data(1), eval_set=make_data(2), costs=costs)
    assert {"x1" in point.second for point in cascade.points_ if point.second_size == 2} == {True, False}


def test_within_a_budget_the_point_that_falls_least_short_is_chosen():
    """Not the one with the best mean, which is the luckiest; but what is gained is no fault."""
    rng = np.random.default_rng(0)
    full = point(100.0, 0.5 + 0.1 * rng.normal(size=100))
    lucky = point(10.0, full.by_query + 0.01 + 0.1 * rng.normal(size=100))
    alike = point(20.0, full.by_query - 0.001)
    assert lucky.metric > full.metric > alike.metric
    assert choose_point([lucky, alike, full], full, budget=30, tolerance=0.003) is alike
    assert choose_point([lucky, alike, full], full, budget=15, tolerance=0.003) is lucky
    assert choose_point([lucky, alike, full], full, budget=200, tolerance=0.003) is full
    better = point(25.0, full.by_query + np.where(np.arange(100) < 50, 0.2, -0.0005))
    assert choose_point([lucky, alike, better, full], full, budget=30, tolerance=0.003) is better


def test_a_feature_with_a_price_a_query_is_bought_where_it_fits_the_budget():
    """x1 says most and costs 600 µs a query: with it, 5 documents leave room for one more feature, 15 for none."""
    shared = {"model": Cost(600.0, 0.0)}
    features = {"x0": FeatureCost(0.01), "x1": FeatureCost(0.0, ("model",))}
    costs = FeatureCosts(features, shared, default=10.0, source="test")
    settings = SETTINGS | {"second_sizes": (2,), "first_sizes": (1,), "keep": (5, 15)}
    cascade = Cascade(**settings, budget=1000.0).fit(make_data(1), eval_set=make_data(2), costs=costs)
    tried = {(point.keep, point.second_size) for point in cascade.points_ if "x1" in point.second}
    fitting = [size for keep, size in tried if keep == 5 and 2 < size < N_FEATURES]
    assert fitting, tried
    assert cascade.point_.cost <= 1000.0
    assert "x1" in cascade.point_.second


def test_a_gain_outweighs_a_smaller_loss():
    """The mean difference is +0.01, of which a twentieth of the losses, 0.02 in the mean, is taken off."""
    full = point(100, np.full(50, 0.5))
    better = point(10, np.full(50, 0.5) + np.tile([0.06, -0.04], 25))
    assert choose_point([full, better], full, budget=None, tolerance=0.0) is better
    worse = point(5, np.full(50, 0.5) + np.tile([0.05, -0.06], 25))
    assert choose_point([full, better, worse], full, budget=None, tolerance=0.0) is better
    assert choose_point([full, better, worse], full, budget=None, tolerance=0.0125) is worse


def test_second_passes_learn_from_the_documents_that_are_kept():
    """Below the first 10 documents by x0, x1 points the wrong way: who learns from all documents learns that."""

    def turned(seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40 * 30, 2)).astype(np.float32)
        top = np.concatenate([np.argsort(np.argsort(-one)) < 10 for one in X[:, 0].reshape(40, 30)])
        y = np.where(top, 2.0 + (X[:, 1] > 0), X[:, 1] < 0)
        return RankingDataset(X, y, group=[30] * 40, feature_names=["x0", "x1"])

    costs = FeatureCosts({"x0": FeatureCost(0.001)}, default=10.0, source="test")
    settings = {
        "second_parameters": BOOSTED | {"n_rounds": 5, "normalize": "query-minmax"},
        "first_sizes": (1,),
        "second_sizes": (1,),
        "keep": (10,),
    }
    cascade = Cascade(**settings, budget_share=0.5).fit(turned(1), eval_set=turned(2), costs=costs)
    assert cascade.point_.keep == 10
    assert cascade.point_.from_kept
    assert {point.from_kept for point in cascade.points_ if point.keep == 10} == {False, True}
    assert cascade.score(turned(3)) == pytest.approx(1.0, abs=0.02)
    assert cascade.full_.metric < cascade.point_.metric


def test_where_no_kept_documents_differ_second_passes_learn_from_all():
    """The first pass keeps one document a query: there is nothing to compare."""
    settings = SETTINGS | {"keep": (1,), "second_parameters": BOOSTED | {"normalize": "query-minmax"}}
    cascade = Cascade(**settings, budget_share=0.5)
    cascade.fit(make_data(1), eval_set=make_data(2), costs=COSTS)
    assert {point.keep for point in cascade.points_} == {None, 1}


def test_the_chosen_second_pass_is_the_mean_of_several_models_whose_cost_counts():
    parameters = {"n_rounds": 10, "n_leaves": 4, "device": "cpu", "n_jobs": 1}
    settings = {"second_parameters": parameters, "second_sizes": (3,), "keep": (5,), "first_sizes": (1,), "n_folds": 2}
    one, three = (
        Cascade(**settings, n_seeds=n_seeds, budget_share=0.6).fit(make_data(1), costs=COSTS) for n_seeds in (1, 3)
    )
    assert one.point_.keep == three.point_.keep == 5
    assert [cascade.description_.n_inputs for cascade in (one, three)] == [10, 30]
    # The points are single models: their metrics agree, and their costs differ by the model's time alone.
    of_one = {(point.first_pass, point.second_pass): point for point in one.points_}
    for point in three.points_:
        known = of_one[point.first_pass, point.second_pass]
        assert point.metric == known.metric
        assert point.second == known.second
    # Several models read nothing that was not counted in the point's cost.
    assert set(read_features(three.description_)) <= {*three.point_.first, *three.point_.second}
    # A number for all rankers is not multiplied.
    all_of_two = Cascade(**settings | {"second_parameters": parameters | {"n_seeds": 2}}, budget_share=0.6)
    all_of_two.fit(make_data(1), costs=COSTS)
    assert all_of_two.description_.n_inputs == 20
    # Rankers without seeds are one model, and networks are the mean of several as they come.
    assert Cascade(second="rankboost", n_seeds=3)._seeds_of_kept() == 1
    assert Cascade(second="listnet", n_seeds=5)._seeds_of_kept() == 1
    with pytest.raises(ParameterError, match="n_seeds"):
        Cascade(n_seeds=0).fit(make_data(1))
