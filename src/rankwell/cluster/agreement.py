"""Workers agree: each asks all others, and keeps the answers, so that a worker that is restarted need not ask again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rankwell.cluster.exchange import Exchange
from rankwell.data.agreement import Agreement


class WorkersAgreement(Agreement):
    """The answers of all workers; see `Agreement`.

    Parameters
    ----------
    exchange : Exchange
    recorded : sequence of arrays, optional
        The answers that another worker had to the same questions: they are given again, and nobody is asked.

    Attributes
    ----------
    answers : list of arrays
        Those given so far.
    """

    def __init__(self, exchange: Exchange, recorded: Sequence[np.ndarray] | None = None) -> None:
        self._exchange = exchange
        self._recorded = None if recorded is None else list(recorded)
        self._is_settling = False
        self.is_alone = exchange.n_workers == 1
        self.answers: list[np.ndarray] = []

    def settled(self, compute: Callable[[], np.ndarray]) -> np.ndarray:
        if self._is_settling:
            return compute()
        if self._recorded is not None:
            answer = self._recorded[len(self.answers)]
        else:
            self._is_settling = True
            answer = compute()
            self._is_settling = False
        self.answers.append(answer)
        return answer

    def largest(self, values: np.ndarray) -> np.ndarray:
        return self.settled(lambda: np.maximum.reduce(self._gathered(values)).reshape(values.shape))

    def added(self, values: np.ndarray) -> np.ndarray:
        return self.settled(lambda: self._exchange.sum(values))

    def total(self, values: np.ndarray) -> float:
        return float(self.settled(lambda: np.array([self.joined(values).sum()]))[0])

    def joined(self, values: np.ndarray) -> np.ndarray:
        return self.settled(lambda: np.concatenate(self._gathered(values)))

    def first(self, values: np.ndarray) -> np.ndarray:
        """The first worker's array."""
        return self.settled(lambda: self._gathered(values)[0])

    def _gathered(self, values: np.ndarray) -> list[np.ndarray]:
        return [found.reshape(-1) for found in self._exchange.gather(values)]
