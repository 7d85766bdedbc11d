"""Tuning: the trial that is best on validation is kept, and test data has no say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData
from rankwell.errors import ParameterError
from rankwell.metrics.evaluation import evaluate
from rankwell.rankers.base import Ranker, TrainedModel, TrainingStep, TrainingTask
from rankwell.rankers.least_squares import LeastSquares
from rankwell.rankers.listnet import ListNet
from rankwell.rankers.rankboost import RankBoost
from rankwell.rankers.ranksvm import RankSVM
from rankwell.rankers.tuning import cross_validate, parameter_grid, tune
from rankwell.scoring.description import Dense, LinearInputs, RankerDescription


class OneFeature(Ranker):
    """Ranks by one feature that it is told, so that every figure can be worked out by hand."""

    name = "one-feature"
    fits = 0

    def __init__(self, feature: int = 0, sign: float = 1.0, normalize: str = "none") -> None:
        self.feature = feature
        self.sign = sign
        self.normalize = normalize

    def _check_parameters(self) -> None:
        if self.feature < 0:
            raise ParameterError(f"feature must be 0 or more, got {self.feature}.")

    def _train(self, task: TrainingTask) -> TrainedModel:
        type(self).fits += 1
        weights = np.zeros((1, task.train.n_features))
        weights[0, self.feature] = self.sign
        task.callback(TrainingStep(1, 1, {}))
        description = RankerDescription(
            feature_names=task.feature_names,
            normaliser=task.normaliser,
            inputs=(LinearInputs.identity(task.train.n_features),),
            layers=(Dense(weights, np.zeros(1)),),
        )
        return TrainedModel(description, state={}, history={})


def three_documents(*rows: tuple[float, float]) -> RankingDataset:
    """One query with labels 1, 0, 0 and the two features given."""
    return RankingDataset(np.array(rows), np.array([1.0, 0.0, 0.0]))


# Reciprocal ranks of the relevant document (the first): feature 0 puts it third, feature 1 second.
MIDDLING = three_documents((1.0, 2.0), (2.0, 3.0), (3.0, 1.0))
# Here feature 0 puts it first and feature 1 last.
OPPOSITE = three_documents((3.0, 1.0), (2.0, 2.0), (1.0, 3.0))


def test_a_grid_is_every_combination_the_last_parameter_fastest() -> None:
    assert parameter_grid({"a": [1, 2], "b": ["x", "y"]}) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    assert parameter_grid({}) == [{}]
    assert parameter_grid(None) == [{}]


@pytest.mark.parametrize(("grid", "message"), [({"a": []}, "is empty"), ({"a": 3}, "a list"), ({"a": "xy"}, "a list")])
def test_a_grid_that_is_none_is_refused(grid: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parameter_grid(grid)


def test_the_best_on_validation_is_kept() -> None:
    tuning = tune(OneFeature(), OPPOSITE, MIDDLING, {"feature": [0, 1]}, metric="mrr", convention="letor4")
    assert [trial.validation for trial in tuning.trials] == [pytest.approx(1 / 3), pytest.approx(1 / 2)]
    assert tuning.chosen.parameters == {"feature": 1}
    assert tuning.ranker.predict(MIDDLING).tolist() == [2.0, 3.0, 1.0]
    assert tuning.ranker.get_params()["feature"] == 1
    assert (tuning.metric, tuning.convention) == ("mrr", "letor4")
    assert tuning.ranker.metrics_ == {
        "tuning": {"metric": "mrr", "convention": "letor4", "validation": pytest.approx(1 / 2)}
    }
    assert all(trial.seconds > 0 for trial in tuning.trials)


def test_of_equal_trials_the_first_is_kept() -> None:
    tuning = tune(OneFeature(feature=1), MIDDLING, MIDDLING, {"sign": [2.0, 1.0, 3.0]}, metric="mrr")
    assert tuning.chosen.parameters == {"sign": 2.0}


def test_validation_where_no_query_counts_keeps_the_first_trial() -> None:
    nothing_relevant = RankingDataset(np.zeros((2, 2)), np.zeros(2))
    tuning = tune(OneFeature(), MIDDLING, nothing_relevant, {"feature": [1, 0]}, convention="burges")
    assert tuning.chosen.parameters == {"feature": 1}
    assert math.isnan(tuning.chosen.validation)
    assert tuning.ranker.metrics_["tuning"]["validation"] is None


def test_without_a_grid_there_is_one_trial_and_the_ranker_given_stays_untrained() -> None:
    ranker = OneFeature(feature=1)
    tuning = tune(ranker, MIDDLING, MIDDLING)
    assert len(tuning.trials) == 1
    assert tuning.chosen.parameters == {}
    assert not hasattr(ranker, "description_")


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"feature": [0, -1]}, "feature must be 0 or more, got -1."),
        (
            {"features": [0]},
            "OneFeature has no parameter 'features'. Did you mean feature?",
        ),
    ],
)
def test_wrong_parameters_are_found_before_the_first_training(grid: dict[str, list[int]], message: str) -> None:
    before = OneFeature.fits
    with pytest.raises(ParameterError) as raised:
        tune(OneFeature(), MIDDLING, MIDDLING, grid)
    assert str(raised.value) == message
    assert OneFeature.fits == before


def test_callbacks_hear_of_steps_and_trials() -> None:
    steps: list[TrainingStep] = []
    trials: list[tuple[int, int, dict[str, Any]]] = []
    tune(
        OneFeature(),
        MIDDLING,
        MIDDLING,
        {"feature": [0, 1]},
        callback=steps.append,
        on_trial=lambda done, in_all, trial: trials.append((done, in_all, trial.parameters)),
    )
    assert len(steps) == 2
    assert trials == [(1, 2, {"feature": 0}), (2, 2, {"feature": 1})]


def test_cross_validation_chooses_on_validation_and_reports_on_test() -> None:
    folds = [
        # Validation prefers feature 1 (1/2 against 1/3); on test feature 1 gives 1/3, where feature 0 would give 1.
        FoldData("Fold1", train=MIDDLING, validation=MIDDLING, test=OPPOSITE),
        # Validation prefers feature 0 (1 against 1/3); on test that gives 1/3.
        FoldData("Fold2", train=MIDDLING, validation=OPPOSITE, test=MIDDLING),
        FoldData("Fold3", train=MIDDLING, validation=OPPOSITE, test=OPPOSITE),
    ]
    outcome = cross_validate(
        OneFeature(), folds, {"feature": [0, 1]}, metric="mrr", metrics="mrr,p@1", convention="letor4"
    )
    assert [fold.tuning.chosen.parameters["feature"] for fold in outcome.folds] == [1, 0, 0]
    assert [fold.test["mrr"] for fold in outcome.folds] == pytest.approx([1 / 3, 1 / 3, 1])
    assert outcome.mean == {"mrr": pytest.approx((1 / 3 + 1 / 3 + 1) / 3), "p@1": pytest.approx(1 / 3)}
    assert outcome.convention == "letor4"


def test_no_folds_is_an_error() -> None:
    with pytest.raises(ParameterError, match="no folds"):
        cross_validate(OneFeature(), [])


def test_an_unknown_metric_is_found_before_training() -> None:
    before = OneFeature.fits
    with pytest.raises(ParameterError, match="metrics must be one of"):
        cross_validate(OneFeature(), [FoldData("Fold1", MIDDLING, MIDDLING, MIDDLING)], metrics="gold@10")
    assert OneFeature.fits == before


def test_a_real_ranker_and_its_own_metric_agree() -> None:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((90, 3))
    y = (X[:, 0] + 0.1 * generator.standard_normal(90) > 0.5).astype(float)
    parts = [
        RankingDataset(X[rows], y[rows], group=[10, 10, 10]) for rows in (slice(0, 30), slice(30, 60), slice(60, 90))
    ]
    outcome = cross_validate(LeastSquares(), [FoldData("one", *parts)], {"ridge": [0.0, 100.0]}, metrics="map")
    ranker = outcome.folds[0].tuning.ranker
    assert outcome.mean["map"] == evaluate(parts[2], ranker.predict(parts[2]), metrics="map").mean["map"]
    assert outcome.mean["map"] > 0.9


def test_inner_folds_validate_every_query_once_and_train_on_all_of_them() -> None:
    """Four one-query datasets: feature 1 is better on both of MIDDLING's (1/2 against 1/3), feature 0 on OPPOSITE's."""
    train, validation = MIDDLING.joined(OPPOSITE), MIDDLING.joined(MIDDLING)
    before = OneFeature.fits
    tuning = tune(
        OneFeature(), train, validation, {"feature": [0, 1]}, metric="mrr", convention="letor4", inner_folds=2
    )
    assert [trial.validation for trial in tuning.trials] == pytest.approx(
        [(3 * 1 / 3 + 1) / 4, (3 * 1 / 2 + 1 / 3) / 4]
    )
    assert OneFeature.fits == before + 2 * 2 + 1
    assert tuning.chosen.parameters == {"feature": 0}
    assert tuning.ranker.get_params()["feature"] == 0


@pytest.mark.parametrize("n_parts", [1, 5, 2.5, "two"])
def test_inner_folds_are_as_many_as_queries_at_most(n_parts: Any) -> None:
    both = MIDDLING.joined(OPPOSITE)
    with pytest.raises(ParameterError, match=r"inner_folds must be a whole number from 2 to the number of queries, 4"):
        tune(OneFeature(), both, both, inner_folds=n_parts)


def test_what_validation_chose_is_kept_for_training_on_all_of_the_data() -> None:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((400, 3))
    y = (X[:, 0] + generator.standard_normal(400) > 0.5).astype(float)
    parts = [RankingDataset(X[rows], y[rows], group=[10] * 20) for rows in (slice(0, 200), slice(200, 400))]
    boosted = tune(RankBoost(n_rounds=50), *parts, inner_folds=4).ranker
    assert isinstance(boosted, RankBoost)
    assert len(boosted.weak_rankers_) == boosted.n_rounds < 50
    assert boosted.early_stopping_rounds is None
    linear = tune(RankSVM(), *parts, inner_folds=4).ranker
    assert isinstance(linear, RankSVM)
    assert isinstance(linear.C, float)
    assert tune(RankSVM(C=0.5), *parts, inner_folds=2).ranker.get_params()["C"] == 0.5
    network = tune(ListNet(n_epochs=20, n_seeds=1, device="cpu"), *parts, inner_folds=2).ranker
    assert 1 <= network.get_params()["n_epochs"] <= 20


def test_cross_validation_keeps_scores_and_each_querys_figures() -> None:
    fold = FoldData("Fold1", train=MIDDLING, validation=MIDDLING, test=OPPOSITE.joined(MIDDLING))
    outcome = cross_validate(OneFeature(feature=1), [fold], metrics="mrr", convention="letor4")
    assert outcome.folds[0].scores.tolist() == [1, 2, 3, 2, 3, 1]
    assert outcome.folds[0].evaluation.per_query["mrr"].tolist() == pytest.approx([1 / 3, 1 / 2])
