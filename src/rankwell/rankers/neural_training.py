"""A network's training run: epochs on some device, and what is watched in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import ParameterError
from rankwell.kernels.lists.contract import NetworkState, NetworkTrainer
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat, loss_scale_exponent
from rankwell.metrics.evaluator import MetricEvaluator
from rankwell.rankers.base import Callback, TrainingStep
from rankwell.rankers.checkpoints import Checkpoints
from rankwell.rankers.early_stopping import EarlyStopping
from rankwell.rankers.kernel_swap import KernelSwap
from rankwell.solvers.first_order import FirstOrder


class ValidationScores:
    """The validation set's metric for a network's parameters."""

    def __init__(self, dataset: RankingDataset, metric: str, convention: str, n_jobs: int | None) -> None:
        self.name = f"validation {metric}"
        self._features = network_features(dataset)
        self._evaluator = MetricEvaluator(dataset, metric, convention, n_jobs=n_jobs)

    def of(self, trainer: NetworkTrainer, state: NetworkState) -> float:
        return self._evaluator.mean(trainer.scores(state, self._features).astype(np.float64))


@dataclass
class NetworkRun:
    """Everything a run needs besides its device.

    seed : of the run; an epoch's order and random numbers follow from it and the epoch alone
    fixed_point : makes the number format of "fixed8" and its like, None for "float32"
    history : one value an epoch; holds a resumed run's epochs already
    """

    n_epochs: int
    n_queries: int
    seed: int
    shuffle: bool
    optimizer: FirstOrder
    swap: KernelSwap
    fixed_point: Callable[[str], FixedPointFormat | None]
    early_stopping: EarlyStopping
    validation: ValidationScores | None
    checkpoints: Checkpoints
    callback: Callback
    history: dict[str, list[Any]]
    state: NetworkState
    best: np.ndarray

    def resume(self) -> None:
        """Go on from a checkpoint of this same run, if there is one."""
        found = self.checkpoints.load()
        if found is None:
            return
        arrays = found.arrays
        self.state = NetworkState(
            arrays["parameters"].copy(), arrays["first"].copy(), arrays["second"].copy(), int(arrays["steps"][0])
        )
        self.best = arrays["best"].copy()
        self.history = {name: list(values) for name, values in found.history.items()}
        self.swap.resume(found.step, int(arrays["swaps"][0]))

    def train(self, trainer: NetworkTrainer) -> np.ndarray:
        """Run to the end; the parameters of the last epoch, or of the best one where there is a validation set."""
        stopped = self.validation is not None and self.early_stopping.replay(self.history[self.validation.name])
        for epoch in range(len(self.history["loss"]) + 1, self.n_epochs + 1):
            if stopped:
                break
            stopped = self._epoch(trainer, epoch)
            if self.checkpoints.due(epoch):
                self.checkpoints.save(epoch, self._arrays(), self.history)
        self.checkpoints.remove()
        return self.state.parameters if self.validation is None else self.best

    def _epoch(self, trainer: NetworkTrainer, epoch: int) -> bool:
        """Train one epoch and take note of it; whether it is time to stop."""
        fixed_point = self.fixed_point(self.swap.before(epoch))
        rate = self.optimizer.rate(epoch - 1)
        scale = 0 if fixed_point is None else loss_scale_exponent(fixed_point.method, epoch - 1)
        random = np.random.default_rng((self.seed, epoch))
        order = random.permutation(self.n_queries) if self.shuffle else np.arange(self.n_queries)
        seed = int(random.integers(0, 2**62))
        before = time.perf_counter()
        loss = trainer.run_epoch(self.state, order, rate, seed, fixed_point, scale) / max(self.n_queries, 1)
        seconds = time.perf_counter() - before
        if not np.isfinite(loss) or not np.isfinite(self.state.parameters).all():
            raise ParameterError(
                f"training diverged: the loss is {loss} after epoch {epoch}. Lower learning_rate "
                f"({self.optimizer.learning_rate}), or normalise the features."
            )
        values = {"loss": loss, "learning rate": rate, "bits": float(fixed_point.bits if fixed_point else 32)}
        if self.validation is not None:
            values[self.validation.name] = self.validation.of(trainer, self.state)
        for name, value in values.items():
            self.history[name].append(value)
        figure = None if self.validation is None else values[self.validation.name]
        self.swap.after(figure, seconds)
        stop = figure is not None and self.early_stopping.update(epoch, figure)
        if self.early_stopping.best_step == epoch:
            self.best = self.state.parameters.copy()
        self.callback(TrainingStep(epoch, self.n_epochs, {**values, "seconds": seconds}))
        return stop

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "parameters": self.state.parameters,
            "first": self.state.first,
            "second": self.state.second,
            "best": self.best,
            "steps": np.array([self.state.steps], dtype=np.int64),
            "swaps": np.array([self.swap.swaps], dtype=np.int64),
        }


def network_features(dataset: RankingDataset) -> np.ndarray:
    """What a network reads: float32 (n_docs, n_features) in C order, missing values as 0."""
    features = np.ascontiguousarray(dataset.dense_features(), dtype=np.float32)
    return np.nan_to_num(features, nan=0.0) if np.isnan(features).any() else features
