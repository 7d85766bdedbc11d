"""RankBoost, the estimator: what it learns, what it keeps, and what it refuses."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import rankwell
from rankwell.data.dataset import RankingDataset
from rankwell.data.synthetic import make_ranking
from rankwell.errors import DataError, ParameterError
from rankwell.kernels.device_report import report_device

# The papers' algorithm, which most of these tests check, instead of the defaults.
PAPER = {"learning_rate": 1.0, "pair_weight": "pairs", "normalize": "none", "early_stopping_rounds": None}
RankBoost = partial(rankwell.RankBoost, n_rounds=300, **PAPER)


@pytest.fixture(scope="module")
def collection():
    """Sixty queries, forty to learn from and twenty to validate on."""
    whole = make_ranking(n_docs=2400, n_queries=60, n_features=12, missing=0.1, random_state=4)
    return whole.subset(range(40)), whole.subset(range(40, 60))


@pytest.fixture(scope="module")
def fitted(collection):
    train, validation = collection
    return RankBoost(n_rounds=40).fit(train, eval_set=validation)


def bytes_of(ranker, folder, name="model.ranker"):
    ranker.save(folder / name)
    return (folder / name).read_bytes()


def rounds_of(ranker):
    rankers = ranker.weak_rankers_
    return list(zip(rankers.feature.tolist(), rankers.threshold.tolist(), rankers.r.tolist(), strict=True))


class TestWhatItLearns:
    def test_one_round_by_hand(self):
        """Labels 1, 0, 0 and feature 2, 2, 1: both pairs weigh 1/2, so π = (1, −1/2, −1/2) and r(x > 1.5) = 1/2."""
        ranker = RankBoost(n_rounds=1, n_bins=3).fit(np.array([[2.0], [2.0], [1.0]]), [1, 0, 0])
        rankers = ranker.weak_rankers_
        assert rankers.feature.tolist() == [0]
        assert 1.0 <= rankers.threshold[0] < 2.0
        assert rankers.r[0] == 2**29
        alpha = 0.5 * np.log((1 + 0.5) / (1 - 0.5))
        assert rankers.alpha[0] == pytest.approx(alpha, rel=1e-15)
        np.testing.assert_allclose(ranker.predict([[2.0], [1.0], [np.nan]]), [alpha, 0, 0], rtol=1e-15)
        # D after the round: e^α − e^α for the first pair, so 1/2; e^−α for the second.
        assert ranker.history_["loss"] == [pytest.approx(0.5 + 0.5 * np.exp(-alpha))]

    def test_a_feature_that_is_low_for_good_documents_counts_against(self):
        ranker = RankBoost(n_rounds=1).fit(np.array([[1.0], [2.0], [2.0], [1.0]]), [1, 0, 1, 0])
        assert len(ranker.weak_rankers_) == 0
        ranker = RankBoost(n_rounds=1).fit(np.array([[1.0], [2.0], [2.0], [2.0]]), [1, 0, 1, 0])
        assert ranker.weak_rankers_.alpha[0] < 0

    def test_it_ranks_better_than_chance(self, collection, fitted):
        train, validation = collection
        blind = rankwell.evaluate(validation, np.zeros(validation.n_docs), metrics=("ndcg@10",)).mean["ndcg@10"]
        assert fitted.history_["validation ndcg@10"][-1] > blind + 0.1
        assert fitted.score(train) > blind + 0.1

    def test_loss_falls_every_round(self, fitted):
        loss = np.array([1.0, *fitted.history_["loss"]])
        assert (np.diff(loss) < 0).all()

    def test_whether_a_value_is_there_can_be_what_counts(self):
        X = np.array([[5.0], [np.nan], [7.0], [np.nan]])
        ranker = RankBoost(n_rounds=5).fit(X, [1, 0, 1, 0])
        assert ranker.weak_rankers_.threshold.tolist() == [-np.inf]
        scores = ranker.predict([[-100.0], [np.nan]])
        assert scores[0] > 0
        assert scores[1] == 0

    def test_order_of_documents_and_queries_does_not_matter(self, collection):
        train = collection[0]
        shuffle = np.random.default_rng(0).permutation(train.n_docs)
        qid = train.qid_of_rows()
        shuffled = RankingDataset(train.features[shuffle], train.labels[shuffle], qid=qid[shuffle])
        one, other = (RankBoost(n_rounds=30).fit(dataset).weak_rankers_ for dataset in (train, shuffled))
        np.testing.assert_array_equal(one.feature, other.feature)
        np.testing.assert_array_equal(one.threshold, other.threshold)
        np.testing.assert_allclose(one.alpha, other.alpha, atol=1e-6)

    def test_a_querys_weight_of_two_is_the_query_twice(self, collection):
        train = collection[0].subset(range(10))
        twice = train.subset([*range(10), 3, 7])
        weights = np.ones(10)
        weights[[3, 7]] = 2
        weighted = RankBoost(n_rounds=20, n_bins=32).fit(train, sample_weight=weights).weak_rankers_
        repeated = RankBoost(n_rounds=20, n_bins=32).fit(twice).weak_rankers_
        np.testing.assert_array_equal(weighted.feature, repeated.feature)
        np.testing.assert_allclose(weighted.alpha, repeated.alpha, atol=1e-6)

    def test_a_documents_weight_of_two_is_the_document_twice(self, collection):
        train = collection[0].subset(range(8))
        rows = np.sort(np.concatenate((np.arange(train.n_docs), [5, 50, 100])))
        twice = RankingDataset(train.features[rows], train.labels[rows], qid=train.qid_of_rows()[rows])
        weights = np.bincount(rows).astype(float)
        weighted = RankBoost(n_rounds=20, n_bins=32).fit(train, sample_weight=weights).weak_rankers_
        repeated = RankBoost(n_rounds=20, n_bins=32).fit(twice).weak_rankers_
        np.testing.assert_array_equal(weighted.feature, repeated.feature)
        np.testing.assert_allclose(weighted.alpha, repeated.alpha, atol=1e-6)

    @pytest.mark.parametrize("binning", ["width", "quantile"])
    @pytest.mark.parametrize("pair_weight", ["pairs", "queries", "difference", "gain"])
    def test_every_weak_learner_chooses_the_same(self, collection, binning, pair_weight):
        train = collection[0].subset(range(12))
        fits = [
            RankBoost(n_rounds=25, n_bins=24, binning=binning, pair_weight=pair_weight, weak_learner=kind).fit(train)
            for kind in ("m3.int", "m3", "m2.2dint", "m2")
        ]
        chosen = [[(feature, threshold) for feature, threshold, _ in rounds_of(ranker)] for ranker in fits]
        assert chosen[0] == chosen[1] == chosen[2] == chosen[3]
        assert len(chosen[0]) == 25

    def test_sparse_features_are_learned_from_as_dense_ones(self, collection):
        from scipy import sparse

        train = collection[0]
        dense = np.nan_to_num(train.features)
        qid = train.qid_of_rows()
        one = RankBoost(n_rounds=10).fit(dense, train.labels, qid=qid)
        other = RankBoost(n_rounds=10).fit(sparse.csr_matrix(dense), train.labels, qid=qid)
        assert rounds_of(one) == rounds_of(other)


class TestWhenItEnds:
    def test_a_weak_ranker_that_orders_every_pair_ends_training(self):
        X = np.array([[1.0, 0.3], [2.0, 0.1], [1.0, 0.2], [3.0, 0.2]])
        ranker = RankBoost(n_rounds=100).fit(X, [0, 1, 0, 1], group=[2, 2])
        assert len(ranker.weak_rankers_) == 1
        assert ranker.weak_rankers_.alpha[0] == pytest.approx(7.28, abs=0.01)
        assert ranker.rank(X, group=[2, 2])[1].tolist() == [3, 2]

    def test_no_weak_ranker_that_helps_leaves_all_scores_equal(self):
        """Two queries that contradict each other: r = 0 for every threshold."""
        ranker = RankBoost(n_rounds=100).fit([[1.0], [0.0], [0.0], [1.0]], [1, 0, 1, 0], group=[2, 2])
        assert len(ranker.weak_rankers_) == 0
        assert ranker.history_["loss"] == []
        np.testing.assert_array_equal(ranker.predict([[1.0], [0.0]], group=[2]), 0)

    def test_converged_training_ends(self):
        """One feature, two contradicting pairs and one that agrees: r is driven to 0."""
        X = np.array([[1.0], [0.0], [0.0], [1.0], [1.0], [0.0]])
        ranker = RankBoost(n_rounds=10_000).fit(X, [1, 0, 1, 0, 1, 0], group=[2, 2, 2])
        assert len(ranker.weak_rankers_) < 10_000
        # Σ over pairs of e^−H and e^H: the best H has e^2H = 2.
        assert ranker.predict([[1.0]])[0] == pytest.approx(0.5 * np.log(2), abs=1e-6)

    def test_early_stopping_keeps_the_best_rounds(self, collection):
        train, validation = collection
        ranker = RankBoost(n_rounds=400, early_stopping_rounds=15).fit(train, eval_set=validation)
        values = ranker.history_["validation ndcg@10"]
        best = int(np.argmax(values)) + 1
        assert len(ranker.weak_rankers_) == best
        assert len(values) == best + 15
        found = rankwell.evaluate(validation, ranker.predict(validation), metrics=("ndcg@10",)).mean["ndcg@10"]
        assert found == pytest.approx(values[best - 1], abs=1e-12)

    def test_a_run_that_ended_by_itself_leaves_no_checkpoint(self, tmp_path):
        path = tmp_path / "run.checkpoint"
        X = np.array([[1.0], [2.0]])
        ranker = RankBoost(n_rounds=9, checkpoint=str(path), checkpoint_every=1).fit(X, [0, 1])
        assert len(ranker.weak_rankers_) == 1
        assert not path.exists()

    def test_callback_sees_every_round(self, collection):
        train, validation = collection
        steps = []
        ranker = RankBoost(n_rounds=70).fit(train, eval_set=validation, callback=steps.append)
        assert [step.number for step in steps] == list(range(1, 71))
        assert {step.total for step in steps} == {70}
        assert [step.values["loss"] for step in steps] == ranker.history_["loss"]

    def test_callback_can_end_training(self, collection):
        train = collection[0]
        ranker = RankBoost(n_rounds=400).fit(train, callback=lambda step: step.number == 23)
        assert rounds_of(ranker) == rounds_of(RankBoost(n_rounds=23).fit(train))
        assert {len(values) for values in ranker.history_.values()} == {23}

    def test_the_model_does_not_depend_on_the_batches(self, collection, monkeypatch):
        train, validation = collection
        options = {"n_rounds": 400, "early_stopping_rounds": 15}
        one, other = RankBoost(**options), RankBoost(**options)
        one.fit(train, eval_set=validation)
        monkeypatch.setattr("rankwell.rankers.training_run._MOST_STEPS_PER_BATCH", 3)
        other.fit(train, eval_set=validation)
        assert rounds_of(one) == rounds_of(other)
        for ranker in (one, other):
            del ranker.history_["seconds"]
        assert one.history_ == other.history_


class TestDefaults:
    """What `RankBoost()` does without being told."""

    def test_validation_data_chooses_the_rounds(self, collection):
        train, validation = collection
        ranker = rankwell.RankBoost(n_rounds=120).fit(train, eval_set=validation)
        assert len(ranker.weak_rankers_) == ranker.best_iteration_ < 120
        assert ranker.best_score_ == max(ranker.history_["validation ndcg@10"])
        whole = rankwell.RankBoost(n_rounds=120, early_stopping_rounds=None).fit(train, eval_set=validation)
        assert len(whole.weak_rankers_) == 120

    def test_rounds(self, collection):
        train, validation = collection
        assert len(rankwell.RankBoost().fit(train).history_["loss"]) == 300
        watched = rankwell.RankBoost().fit(train, eval_set=validation)
        assert watched.best_iteration_ + 200 == len(watched.history_["loss"]) < 2000

    def test_a_round_takes_a_quarter_of_alpha(self, collection):
        ranker = rankwell.RankBoost(n_rounds=1).fit(collection[0])
        rankers = ranker.weak_rankers_
        assert rankers.alpha.tolist() == [np.arctanh(rankers.r[0] / 2**30) / 4]
        assert set(ranker.predict(collection[0])) == {0.0, rankers.alpha[0]}

    @pytest.mark.parametrize("rate", [0.3, 0, 2, -0.5, 2**-11, "fast", True, np.nan])
    def test_a_learning_rate_is_a_power_of_two(self, rate):
        with pytest.raises(ParameterError, match=r"learning_rate must be a power of two from 1 down to 2\^-10"):
            rankwell.RankBoost(learning_rate=rate).fit(np.zeros((2, 1)), [0, 1])

    def test_training_continues_at_another_learning_rate(self, collection, tmp_path):
        train = collection[0]
        first = rankwell.RankBoost(n_rounds=5, learning_rate=0.5).fit(train)
        second = rankwell.RankBoost(n_rounds=4, learning_rate=0.125).fit(train, init_model=first)
        assert second.weak_rankers_.n_halvings.tolist() == [1] * 5 + [3] * 4
        first.save(tmp_path / "five.ranker")
        again = rankwell.RankBoost(n_rounds=4, learning_rate=0.125).fit(train, init_model=tmp_path / "five.ranker")
        assert rounds_of(again) == rounds_of(second)

    def test_pairs_weighed_by_what_they_decide_of_ndcg(self):
        """Query 0 has labels 0, 2 (ideal DCG 3), query 1 has 0, 1, 1 (ideal 1 + 1/log2 3)."""
        labels, group = [0, 2, 0, 1, 1], [2, 3]
        weight = np.array([3 / 3, 1 / (1 + 1 / np.log2(3))])
        weight /= weight[0] + 2 * weight[1]
        X = np.zeros((5, 2))
        X[1, 0] = X[3, 1] = 1  # feature 0 orders query 0's pair, feature 1 one of query 1's two
        for feature, expected in ((0, weight[0]), (1, weight[1])):
            ranker = RankBoost(n_rounds=1, pair_weight="gain").fit(X[:, [feature]], labels, group=group)
            assert ranker.weak_rankers_.r[0] / 2**30 == pytest.approx(expected, abs=1e-8)

    def test_gains_of_labels_that_are_not_grades_are_refused(self):
        with pytest.raises(DataError, match=r"labels of at most 60, got 1200. Use pair_weight='difference'"):
            RankBoost(pair_weight="gain").fit(np.arange(4.0)[:, None], [0, 1200, 3, 1])


class TestWeightsByRank:
    def test_the_sixth_round_weighs_pairs_by_the_ranks_after_five(self, collection):
        train = collection[0].subset(range(6))
        ranker = RankBoost(n_rounds=6, pair_weight="ndcg").fit(train)
        scores = ranker.predict(train, n_rounds=5)
        potentials, total = np.zeros(train.n_docs), 0.0
        for rows in train.queries():
            score, gain = scores[rows], 2.0 ** train.labels[rows]
            rank = np.empty(len(score))
            # Equal scores are ranked by label, the lowest first, as the documents are sorted for the kernels.
            rank[np.lexsort((train.labels[rows], -np.round(score, 9)))] = np.arange(1, len(score) + 1)
            discount = 1 / np.log2(rank + 1)
            difference = np.maximum(gain[None, :] - gain[:, None], 0)  # of the lower row and the higher column
            weight = difference / difference.sum() * np.sqrt(discount[:, None] * discount[None, :])
            weight = weight * np.exp(score[:, None] - score[None, :])
            potentials[rows] = weight.sum(axis=0) - weight.sum(axis=1)
            total += weight.sum()
        sixth = ranker.weak_rankers_.above_threshold(train, 5)
        assert ranker.weak_rankers_.r[5] / 2**30 == pytest.approx(potentials[sixth].sum() / total, abs=1e-6)

    def test_every_way_to_train_gives_the_same(self, collection):
        train = collection[0]
        options = {"n_rounds": 43, "pair_weight": "ndcg", "learning_rate": 0.25}
        whole = RankBoost(**options).fit(train)
        assert rounds_of(whole) != rounds_of(RankBoost(**{**options, "pair_weight": "gain"}).fit(train))
        assert rounds_of(RankBoost(**options, n_jobs=1).fit(train)) == rounds_of(whole)
        assert rounds_of(RankBoost(**options, weak_learner="m3").fit(train)) == rounds_of(whole)
        first = RankBoost(**{**options, "n_rounds": 18}).fit(train)
        second = RankBoost(**{**options, "n_rounds": 25}).fit(train, init_model=first)
        assert rounds_of(second) == rounds_of(whole)

    @pytest.mark.parametrize("device", ["cuda", "opencl"])
    def test_other_devices_refuse(self, collection, device):
        with pytest.raises(
            ParameterError, match=rf"device='{device}' cannot train .* with pair_weight='ndcg'; allowed"
        ):
            RankBoost(pair_weight="ndcg", device=device).fit(collection[0])

    def test_pairwise_weak_learners_refuse(self, collection):
        with pytest.raises(ParameterError, match=r"weak_learner must be 'm3\.int' or 'm3' if pairs"):
            RankBoost(pair_weight="ndcg", weak_learner="m2").fit(collection[0])


class TestWhatItKeeps:
    def test_file_round_trip(self, fitted, collection, tmp_path):
        content = bytes_of(fitted, tmp_path)
        again = rankwell.load(tmp_path / "model.ranker")
        assert isinstance(again, rankwell.RankBoost)
        assert rounds_of(again) == rounds_of(fitted)
        np.testing.assert_array_equal(again.predict(collection[1]), fitted.predict(collection[1]))
        assert bytes_of(again, tmp_path, "again.ranker") == content

    def test_scores_are_the_sum_of_the_weak_rankers(self, fitted, collection):
        features = collection[1].features
        expected = np.zeros(len(features))
        for feature, threshold, r in rounds_of(fitted):
            expected += np.arctanh(r / 2**30) * (features[:, feature] > np.float32(threshold))
        np.testing.assert_allclose(fitted.predict(collection[1]), expected, rtol=1e-12, atol=1e-13)

    def test_staged_scores(self, fitted, collection):
        stages = list(fitted.staged_predict(collection[1]))
        assert len(stages) == 40
        for n_rounds in (1, 7, 40):
            scores = fitted.predict(collection[1], n_rounds=n_rounds)
            np.testing.assert_allclose(stages[n_rounds - 1], scores, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(fitted.predict(collection[1], n_rounds=0), 0)

    def test_staged_scores_come_in_the_users_order(self, fitted, collection):
        rows = collection[1].features
        qid = np.arange(len(rows)) % 7
        last = list(fitted.staged_predict(rows, qid=qid))[-1]
        np.testing.assert_allclose(last, fitted.predict(rows), rtol=1e-12, atol=1e-13)

    def test_feature_importance(self, fitted):
        expected = np.zeros(12)
        for feature, _, r in rounds_of(fitted):
            expected[feature] += abs(np.arctanh(r / 2**30))
        np.testing.assert_allclose(fitted.feature_importances_, expected)

    def test_history_plot(self, fitted, tmp_path):
        pytest.importorskip("matplotlib")
        figure = fitted.plot_history(tmp_path / "history.png")
        assert [panel.get_ylabel() for panel in figure.axes] == ["loss", "alpha", "validation ndcg@10"]
        assert (tmp_path / "history.png").stat().st_size > 1000

    def test_same_bytes_on_any_number_of_threads(self, collection, tmp_path):
        models = [RankBoost(n_rounds=40, n_jobs=n_jobs).fit(collection[0]).set_params(n_jobs=None) for n_jobs in (1, 2)]
        assert bytes_of(models[0], tmp_path) == bytes_of(models[1], tmp_path)

    def test_sklearn_conventions(self, collection):
        ranker = clone(RankBoost(n_rounds=3, pair_weight="queries"))
        assert ranker.get_params()["pair_weight"] == "queries"
        assert ranker.fit(collection[0]) is ranker


class TestWarmStart:
    def test_some_rounds_and_some_more_are_all_of_them(self, collection):
        whole = RankBoost(n_rounds=90).fit(collection[0])
        first = RankBoost(n_rounds=37).fit(collection[0])
        second = RankBoost(n_rounds=53).fit(collection[0], init_model=first)
        assert rounds_of(second) == rounds_of(whole)
        np.testing.assert_array_equal(second.predict(collection[1]), whole.predict(collection[1]))

    def test_from_a_file_and_with_validation(self, collection, tmp_path):
        train, validation = collection
        RankBoost(n_rounds=10).fit(train).save(tmp_path / "ten.ranker")
        ranker = RankBoost(n_rounds=5).fit(train, eval_set=validation, init_model=tmp_path / "ten.ranker")
        assert len(ranker.weak_rankers_) == 15
        found = rankwell.evaluate(validation, ranker.predict(validation), metrics=("ndcg@10",)).mean["ndcg@10"]
        assert ranker.history_["validation ndcg@10"][-1] == pytest.approx(found, abs=1e-12)

    @pytest.mark.parametrize("weak_learner", ["m3", "m2", "m2.2dint"])
    def test_with_every_weak_learner(self, collection, weak_learner):
        train = collection[0].subset(range(10))
        whole = RankBoost(n_rounds=12, n_bins=16, weak_learner=weak_learner).fit(train)
        first = RankBoost(n_rounds=5, n_bins=16, weak_learner=weak_learner).fit(train)
        second = RankBoost(n_rounds=7, n_bins=16, weak_learner=weak_learner).fit(train, init_model=first)
        assert rounds_of(second) == rounds_of(whole)


class KilledError(Exception):
    """Stands for the end of the process."""


class TestCheckpoints:
    def interrupt(self, ranker, train, validation, round_number):
        def kill(step):
            if step.number == round_number:
                raise KilledError

        with pytest.raises(KilledError):
            ranker.fit(train, eval_set=validation, callback=kill)

    def test_a_killed_run_ends_with_the_same_model(self, collection, tmp_path):
        train, validation = collection
        path = tmp_path / "run.checkpoint"
        options = {"n_rounds": 200, "checkpoint": str(path), "checkpoint_every": 20}
        whole = bytes_of(RankBoost(**options).fit(train, eval_set=validation), tmp_path)
        assert not path.exists()
        self.interrupt(RankBoost(**options), train, validation, 150)
        assert path.exists()
        seen = []
        resumed = RankBoost(**options).fit(train, eval_set=validation, callback=seen.append)
        assert seen[0].number == 141
        assert bytes_of(resumed, tmp_path) == whole
        assert not path.exists()

    def test_early_stopping_goes_on_counting(self, collection, tmp_path):
        train, validation = collection
        path = str(tmp_path / "run.checkpoint")
        options = {"n_rounds": 400, "early_stopping_rounds": 15, "checkpoint": path, "checkpoint_every": 1}
        whole = RankBoost(**options).fit(train, eval_set=validation)
        self.interrupt(RankBoost(**options), train, validation, len(whole.history_["loss"]))
        assert rounds_of(RankBoost(**options).fit(train, eval_set=validation)) == rounds_of(whole)

    def test_another_runs_checkpoint_is_refused(self, collection, tmp_path):
        train, validation = collection
        path = str(tmp_path / "run.checkpoint")
        self.interrupt(RankBoost(n_rounds=200, checkpoint=path, checkpoint_every=10), train, validation, 100)
        with pytest.raises(ParameterError, match="belongs to another run"):
            RankBoost(n_rounds=200, checkpoint=path, n_bins=64).fit(train, eval_set=validation)


class TestPairLists:
    def all_pairs(self, dataset):
        from rankwell.kernels.boosting.reference import pairs_of_labels

        lower, higher = pairs_of_labels(dataset.labels, dataset.query_ptr)
        return np.stack((higher, lower), axis=1)

    @pytest.mark.parametrize("weak_learner", ["m3.int", "m3", "m2.2dint", "m2"])
    def test_the_pairs_of_the_labels_give_the_same_model(self, collection, weak_learner):
        train = collection[0].subset(range(10))
        by_labels = RankBoost(n_rounds=20, n_bins=16).fit(train)
        ranker = RankBoost(n_rounds=20, n_bins=16, weak_learner=weak_learner)
        by_pairs = ranker.fit_pairs(train, self.all_pairs(train))
        np.testing.assert_array_equal(by_labels.weak_rankers_.feature, by_pairs.weak_rankers_.feature)
        np.testing.assert_array_equal(by_labels.weak_rankers_.threshold, by_pairs.weak_rankers_.threshold)
        np.testing.assert_allclose(by_labels.history_["loss"], by_pairs.history_["loss"], rtol=1e-6)

    def test_rows_count_as_the_user_counts_them(self):
        """Rows of two queries in turns; the pair (0, 2) prefers row 0 to row 2, both of query "a"."""
        X = np.array([[3.0], [0.0], [1.0], [0.0]])
        ranker = RankBoost(n_rounds=1).fit_pairs(X, [[0, 2]], qid=["a", "b", "a", "b"])
        assert ranker.predict([[3.0]]) > ranker.predict([[1.0]])

    def test_weights_decide_between_contradicting_pairs(self):
        X = np.array([[1.0], [0.0]])
        for weights, sign in (([3.0, 1.0], 1), ([1.0, 3.0], -1)):
            ranker = RankBoost(n_rounds=1).fit_pairs(X, [[0, 1], [1, 0]], pair_weights=weights)
            # r = ±(3 − 1) / 4
            assert ranker.weak_rankers_.r.tolist() == [sign * 2**29]

    def test_what_is_not_a_list_of_pairs_is_refused(self):
        X = np.zeros((4, 1))
        ranker = RankBoost(n_rounds=1)
        with pytest.raises(DataError, match=r"shape \(n_pairs, 2\)"):
            ranker.fit_pairs(X, [0, 1])
        with pytest.raises(DataError, match="from 0 to 3, got 0 to 4"):
            ranker.fit_pairs(X, [[0, 4]])
        with pytest.raises(DataError, match="pair 1 is of queries 7 and 8"):
            ranker.fit_pairs(X, [[0, 1], [1, 2]], qid=[7, 7, 8, 8])
        with pytest.raises(DataError, match="no pairs to learn from"):
            ranker.fit_pairs(X, np.zeros((0, 2), dtype=int))
        with pytest.raises(DataError, match="pair_weights"):
            ranker.fit_pairs(X, [[0, 1]], pair_weights=[-1.0])
        with pytest.raises(ParameterError, match=r"must be one of 'auto', 'cpu', got .*a list of pairs"):
            RankBoost(device="opencl").fit_pairs(np.arange(4.0)[:, None], [[0, 1]])


class TestWhatItRefuses:
    def test_no_pairs(self):
        with pytest.raises(DataError, match="no pairs to learn from"):
            RankBoost().fit(np.zeros((4, 1)), [1, 1, 2, 2], group=[2, 2])

    def test_no_weight(self):
        with pytest.raises(DataError, match="every sample_weight is zero"):
            RankBoost().fit(np.zeros((4, 1)), [0, 1, 0, 1], group=[2, 2], sample_weight=[0, 0])

    def test_early_stopping_without_validation(self):
        with pytest.raises(DataError, match="pass eval_set"):
            RankBoost(early_stopping_rounds=5).fit([[1.0], [0.0]], [0, 1])

    def test_validation_without_a_query_that_counts(self, collection):
        train = collection[0]
        with pytest.raises(DataError, match="no query of eval_set counts"):
            RankBoost(n_rounds=2).fit(train, eval_set=(train.features, np.zeros(train.n_docs)))

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            ({"n_rounds": 0}, "n_rounds must be 1 or more, got 0"),
            ({"n_bins": 257}, "n_bins must be from 2 to 256, got 257"),
            ({"binning": "equal"}, "binning must be one of 'width', 'quantile', got 'equal'"),
            ({"weak_learner": "m1"}, "weak_learner must be one of"),
            ({"pair_weight": "none"}, "pair_weight must be one of"),
            ({"eval_metric": "auc@3"}, "auc"),
            ({"eval_convention": "mine"}, "convention must be one of"),
            ({"early_stopping_rounds": 0}, "^early_stopping_rounds must be .* 1 or more, got 0"),
            ({"checkpoint_every": 0}, "checkpoint_every must be 1 or more"),
            ({"weak_learner": "m2", "device": "opencl"}, "no other device can train RankBoost pair by pair"),
            ({"device": "fpga"}, "device must be one of"),
        ],
    )
    def test_parameters(self, options, complaint, collection):
        train, validation = collection
        with pytest.raises(ParameterError, match=complaint):
            RankBoost(**options).fit(train, eval_set=validation)


class TestDevices:
    @pytest.mark.skipif(not report_device("opencl").usable, reason=report_device("opencl").description)
    def test_opencl_gives_the_same_model(self, collection):
        one, other = (RankBoost(n_rounds=70, device=device).fit(collection[0]) for device in ("cpu", "opencl"))
        assert rounds_of(one) == rounds_of(other)

    @pytest.mark.gpu
    def test_cuda_gives_the_same_model(self, collection):
        pytest.importorskip("cupy", reason="there is no CuPy, so no CUDA device to try")
        one, other = (RankBoost(n_rounds=70, device=device).fit(collection[0]) for device in ("cpu", "cuda"))
        assert rounds_of(one) == rounds_of(other)
