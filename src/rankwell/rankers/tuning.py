"""Tuning: try parameters, keep what ranks the validation data best, report on test data."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData
from rankwell.errors import ParameterError, UnknownParameterError
from rankwell.metrics.conventions import DEFAULT, Convention, get_convention
from rankwell.metrics.names import AnyMetric, parse_metric, parse_metrics
from rankwell.rankers.base import Callback, Ranker
from rankwell.rankers.foreign_parameters import unknown_parameter

if TYPE_CHECKING:
    from rankwell.metrics.metric import FunctionMetric, Metric

DEFAULT_METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "map")


@dataclass(frozen=True)
class Trial:
    """One choice of parameters: its figure on the validation data and its training time."""

    parameters: dict[str, Any]
    validation: float
    seconds: float


@dataclass(frozen=True)
class Tuning:
    """The outcome of `tune`.

    ranker : the fitted ranker of the best trial; its `metrics_` say how it was chosen
    chosen : that trial: the first of those with the highest validation metric
    trials : all of them, in the order of the grid
    metric, convention : what `Trial.validation` is
    """

    ranker: Ranker
    chosen: Trial
    trials: tuple[Trial, ...]
    metric: str
    convention: str


@dataclass(frozen=True)
class FoldOutcome:
    """One fold: what was chosen on its validation data, and the metrics of that on its test data."""

    name: str
    tuning: Tuning
    test: dict[str, float]


@dataclass(frozen=True)
class CrossValidation:
    """The outcome of `cross_validate`.

    folds : one outcome per fold
    mean : each metric's mean over the folds' test figures (each fold counts the same, as in LETOR's tables)
    convention : how all of them are counted
    """

    folds: tuple[FoldOutcome, ...]
    mean: dict[str, float]
    convention: str


OnTrial = Callable[[int, int, Trial], None]


def parameter_grid(grid: Mapping[str, Sequence[Any]] | None) -> list[dict[str, Any]]:
    """Every combination of the values given for each parameter; the last parameter changes fastest."""
    grid = grid or {}
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise ParameterError(f"the grid of {name} must be a list of values, got {values!r}.")
        if not values:
            raise ParameterError(f"the grid of {name} is empty: give at least one value.")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def tune(
    ranker: Ranker,
    train: RankingDataset,
    validation: RankingDataset,
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    metric: AnyMetric = "ndcg@10",
    convention: str | Convention = DEFAULT,
    callback: Callback | None = None,
    on_trial: OnTrial | None = None,
) -> Tuning:
    """Train with every combination of `grid` and keep the ranker that is best on `validation`.

    Parameters
    ----------
    ranker : Ranker
        Gives the class and the parameters that are not in the grid; it is not changed.
    train, validation : RankingDataset
        Each training gets `validation` as its eval_set too, for early stopping if the ranker has it.
    grid : dict of str to list, optional
        Values to try by parameter. By default there is one trial.
    metric, convention :
        What "best" means: the mean over the validation queries. Of equal trials the first one.
    callback : callable, optional
        Called with a `TrainingStep` after each training step.
    on_trial : callable, optional
        Called after each trial with (trials done, trials in all, the trial).
    """
    metric, convention = parse_metric(metric), get_convention(convention)
    candidates = _candidates(ranker, grid)
    best: Ranker | None = None
    best_value = -math.inf
    trials: list[Trial] = []
    for parameters, candidate in candidates:
        started = time.perf_counter()
        candidate.fit(train, eval_set=validation, callback=callback)
        seconds = time.perf_counter() - started
        value = _means(candidate, validation, (metric,), convention)[metric.name]
        trials.append(Trial(parameters, value, seconds))
        # A validation set without a query that counts gives NaN: then the first trial is kept.
        if best is None or value > best_value or (math.isnan(best_value) and not math.isnan(value)):
            best, best_value = candidate, value
            chosen = trials[-1]
        if on_trial is not None:
            on_trial(len(trials), len(candidates), trials[-1])
    if best is None:
        raise ParameterError("the grid has no combination to try.")
    best.metrics_ = {
        "tuning": {
            "metric": metric.name,
            "convention": convention.name,
            "validation": None if math.isnan(best_value) else best_value,
        }
    }
    return Tuning(best, chosen, tuple(trials), metric.name, convention.name)


def cross_validate(
    ranker: Ranker,
    folds: Iterable[FoldData],
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    metric: AnyMetric = "ndcg@10",
    metrics: AnyMetric | Sequence[AnyMetric] = DEFAULT_METRICS,
    convention: str | Convention = DEFAULT,
    callback: Callback | None = None,
    on_trial: OnTrial | None = None,
) -> CrossValidation:
    """Tune on every fold's validation data and evaluate the best ranker on its test data.

    Parameters
    ----------
    folds : iterable of FoldData
        As `rankwell.data.folds` reads them; read one at a time, so that only one is in memory.
    metric :
        Chooses the parameters (see `tune`).
    metrics :
        Are reported on the test data.
    """
    reported, convention = parse_metrics(metrics), get_convention(convention)
    outcomes = []
    for fold in folds:
        tuning = tune(
            ranker,
            fold.train,
            fold.validation,
            grid,
            metric=metric,
            convention=convention,
            callback=callback,
            on_trial=on_trial,
        )
        outcomes.append(FoldOutcome(fold.name, tuning, _means(tuning.ranker, fold.test, reported, convention)))
    if not outcomes:
        raise ParameterError("there are no folds to validate on: pass at least one.")
    mean = {name: math.fsum(outcome.test[name] for outcome in outcomes) / len(outcomes) for name in outcomes[0].test}
    return CrossValidation(tuple(outcomes), mean, convention.name)


def _candidates(ranker: Ranker, grid: Mapping[str, Sequence[Any]] | None) -> list[tuple[dict[str, Any], Ranker]]:
    """The rankers to train, with their parameters checked before the first of them is trained."""
    candidates = []
    for parameters in parameter_grid(grid):
        unknown = sorted(set(parameters) - set(ranker.get_params(deep=False)))
        if unknown:
            known = list(ranker.get_params(deep=False))
            raise UnknownParameterError(unknown_parameter(type(ranker).__name__, unknown[0], known))
        candidate = ranker.untrained().set_params(**parameters)
        candidate._check_parameters()
        candidates.append((parameters, candidate))
    return candidates


def _means(
    ranker: Ranker, dataset: RankingDataset, metrics: Sequence[Metric | FunctionMetric], convention: Convention
) -> dict[str, float]:
    from rankwell.metrics.evaluation import evaluate

    return dict(evaluate(dataset, ranker.predict(dataset), metrics=metrics, convention=convention).mean)
