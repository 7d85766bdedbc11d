"""RankBoost's rounds, as a training run takes them.

The device only says which weak rankers it chose; α and the scores of the validation data follow from that, so they are
the same for every device.
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
        Makes the device's run in the state after the rounds that it is given; called with the first round to run.
    thresholds : float32 (n_features, 256)
        Of each bin.
    earlier : WeakRankers
        The rounds of the model that training goes on from.
    validation : RankingDataset, optional
        With normalised features.

    Attributes
    ----------
    weak_rankers : WeakRankers
        Of all rounds so far, the earlier ones included.
    """

    figures = ("loss", "alpha")

    def __init__(
        self,
        make_booster: Callable[[WeakRankers], Booster],
        thresholds: np.ndarray,
        earlier: WeakRankers,
        validation: RankingDataset | None,
    ) -> None:
        self._make_booster = make_booster
        self._booster: Booster | None = None
        self._thresholds = thresholds
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
        chosen = WeakRankers(rounds.feature, self._thresholds[rounds.feature, rounds.bin], rounds.r)
        self.weak_rankers = self.weak_rankers.then(chosen)
        if self._validation is not None:
            self._stages: Iterator[np.ndarray] = chosen.staged_scores(self._validation, self._scores)
        figures = [
            {"loss": loss, "alpha": alpha}
            for loss, alpha in zip(rounds.loss.tolist(), chosen.alpha.tolist(), strict=True)
        ]
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
