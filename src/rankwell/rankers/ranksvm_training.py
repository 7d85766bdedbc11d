"""Training a RankSVM: data as the kernels take it, the loss on its device, and one run of the solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.kernels.pair_loss.contract import PairData, PairLoss
from rankwell.kernels.threads import kernel_threads
from rankwell.metrics.evaluator import MetricEvaluator
from rankwell.rankers.base import Callback, TrainingStep
from rankwell.rankers.early_stopping import EarlyStopping
from rankwell.rankers.ranksvm_objective import RankSVMObjective
from rankwell.scoring.normaliser import Normaliser
from rankwell.solvers.trust_region_newton import NewtonResult, NewtonStep, minimise


def pair_data(dataset: RankingDataset, normaliser: Normaliser, n_jobs: int | None = None) -> PairData:
    """The dataset as a pair loss takes it.

    Under `standard` the dataset comes as it is, and the division by the standard deviation goes into `column_scale`;
    under any other normaliser it comes normalised.
    """
    from rankwell.kernels.pair_loss.cpu.preparation import label_levels

    levels, n_levels = np.empty(dataset.n_docs, dtype=np.int32), np.empty(dataset.n_queries, dtype=np.int32)
    with kernel_threads(n_jobs):
        label_levels(dataset.labels, dataset.query_ptr, levels, n_levels)
    return PairData(
        features=trainable_features(dataset.features, normaliser, n_jobs),
        levels=levels,
        n_levels=n_levels,
        query_ptr=dataset.query_ptr,
        query_weights=dataset.query_weights,
        document_weights=dataset.document_weights,
        column_scale=column_scale(normaliser),
    )


def column_scale(normaliser: Normaliser) -> np.ndarray | None:
    """What each feature counts times, where the features themselves stay as they are."""
    return 1.0 / normaliser.arrays["scale"] if normaliser.name == "standard" else None


def trainable_features(features: Any, normaliser: Normaliser, n_jobs: int | None = None) -> Any:
    """Features without NaN: the same object where there is none, else a copy.

    A missing value counts as 0 after normalisation, which under `standard` is the mean before it.
    """
    from rankwell.kernels.pair_loss.cpu.preparation import has_missing

    values = features.data if sparse.issparse(features) else features.reshape(-1)
    with kernel_threads(n_jobs):
        if not has_missing(values):
            return features
    filled = features.copy()
    if sparse.issparse(filled):
        np.nan_to_num(filled.data, copy=False, nan=0.0)
    else:
        value = normaliser.arrays["mean"] if normaliser.name == "standard" else np.zeros(1)
        np.copyto(filled, value.astype(np.float32), where=np.isnan(features))
    return filled


def count_pairs(data: PairData, n_jobs: int | None = None) -> int:
    """Pairs of one query with different labels and a weight above 0, or an error where there are none."""
    from rankwell.kernels.pair_loss.cpu import preparation as ranksvm_preparation

    none = np.empty(0)
    with kernel_threads(n_jobs):
        n_pairs = ranksvm_preparation.count_pairs(
            data.levels,
            data.n_levels,
            data.query_ptr,
            none if data.query_weights is None else data.query_weights,
            none if data.document_weights is None else data.document_weights,
        )
    if n_pairs == 0:
        raise DataError(
            "there is nothing to learn from: in every query all documents (of weight above 0) have the same label. "
            "RankSVM learns from pairs of documents of one query with different labels."
        )
    return int(n_pairs)


class Validation:
    """Scores of a validation set and the metric they reach.

    Parameters
    ----------
    dataset : RankingDataset
        As it is under the normaliser `standard`, else normalised.
    """

    def __init__(
        self, dataset: RankingDataset, normaliser: Normaliser, metric: str, convention: str, n_jobs: int | None
    ) -> None:
        self.metric = metric
        self._features = trainable_features(dataset.features, normaliser, n_jobs)
        self._scale = column_scale(normaliser)
        self._evaluator = MetricEvaluator(dataset, metric, convention, n_jobs=n_jobs)
        self._n_jobs = n_jobs

    def measure(self, weights: np.ndarray) -> float:
        """The metric's mean under `weights`, float64 (n_features,), of normalised features."""
        from rankwell.kernels.pair_loss.cpu.loss import score_rows

        scaled = weights if self._scale is None else weights * self._scale
        scores = score_rows(self._features, scaled, self._n_jobs)
        return float(self._evaluator.mean(scores))


@dataclass(frozen=True)
class TrainingOutcome:
    """One run of the solver: the weights kept (of normalised features), where it stopped, and its history."""

    weights: np.ndarray
    result: NewtonResult
    history: dict[str, list[float]]


class TrainingRun:
    """One minimisation of the objective, watched.

    Parameters
    ----------
    tol, max_iter :
        The stopping rule's, see `rankwell.solvers.trust_region_newton`.
    validation : Validation, optional
    patience : int, optional
        Outer iterations without a better validation metric before training stops; the best weights are kept then.
    """

    def __init__(
        self,
        loss: PairLoss,
        *,
        tol: float,
        max_iter: int,
        callback: Callback,
        validation: Validation | None = None,
        patience: int | None = None,
    ) -> None:
        self._loss = loss
        self._tol = tol
        self._max_iter = max_iter
        self._callback = callback
        self._validation = validation
        self._patience = patience

    def train(
        self, C: float, start: np.ndarray | None = None, initial_gradient_norm: float | None = None
    ) -> TrainingOutcome:
        """Minimise f for one C, from `start` (weights of normalised features) or from 0."""
        loss = self._loss
        watch = _Watch(loss, self._max_iter, self._callback, self._validation, EarlyStopping(self._patience))
        objective = RankSVMObjective(loss, C)
        if start is not None and initial_gradient_norm is None:
            initial_gradient_norm = self.gradient_norm_at_zero(C)
        result = minimise(
            objective,
            loss.to_device(np.zeros(loss.n_features) if start is None else start),
            initial_gradient_norm=initial_gradient_norm,
            tolerance=self._tol,
            max_iterations=self._max_iter,
            callback=watch.step,
        )
        kept = watch.best_weights if self._patience is not None and watch.best_weights is not None else None
        return TrainingOutcome(loss.to_host(result.w) if kept is None else kept, result, watch.finished_history())

    def gradient_norm_at_zero(self, C: float) -> float:
        """‖∇f(0)‖, which the stopping rule compares with: C times the loss's."""
        gradient = self._loss.loss_and_gradient(self._loss.to_device(np.zeros(self._loss.n_features)))[1]
        return C * float(gradient @ gradient) ** 0.5


class _Watch:
    """Keeps the history of one minimisation, tells the callback, and stops by validation."""

    def __init__(
        self,
        loss: PairLoss,
        max_iter: int,
        callback: Callback,
        validation: Validation | None,
        early_stopping: EarlyStopping,
    ) -> None:
        self._loss = loss
        self._max_iter = max_iter
        self._callback = callback
        self._validation = validation
        self._early_stopping = early_stopping
        self._gradient_before = 1.0
        self._remaining = 0.0
        self.best_weights: np.ndarray | None = None
        self.history: dict[str, list[float]] = {"objective": [], "relative_gradient": [], "eta": [], "products": []}
        if validation is not None:
            self.history[f"validation {validation.metric}"] = []

    def step(self, step: NewtonStep) -> bool:
        # What is left to gain cannot be known; it shrinks at least about as fast as the gradient does.
        ratio = step.relative_gradient / self._gradient_before
        self._remaining = step.predicted_fall * min(ratio, 1.0)
        self._gradient_before = step.relative_gradient
        before = self.history["products"][-1] if self.history["products"] else 0
        values = {
            "objective": step.value,
            "relative_gradient": step.relative_gradient,
            "eta": step.value / _estimated_optimum(step.value, self._remaining) - 1.0,  # equation 15
            "products": before + step.n_products,
        }
        stop = False
        if self._validation is not None:
            weights = self._loss.to_host(step.w)
            metric = self._validation.measure(weights)
            values[f"validation {self._validation.metric}"] = metric
            stop = self._early_stopping.update(step.number, metric)
            if self._early_stopping.best_step == step.number:
                self.best_weights = weights.copy()
        for name, value in values.items():
            self.history[name].append(value)
        self._callback(TrainingStep(step.number, self._max_iter, values))
        return stop

    def finished_history(self) -> dict[str, list[float]]:
        """The history with every η against one f(w*): the last objective less what was left to gain then."""
        objectives = self.history["objective"]
        if objectives:
            optimum = _estimated_optimum(objectives[-1], self._remaining)
            self.history["eta"] = [abs(value - optimum) / optimum for value in objectives]
        return self.history


def _estimated_optimum(value: float, remaining: float) -> float:
    """f(w*), always above 0; far from it, where the estimate means little, no lower than a hundredth of f(w)."""
    return max(value - remaining, 0.01 * value)
