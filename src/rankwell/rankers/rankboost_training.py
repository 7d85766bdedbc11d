"""A RankBoost training run: batches of rounds on some device, and what is watched in between.

The device only says which weak rankers it chose; history, validation, early stopping and checkpoints follow from that,
so they are the same for every device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, Parameter
from rankwell.kernels.boosting.contract import BoostedRounds, Booster
from rankwell.metrics.evaluator import MetricEvaluator
from rankwell.rankers.base import Callback, TrainingStep
from rankwell.rankers.checkpoints import Checkpoints
from rankwell.rankers.early_stopping import EarlyStopping
from rankwell.rankers.weak_rankers import WeakRankers


class ValidationScores:
    """The validation set's metric, round by round."""

    def __init__(
        self, dataset: RankingDataset, metric: str, convention: str, earlier: WeakRankers, n_jobs: int | None
    ) -> None:
        self.name = f"validation {metric}"
        self._dataset = dataset
        self._evaluator = MetricEvaluator(dataset, metric, convention, n_jobs=n_jobs)
        self._scores = np.zeros(dataset.n_docs)
        if np.isnan(self._evaluator.mean(self._scores)):
            raise DataError(
                "no query of ",
                Parameter("eval_set"),
                f" counts for {metric} under the convention {convention!r}: none has a relevant "
                "document. Choose another metric or convention, or other validation data.",
            )
        for _ in earlier.staged_scores(dataset, self._scores):
            pass

    def after(self, weak_ranker: WeakRankers) -> float:
        """The metric when one more weak ranker is added."""
        for _ in weak_ranker.staged_scores(self._dataset, self._scores):
            pass
        return self._evaluator.mean(self._scores)


@dataclass
class BoostingRun:
    """Everything a run needs besides its device.

    thresholds : float32 (n_features, 256), of each bin
    earlier : the rounds of the model that training goes on from, and of a checkpoint
    history : of the rounds since that model, one value a round
    n_rounds : rounds wanted, those of a checkpoint included, those of the earlier model not
    batch : rounds to run before the host looks again
    """

    thresholds: np.ndarray
    earlier: WeakRankers
    history: dict[str, list[Any]]
    n_rounds: int
    batch: int
    early_stopping: EarlyStopping
    validation: ValidationScores | None
    checkpoints: Checkpoints
    callback: Callback
    rankers: list[WeakRankers] = field(default_factory=list)

    def train(self, booster: Callable[[], Booster]) -> WeakRankers:
        """Run to the end; all rounds, the earlier ones too, up to the best one where early stopping is on.

        booster : makes the device's run, in the state after the earlier rounds; not called where nothing is left to do
        """
        done = len(self.history["loss"])
        n_before = len(self.earlier) - done
        stopped = self._replay_validation()
        device = None if stopped or done >= self.n_rounds else booster()
        while device is not None and done < self.n_rounds and not stopped:
            rounds = device.boost(min(self.batch, self.n_rounds - done))
            stopped = self._take(rounds, done) or rounds.finished
            done = len(self.history["loss"])
            if not stopped and self.checkpoints.due(n_before + done):
                self.checkpoints.save(n_before + done, self._all().to_arrays(), self.history)
        self.checkpoints.remove()
        if self.early_stopping.patience is None:
            return self._all()
        return self._all().first(n_before + self.early_stopping.best_step)

    def _all(self) -> WeakRankers:
        together = self.earlier
        for part in self.rankers:
            together = together.then(part)
        self.earlier, self.rankers = together, []
        return together

    def _replay_validation(self) -> bool:
        return self.validation is not None and self.early_stopping.replay(self.history[self.validation.name])

    def _take(self, rounds: BoostedRounds, done: int) -> bool:
        """Note the rounds of a batch, up to where early stopping ends it; whether it does."""
        threshold = self.thresholds[rounds.feature, rounds.bin]
        rankers = WeakRankers(rounds.feature, threshold, rounds.r)
        alpha = rankers.alpha
        for i in range(len(rounds)):
            values = {"loss": float(rounds.loss[i]), "alpha": float(alpha[i])}
            if self.validation is not None:
                one = WeakRankers(rounds.feature[i : i + 1], threshold[i : i + 1], rounds.r[i : i + 1])
                values[self.validation.name] = self.validation.after(one)
            for name, value in values.items():
                self.history[name].append(value)
            number = done + i + 1
            self.callback(TrainingStep(number, self.n_rounds, values))
            if self.validation is not None and self.early_stopping.update(number, values[self.validation.name]):
                self.rankers.append(rankers.first(i + 1))
                return True
        self.rankers.append(rankers)
        return False


def rounds_per_batch(device: str, weak_learner: str, n_docs: int, n_features: int) -> int:
    """Rounds between two looks of the host: on the CPU about a twentieth of a second, so that progress can be seen;
    elsewhere enough that waiting for the device does not count."""
    if device != "cpu":
        return 64
    if weak_learner != "m3.int":
        return 1
    return int(min(64, max(1, 250_000_000 // max(1, n_docs * n_features))))
