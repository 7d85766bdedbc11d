"""RankBoost's rounds as steps of a training run.

The device only returns the weak rankers that it chose; α and the scores of the validation data follow from that, so
they are the same for every device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.kernels.boosting.contract import Booster
from rankwell.rankers.training_run import Steps, StepSource
from rankwell.rankers.weak_rankers import WeakRankers


class BoostingRounds(StepSource):
    """Rounds on some device.

    Parameters
    ----------
    make_booster : callable
        Creates the device's run in the state after the given rounds; called before the first round.
    thresholds : float32 (n_features, 256)
        The threshold of each bin.
    n_halvings : int
        The learning rate is 2^−n_halvings.
    earlier : WeakRankers
        The rounds of the model that training continues from.
    validation : RankingDataset, optional
        With normalised features.
    device_figures : tuple of str
        What the device tells of each round (`BoostedRounds.figures`).

    Attributes
    ----------
    weak_rankers : WeakRankers
        The weak rankers of all rounds so far, the earlier ones included.
    """

    def __init__(
        self,
        make_booster: Callable[[WeakRankers], Booster],
        thresholds: np.ndarray,
        n_halvings: int,
        earlier: WeakRankers,
        validation: RankingDataset | None,
        device_figures: tuple[str, ...] = (),
    ) -> None:
        self.figures = ("loss", "alpha", *device_figures)
        self._make_booster = make_booster
        self._booster: Booster | None = None
        self._thresholds, self._n_halvings = thresholds, n_halvings
        self._validation = validation
        self._n_earlier = len(earlier)
        self._begin_after(earlier)

    def _begin_after(self, weak_rankers: WeakRankers) -> None:
        self.weak_rankers = weak_rankers
        if self._validation is not None:
            self._scores = np.zeros(self._validation.n_docs)
            for _ in weak_rankers.staged_scores(self._validation, self._scores):
                pass

    def run(self, n_steps: int) -> Steps:
        if self._booster is None:
            self._booster = self._make_booster(self.weak_rankers)
        rounds = self._booster.boost(n_steps)
        halvings = np.full(len(rounds), self._n_halvings, dtype=np.int32)
        chosen = WeakRankers(rounds.feature, self._thresholds[rounds.feature, rounds.bin], rounds.r, halvings)
        self.weak_rankers = self.weak_rankers.then(chosen)
        if self._validation is not None:
            self._stages: Iterator[np.ndarray] = chosen.staged_scores(self._validation, self._scores)
        measured = {"loss": rounds.loss, "alpha": chosen.alpha, **rounds.figures}
        columns = [measured[name].tolist() for name in self.figures]
        figures = [dict(zip(self.figures, row, strict=True)) for row in zip(*columns, strict=True)]
        return Steps(figures, rounds.finished)

    def validation_scores(self) -> np.ndarray:
        return next(self._stages)

    def first(self, n_rounds: int) -> WeakRankers:
        """The earlier model's weak rankers and the first `n_rounds` of this run."""
        return self.weak_rankers.first(self._n_earlier + n_rounds)

    def arrays(self) -> dict[str, np.ndarray]:
        return self.weak_rankers.to_arrays()

    def restore(self, arrays: Mapping[str, np.ndarray], n_steps: int) -> None:
        self._begin_after(WeakRankers.from_arrays(arrays, len(self._thresholds)))
