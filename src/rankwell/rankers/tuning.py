"""Tuning: try parameters, keep what ranks the validation data best, report on test data."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData
from rankwell.errors import ParameterError, UnknownParameterError
from rankwell.metrics.conventions import DEFAULT, Convention, get_convention
from rankwell.metrics.names import AnyMetric, parse_metric, parse_metrics
from rankwell.parameters import is_whole_number
from rankwell.rankers.base import Callback, Ranker
from rankwell.rankers.foreign_parameters import unknown_parameter

if TYPE_CHECKING:
    from rankwell.metrics.evaluation import Evaluation
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
    """One fold: what was chosen on its validation data, and how that ranks its test data.

    scores : float64 (n_docs,), of the test data, in the order of its rows
    evaluation : of these scores; test : its means
    """

    name: str
    tuning: Tuning
    scores: np.ndarray
    evaluation: Evaluation

    @property
    def test(self) -> dict[str, float]:
        return dict(self.evaluation.mean)


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
    inner_folds: int | None = None,
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
    inner_folds : int, optional
        Join both datasets and divide their queries into this many parts: a combination is trained as many times, each
        time without one of the parts, on which it is measured. The best one is then trained on all of the data, with
        what validation chose in these trainings (rounds, epochs, C). It takes `inner_folds` times as long, and is
        better than one division on average: every query is learnt from, and every query validates.
    callback : callable, optional
        Called with a `TrainingStep` after each training step.
    on_trial : callable, optional
        Called after each trial with (trials done, trials in all, the trial).
    """
    metric, convention = parse_metric(metric), get_convention(convention)
    candidates = _candidates(ranker, grid)
    whole, parts = None, [(train, validation)]
    if inner_folds is not None:
        whole = train.joined(validation)
        parts = _inner_parts(whole, inner_folds)
    best: list[Ranker] = []
    best_value = -math.inf
    trials: list[Trial] = []
    for parameters, candidate in candidates:
        started = time.perf_counter()
        trained = [candidate.untrained().fit(part, eval_set=rest, callback=callback) for part, rest in parts]
        seconds = time.perf_counter() - started
        value = _mean_over_parts(trained, parts, metric, convention)
        trials.append(Trial(parameters, value, seconds))
        # A validation set without a query that counts gives NaN: then the first trial is kept.
        if not best or value > best_value or (math.isnan(best_value) and not math.isnan(value)):
            best, best_value, chosen = trained, value, trials[-1]
        if on_trial is not None:
            on_trial(len(trials), len(candidates), trials[-1])
    if not best:
        raise ParameterError("the grid has no combination to try.")
    kept = best[0]
    if whole is not None:
        kept = kept.settled(best, share=1 - 1 / len(parts)).fit(whole, callback=callback)
    kept.metrics_ = {
        "tuning": {
            "metric": metric.name,
            "convention": convention.name,
            "validation": None if math.isnan(best_value) else best_value,
        }
    }
    return Tuning(kept, chosen, tuple(trials), metric.name, convention.name)


def cross_validate(
    ranker: Ranker,
    folds: Iterable[FoldData],
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    metric: AnyMetric = "ndcg@10",
    metrics: AnyMetric | Sequence[AnyMetric] = DEFAULT_METRICS,
    convention: str | Convention = DEFAULT,
    inner_folds: int | None = None,
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
    inner_folds :
        See `tune`; the test data takes no part in it.
    """
    from rankwell.metrics.evaluation import evaluate

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
            inner_folds=inner_folds,
            callback=callback,
            on_trial=on_trial,
        )
        scores = tuning.ranker.predict(fold.test)
        evaluation = evaluate(fold.test, scores, metrics=reported, convention=convention)
        outcomes.append(FoldOutcome(fold.name, tuning, scores, evaluation))
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


def _inner_parts(whole: RankingDataset, n_parts: int) -> list[tuple[RankingDataset, RankingDataset]]:
    """The queries of all parts but one, and of that one, for each part; part k has every n_parts-th query from k on."""
    if not is_whole_number(n_parts) or not 2 <= n_parts <= whole.n_queries:
        raise ParameterError(
            f"must be a whole number from 2 to the number of queries, {whole.n_queries}, got {n_parts!r}.",
            parameter="inner_folds",
        )
    part_of_query = np.arange(whole.n_queries) % n_parts
    return [(whole.subset(part_of_query != part), whole.subset(part_of_query == part)) for part in range(n_parts)]


def _mean_over_parts(
    trained: Sequence[Ranker],
    parts: Sequence[tuple[RankingDataset, RankingDataset]],
    metric: Metric | FunctionMetric,
    convention: Convention,
) -> float:
    """The mean of the metric over the validation queries of all parts; NaN if none of them counts."""
    from rankwell.metrics.evaluation import evaluate

    evaluations = [
        evaluate(rest, ranker.predict(rest), metrics=(metric,), convention=convention)
        for ranker, (_, rest) in zip(trained, parts, strict=True)
    ]
    if len(evaluations) == 1:
        return float(evaluations[0].mean[metric.name])
    counts = [evaluation.n_counted(metric.name) for evaluation in evaluations]
    total = math.fsum(
        evaluation.mean[metric.name] * count for evaluation, count in zip(evaluations, counts, strict=True) if count
    )
    return total / sum(counts) if sum(counts) else math.nan
