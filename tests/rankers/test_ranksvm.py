"""RankSVM, the estimator: what it learns, what it keeps, and what it refuses."""

from __future__ import annotations

import itertools
import logging
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import rankwell
from rankwell.data.dataset import RankingDataset
from rankwell.data.synthetic import make_ranking
from rankwell.errors import ConvergenceWarning, DataError, ParameterError
from rankwell.rankers.regularisation_path import TrainingOutcome, check_Cs, default_Cs, follow_path
from rankwell.scoring.normaliser import fit_normaliser

# Most of these tests check the optimum of equation 1 for a given C, not the defaults.
RankSVM = partial(rankwell.RankSVM, C=1.0, normalize="standard")


@pytest.fixture(scope="module")
def collection():
    """Sixty queries, forty to learn from and twenty to validate on."""
    whole = make_ranking(n_docs=2400, n_queries=60, n_features=12, random_state=4)
    return whole.subset(range(40)), whole.subset(range(40, 60))


@pytest.fixture(scope="module")
def fitted(collection):
    train, validation = collection
    return RankSVM(C=0.01, device="cpu").fit(train, eval_set=validation)


def bytes_of(ranker, folder):
    ranker.save(folder / "model.ranker")
    return (folder / "model.ranker").read_bytes()


def objective_by_pairs(weights, dataset, C):
    """Equation 1 written out, float64."""
    scores = dataset.dense_features().astype(np.float64) @ weights
    total = 0.5 * weights @ weights
    for rows in dataset.queries():
        score, label = scores[rows], dataset.labels[rows]
        better, worse = np.nonzero(label[:, None] > label[None, :])
        total += C * (np.maximum(0, 1 - (score[better] - score[worse])) ** 2).sum()
    return total


class TestWhatItLearns:
    def test_one_pair_by_hand(self):
        """x_a − x_b = 2: ½w² + C(1 − 2w)² has its minimum at w = 4C/(1 + 8C), for C = 1/2 at w = 2/5."""
        ranker = RankSVM(C=0.5, normalize="none", tol=1e-12, device="cpu").fit([[3.0], [1.0]], [1, 0])
        assert ranker.weights_[0] == pytest.approx(2 / 5, rel=1e-12)
        np.testing.assert_allclose(ranker.predict([[3.0], [1.0], [np.nan]]), [6 / 5, 2 / 5, 0], rtol=1e-12)
        assert ranker.history_["objective"][-1] == pytest.approx(0.5 * 0.16 + 0.5 * (1 - 0.8) ** 2)

    def test_three_levels_by_hand(self):
        """Scores w·(0, 1, 2), labels in order: margins w, w, 2w. Below w = 1/2 all three lose:
        w = 2C(1·(1 − w)·2 + 2·(1 − 2w)), for C = 1/10: w(1 + 12C) = 8C, w = 0.8/2.2 = 4/11."""
        ranker = RankSVM(C=0.1, normalize="none", tol=1e-12, device="cpu").fit([[0.0], [1.0], [2.0]], [0, 1, 2])
        assert ranker.weights_[0] == pytest.approx(4 / 11, rel=1e-12)

    def test_no_small_step_from_the_solution_is_better(self, collection):
        train, _ = collection
        ranker = RankSVM(C=0.01, normalize="none", tol=1e-10, device="cpu").fit(train)
        least = objective_by_pairs(ranker.weights_, train, 0.01)
        assert ranker.history_["objective"][-1] == pytest.approx(least, rel=1e-10)
        generator = np.random.default_rng(0)
        for _ in range(20):
            step = 1e-2 * np.abs(ranker.weights_) * generator.normal(size=12)
            assert objective_by_pairs(ranker.weights_ + step, train, 0.01) > least

    def test_it_ranks_better_than_any_single_feature(self, collection, fitted):
        _, validation = collection
        best = max(
            rankwell.evaluate(validation, sign * validation.features[:, j], metrics="ndcg@10").mean["ndcg@10"]
            for j in range(12)
            for sign in (1, -1)
        )
        assert fitted.score(validation) > best

    @pytest.mark.parametrize("method", ["direct", "order-statistic"])
    def test_both_methods_lead_to_the_same_model(self, collection, method):
        train, _ = collection
        one = RankSVM(C=0.01, device="cpu", method="auto").fit(train)
        other = RankSVM(C=0.01, device="cpu", method=method).fit(train)
        assert other.method_ == method
        np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-7)

    def test_auto_says_what_it_picked(self, caplog):
        generator = np.random.default_rng(0)
        with caplog.at_level(logging.INFO, logger="rankwell"):
            few = RankSVM(device="cpu").fit(generator.normal(size=(40, 2)), np.arange(40) % 2)
            many = RankSVM(device="cpu").fit(generator.normal(size=(3000, 2)), np.arange(3000))
        assert (few.method_, many.method_) == ("direct", "order-statistic")
        assert "picked direct" in caplog.text
        assert "picked order-statistic" in caplog.text

    def test_standardising_costs_no_copy_and_changes_nothing(self, collection):
        """Folded into the weights, or done before: the same model."""
        train, validation = collection
        folded = RankSVM(C=0.01, tol=1e-8, device="cpu").fit(train)
        features = fit_normaliser("standard", train).apply(train)
        before = RankSVM(C=0.01, tol=1e-8, normalize="none", device="cpu").fit(train.replace(features=features))
        np.testing.assert_allclose(folded.weights_, before.weights_, rtol=1e-4)
        normalised = fit_normaliser("standard", train).apply(validation)
        np.testing.assert_allclose(
            folded.predict(validation), before.predict(validation.replace(features=normalised)), rtol=1e-3, atol=1e-5
        )

    def test_sparse_and_dense_lead_to_the_same_model(self):
        generator = np.random.default_rng(1)
        features = sparse.random(200, 30, 0.1, "csr", np.float32, random_state=1)
        labels, group = generator.integers(0, 3, 200), [50] * 4
        one = RankSVM(normalize="none", tol=1e-9, device="cpu").fit(features, labels, group=group)
        two = RankSVM(normalize="none", tol=1e-9, device="cpu").fit(features.toarray(), labels, group=group)
        np.testing.assert_allclose(one.weights_, two.weights_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(one.predict(features), two.predict(features.toarray()), rtol=1e-6, atol=1e-8)

    def test_wide_sparse_features(self):
        """As text has them: 100,000 features, of which a document has ten."""
        generator = np.random.default_rng(5)
        features = sparse.random(300, 100_000, 1e-4, "csr", np.float32, random_state=5)
        labels = generator.integers(0, 3, 300)
        ranker = RankSVM(normalize="none", device="cpu").fit(features, labels, group=[100] * 3)
        assert ranker.converged_
        unseen = np.asarray(features.sum(axis=0)).ravel() == 0
        np.testing.assert_array_equal(ranker.weights_[unseen], 0.0)
        np.testing.assert_allclose(ranker.predict(features), features @ ranker.weights_, rtol=1e-9, atol=1e-12)
        assert (
            rankwell.evaluate(labels, ranker.predict(features), metrics="ndcg@10", group=[100] * 3).mean["ndcg@10"]
            > 0.9
        )

    @pytest.mark.parametrize("normalize", ["query-minmax", "letor"])
    def test_normalising_by_query(self, collection, normalize):
        train, validation = collection
        ranker = RankSVM(C=0.01, normalize=normalize, device="cpu").fit(train)
        assert ranker.score(validation) > 0.3

    @pytest.mark.parametrize("weight", ["queries", "documents"])
    def test_weight_two_is_the_same_as_twice(self, collection, weight):
        train, _ = collection
        part = train.subset(range(6))
        if weight == "queries":
            weighted = part.replace(query_weights=[2.0, 1, 1, 1, 1, 1])
            repeated = part.subset([0, 0, 1, 2, 3, 4, 5])
        else:
            rows = np.r_[0, np.arange(part.n_docs)]
            sizes = part.query_sizes + np.array([1, 0, 0, 0, 0, 0])
            weighted = part.replace(document_weights=np.r_[2.0, np.ones(part.n_docs - 1)])
            repeated = RankingDataset(part.features[rows], part.labels[rows], group=sizes)
        one, two = (
            RankSVM(C=0.01, normalize="none", tol=1e-9, device="cpu").fit(each) for each in (weighted, repeated)
        )
        np.testing.assert_allclose(one.weights_, two.weights_, rtol=1e-6)

    def test_sample_weight_reaches_the_loss(self, collection):
        train, _ = collection
        plain = RankSVM(C=0.01, device="cpu").fit(train)
        weighted = RankSVM(C=0.01, device="cpu").fit(train, sample_weight=np.arange(40.0))
        scaled = RankSVM(C=0.001, device="cpu").fit(train, sample_weight=np.full(40, 10.0))
        assert not np.allclose(plain.weights_, weighted.weights_, rtol=1e-3)
        np.testing.assert_allclose(plain.weights_, scaled.weights_, rtol=1e-9)

    def test_scores_do_not_depend_on_the_order_of_rows(self, collection, fitted):
        train, _ = collection
        shuffled = np.random.default_rng(0).permutation(train.n_docs)
        other = RankSVM(C=0.01, device="cpu").fit(
            train.features[shuffled], train.labels[shuffled], qid=train.query_of_rows()[shuffled]
        )
        np.testing.assert_allclose(other.weights_, fitted.weights_, rtol=1e-4, atol=1e-7)


class TestStopping:
    def test_the_rule_of_equation_3(self, collection):
        train, _ = collection
        loose, tight = (RankSVM(C=0.01, tol=tol, device="cpu").fit(train) for tol in (1e-2, 1e-8))
        assert loose.history_["relative_gradient"][-1] <= 1e-2
        assert tight.history_["relative_gradient"][-1] <= 1e-8
        assert loose.history_["products"][-1] < tight.history_["products"][-1]
        assert loose.converged_
        assert tight.converged_

    def test_too_few_iterations_are_reported(self, collection):
        train, _ = collection
        with pytest.warns(ConvergenceWarning, match="Raise max_iter or tol"):
            ranker = RankSVM(C=0.01, max_iter=1, tol=1e-9, device="cpu").fit(train)
        assert not ranker.converged_

    def test_a_tolerance_below_rounding_is_reported(self, collection):
        train, _ = collection
        with pytest.warns(ConvergenceWarning, match="Raise tol"):
            RankSVM(C=0.01, tol=1e-300, device="cpu").fit(train)

    def test_early_stopping_keeps_the_best_iteration(self, collection):
        train, validation = collection
        ranker = RankSVM(C=10.0, early_stopping_rounds=1, tol=1e-9, device="cpu").fit(train, eval_set=validation)
        metric = ranker.history_["validation ndcg@10"]
        assert ranker.score(validation) == pytest.approx(max(metric), abs=1e-9)
        assert metric[-1] <= max(metric[:-1], default=-1)

    def test_early_stopping_needs_something_to_watch(self, collection):
        with pytest.raises(DataError, match="needs a validation set"):
            RankSVM(early_stopping_rounds=2).fit(collection[0])

    def test_progress(self, collection):
        train, validation = collection
        steps = []
        ranker = RankSVM(C=0.01, device="cpu").fit(train, eval_set=validation, callback=steps.append)
        assert [step.number for step in steps] == list(range(1, len(steps) + 1))
        assert all(step.total == 1000 for step in steps)
        assert steps[-1].values["relative_gradient"] <= 1e-5
        assert steps[-1].values["objective"] == ranker.history_["objective"][-1]
        assert set(steps[0].values) == set(ranker.history_)

    def test_eta_is_the_distance_from_the_optimum(self, collection):
        """Equation 15 against the objective of a much longer run."""
        train, _ = collection
        best = RankSVM(C=0.01, tol=1e-10, device="cpu").fit(train).history_["objective"][-1]
        history = RankSVM(C=0.01, device="cpu").fit(train).history_
        for value, eta in list(zip(history["objective"], history["eta"], strict=True))[:-2]:
            assert eta == pytest.approx((value - best) / best, rel=0.2)


class TestPath:
    def test_warm_starts_reach_the_same_points(self, collection):
        train, validation = collection
        Cs = [1e-4, 1e-3, 1e-2]
        ranker = RankSVM(tol=1e-8, device="cpu")
        path = ranker.path(train, validation, Cs)
        assert [point.C for point in path.points] == Cs
        for point in path.points:
            alone = RankSVM(C=point.C, tol=1e-8, device="cpu").fit(train)
            assert point.objective == pytest.approx(alone.history_["objective"][-1], rel=1e-8)
            assert point.validation == pytest.approx(alone.score(validation), abs=1e-6)
        assert ranker.C_ == path.best.C
        assert ranker.path_ is path
        assert path.best.validation == max(point.validation for point in path.points)
        np.testing.assert_allclose(ranker.weights_, path.best.outcome.weights)

    def test_a_warm_start_saves_products(self, collection):
        train, validation = collection
        path = RankSVM(device="cpu").path(train, validation, [1.0, 1.1])
        alone = RankSVM(C=1.1, device="cpu").fit(train)
        assert path.points[1].n_products < alone.history_["products"][-1]

    def test_a_callback_that_returns_true_ends_the_path(self, collection):
        train, validation = collection
        ranker = RankSVM(tol=1e-8, device="cpu")
        seen = []

        def stop(step):
            seen.append(step.number)
            return seen.count(1) == 2

        path = ranker.path(train, validation, [1e-4, 1e-3, 1e-2], callback=stop)
        assert [point.C for point in path.points] == [1e-4, 1e-3]
        assert path.points[1].n_iterations == 1
        assert ranker.best_iteration_ is None

    def test_auto_without_a_validation_set_is_relative_to_the_pairs(self, collection):
        train, _ = collection
        n_pairs = sum((train.labels[rows][:, None] > train.labels[rows][None, :]).sum() for rows in train.queries())
        ranker = rankwell.RankSVM(device="cpu").fit(train)
        assert pytest.approx(10 / n_pairs, rel=1e-15) == ranker.C_
        assert ranker.converged_
        # Every query twice is twice the loss at half the C.
        doubled = rankwell.RankSVM(device="cpu").fit(train, sample_weight=np.full(train.n_queries, 2.0))
        assert doubled.C_ == ranker.C_ / 2
        np.testing.assert_allclose(doubled.weights_, ranker.weights_, rtol=1e-3)

    def test_validation_data_chooses_C_without_being_told(self, collection):
        train, validation = collection
        ranker = rankwell.RankSVM(device="cpu").fit(train, eval_set=validation)
        assert ranker.C_ == ranker.path_.best.C
        assert len(ranker.path_.points) == 8

    @pytest.mark.parametrize(("best", "n_points"), [(2, 8), (6, 8), (7, 9), (10, 12), (12, 13)])
    def test_the_default_path_goes_on_while_the_last_C_is_the_best(self, best, n_points):
        """Figures rise up to place `best` of thirteen, counted from 0, and fall after it."""
        result = SimpleNamespace(value=0.0, relative_gradient=0.0, n_iterations=1, n_products=1, stopped_by="tolerance")
        figures = iter([-abs(place - best) for place in range(13)])
        path = follow_path(
            lambda C, start: TrainingOutcome(np.zeros(1), result, {}),
            SimpleNamespace(measure=lambda scores: next(figures), metric="map", convention="letor4"),
            SimpleNamespace(under=lambda weights: weights),
            default_Cs(1000),
            to_the_end=False,
        )
        assert len(path.points) == n_points
        assert default_Cs(1000)[best] == path.best.C

    def test_a_path_needs_a_validation_set(self, collection):
        with pytest.raises(DataError, match="the path chooses C on a validation set: pass one"):
            rankwell.RankSVM().path(collection[0], None)

    def test_auto_keeps_the_best(self, collection):
        train, validation = collection
        ranker = RankSVM(C="auto", eval_metric="map", eval_convention="letor4", device="cpu").fit(
            train, eval_set=validation
        )
        assert ranker.C_ == ranker.path_.best.C
        reached = rankwell.evaluate(validation, ranker.predict(validation), metrics="map", convention="letor4").mean
        assert reached["map"] == pytest.approx(ranker.path_.best.validation, abs=1e-6)
        table = ranker.path_.table()
        assert "map (letor4)" in table
        assert table.count("*") == 1

    def test_the_path_is_kept_and_drawn(self, collection, tmp_path, caplog):
        train, validation = collection
        caplog.set_level(logging.INFO, logger="rankwell")
        ranker = RankSVM(C="auto", device="cpu").fit(train, eval_set=validation)
        best = ranker.path_.best
        assert f"C='auto' chose C={best.C:.6g} of 8 values by ndcg@10 (burges)" in caplog.text
        assert ranker.chosen_ == {"C": best.C}
        assert (ranker.best_iteration_, ranker.best_score_) == (None, best.validation)
        ranker.save(tmp_path / "model.rank")
        loaded = rankwell.load(tmp_path / "model.rank")
        assert loaded.chosen_ == {"C": best.C}
        assert loaded.path_.table() == ranker.path_.table()
        assert loaded.path_.best.outcome is None
        assert loaded.best_score_ == best.validation
        panel = loaded.plot_path(tmp_path / "path.png").axes[0]
        assert (tmp_path / "path.png").exists()
        assert panel.get_xlabel() == f"C (best: {best.C:.6g})"
        assert panel.lines[0].get_ydata().tolist() == [point.validation for point in ranker.path_.points]

    def test_without_a_choice_there_is_no_path(self, collection):
        train, validation = collection
        ranker = RankSVM(C="auto", device="cpu").fit(train, eval_set=validation)
        ranker.set_params(C=0.01).fit(train, eval_set=validation)
        assert not hasattr(ranker, "path_")
        assert ranker.chosen_ == {}
        assert ranker.best_score_ == max(ranker.history_["validation ndcg@10"])

    def test_default_values_suit_the_number_of_pairs(self):
        """C·pairs goes from 1 to 2²⁴ in steps of 4; 1024 pairs are 2¹⁰."""
        values = default_Cs(1024)
        assert values[0] == 2.0**-10
        assert values[-1] == 2.0**14
        assert all(later == 4 * earlier for earlier, later in itertools.pairwise(values))

    def test_values_are_put_in_order_and_checked(self):
        assert check_Cs([4, 1.0, 2, 2]) == (1.0, 2.0, 4.0)
        with pytest.raises(ParameterError, match="at least one"):
            check_Cs([])
        with pytest.raises(ParameterError, match=r"above 0, got -1\.0"):
            check_Cs([1, -1])


class TestWhatItKeeps:
    def test_file(self, fitted, collection, tmp_path):
        fitted.save(tmp_path / "model.ranker")
        loaded = rankwell.load(tmp_path / "model.ranker")
        assert isinstance(loaded, rankwell.RankSVM)
        assert loaded.get_params() == fitted.get_params()
        assert (loaded.C_, loaded.converged_) == (0.01, True)
        assert loaded.history_ == {name: values for name, values in fitted.history_.items() if name != "seconds"}
        np.testing.assert_array_equal(loaded.weights_, fitted.weights_)
        np.testing.assert_array_equal(loaded.predict(collection[1]), fitted.predict(collection[1]))

    def test_the_same_bytes_on_any_number_of_threads(self, collection, tmp_path):
        train, validation = collection
        models = [
            RankSVM(C=0.01, device="cpu", n_jobs=n_jobs).fit(train, eval_set=validation) for n_jobs in (1, 2, None)
        ]
        for model in models:
            model.n_jobs = None
        assert len({bytes_of(model, tmp_path) for model in models}) == 1

    def test_going_on_from_an_earlier_model(self, collection, fitted):
        train, _ = collection
        same = RankSVM(C=0.01, device="cpu").fit(train, init_model=fitted)
        assert same.history_["objective"] == []
        np.testing.assert_array_equal(same.weights_, fitted.weights_)
        near = RankSVM(C=0.011, device="cpu").fit(train, init_model=fitted)
        fresh = RankSVM(C=0.011, device="cpu").fit(train)
        assert near.history_["products"][-1] < fresh.history_["products"][-1]
        np.testing.assert_allclose(near.weights_, fresh.weights_, rtol=1e-2, atol=1e-4)

    def test_clone_and_repr(self, fitted):
        copy = clone(fitted)
        assert copy.get_params() == fitted.get_params()
        assert "C=0.01" in repr(copy)

    def test_plot(self, fitted, tmp_path):
        figure = fitted.plot_history(tmp_path / "history.png")
        assert (tmp_path / "history.png").stat().st_size > 1000
        assert len(figure.axes) == 5


class TestBadInput:
    @pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf, "large", None, True])
    def test_c(self, C):
        with pytest.raises(ParameterError, match="C must be a finite number above 0, or 'auto', got"):
            RankSVM(C=C).fit([[1.0], [2.0]], [0, 1])

    @pytest.mark.parametrize("tol", [0, 1, -1e-3, np.nan, "small"])
    def test_tol(self, tol):
        with pytest.raises(ParameterError, match="tol must be between 0 and 1"):
            RankSVM(tol=tol).fit([[1.0], [2.0]], [0, 1])

    def test_max_iter(self):
        with pytest.raises(ParameterError, match="max_iter must be 1 or more, got 0"):
            RankSVM(max_iter=0).fit([[1.0], [2.0]], [0, 1])

    def test_method(self):
        with pytest.raises(ParameterError, match="'auto', 'direct', 'order-statistic', got 'tree'"):
            RankSVM(method="tree").fit([[1.0], [2.0]], [0, 1])

    def test_device(self):
        with pytest.raises(ParameterError, match="device must be one of 'auto', 'cpu', 'cuda', got 'opencl'"):
            RankSVM(device="opencl").fit([[1.0], [2.0]], [0, 1])

    @pytest.mark.parametrize("C", [1.0, "auto"])
    def test_one_label_level_everywhere(self, C):
        features = np.arange(8.0).reshape(4, 2)
        with pytest.raises(DataError, match="within every query all labels are equal"):
            RankSVM(C=C).fit(features, [1, 1, 0, 0], group=[2, 2], eval_set=RankingDataset(features, [0, 1, 0, 1]))

    def test_every_weight_zero(self):
        with pytest.raises(DataError, match="nothing to learn from"):
            RankSVM().fit([[1.0], [2.0]], [0, 1], sample_weight=[0.0, 0.0])

    def test_missing_values_count_as_the_mean(self, collection):
        """0 after standardisation is the mean before it: the defined answer, and the caller's data stays as it was."""
        train, _ = collection
        features = train.features.copy()
        features[::5, 3] = np.nan
        kept = features.copy()
        filled = features.copy()
        filled[::5, 3] = np.nanmean(features[:, 3].astype(np.float64))
        normaliser = fit_normaliser("standard", train.replace(features=features))
        one = RankSVM(C=0.01, device="cpu").fit(train.replace(features=features))
        np.testing.assert_array_equal(features, kept)
        two = RankSVM(C=0.01, normalize="none", device="cpu").fit(
            train.replace(features=np.nan_to_num(normaliser.apply(train.replace(features=features))))
        )
        np.testing.assert_allclose(one.weights_, two.weights_, rtol=1e-3, atol=1e-6)
        assert np.isfinite(one.predict(features, group=train.query_sizes)).all()

    def test_missing_values_without_normaliser_count_as_zero(self):
        features = np.array([[np.nan, 1.0], [1.0, 0.0], [2.0, np.nan]])
        one = RankSVM(normalize="none", tol=1e-9, device="cpu").fit(features, [0, 1, 2])
        two = RankSVM(normalize="none", tol=1e-9, device="cpu").fit(np.nan_to_num(features), [0, 1, 2])
        np.testing.assert_array_equal(one.weights_, two.weights_)

    def test_missing_values_in_sparse_features(self):
        features = sparse.csr_matrix(np.array([[np.nan, 1.0], [1.0, 0.0], [2.0, 0.5]], dtype=np.float32))
        ranker = RankSVM(normalize="none", device="cpu").fit(features, [0, 1, 2])
        assert np.isfinite(ranker.weights_).all()

    @pytest.mark.parametrize("normalize", ["standard", "none"])
    def test_constant_features_get_weight_zero(self, normalize):
        generator = np.random.default_rng(2)
        features = np.c_[np.full(30, 7.5), generator.normal(size=30)]
        ranker = RankSVM(normalize=normalize, device="cpu").fit(features, np.arange(30) % 3)
        assert ranker.weights_[0] == pytest.approx(0.0, abs=1e-9)
        assert ranker.weights_[1] != 0

    def test_sparse_features_are_not_standardised(self):
        features = sparse.random(20, 5, 0.5, "csr", np.float32, random_state=0)
        with pytest.raises(DataError, match="use normalize='none'"):
            RankSVM().fit(features, np.arange(20) % 2)

    def test_badly_scaled_features(self):
        """Features from 1e-4 to 1e6 in size need few products, standardised or (by the preconditioner) as they are."""
        generator = np.random.default_rng(3)
        features = generator.normal(size=(300, 6)) * np.geomspace(1e-4, 1e6, 6)
        labels = np.digitize(features @ (1 / np.geomspace(1e-4, 1e6, 6)) + generator.normal(size=300), [0, 2])
        for normalize in ("standard", "none"):
            ranker = RankSVM(C=0.01, normalize=normalize, device="cpu").fit(features, labels, group=[100] * 3)
            assert ranker.converged_
            assert ranker.history_["products"][-1] < 60
