"""A closed load in one process: clients that each ask a batcher again as soon as they have their answer.

A client is a callback on the future of its answer, so that no threads besides the batcher's own compete for the
interpreter lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwell.serving.batching import Batcher


@dataclass(frozen=True)
class ClosedOutcome:
    """latencies : float64, seconds, of the answers that came; seconds : how long the load took"""

    latencies: np.ndarray
    seconds: float

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        return float(np.percentile(self.latencies, share))


class _Clients:
    def __init__(self, batcher: Batcher[Any, Any], next_request: Callable[[], Any], seconds: float) -> None:
        self._batcher, self._next_request = batcher, next_request
        self.latencies: list[float] = []
        self.failure: BaseException | None = None
        self.is_over = threading.Semaphore(0)
        self._end = time.perf_counter() + seconds

    def ask(self) -> None:
        asked = time.perf_counter()
        future = self._batcher.submit(self._next_request())
        future.add_done_callback(lambda answered: self._answered(answered, asked))

    def _answered(self, future: Future[Any], asked: float) -> None:
        now = time.perf_counter()
        self.failure = self.failure or future.exception()
        self.latencies.append(now - asked)
        if now < self._end and self.failure is None:
            try:
                self.ask()
                return
            except Exception as error:
                self.failure = error
        self.is_over.release()


def closed_load(
    batcher: Batcher[Any, Any], next_request: Callable[[], Any], *, n_clients: int, seconds: float
) -> ClosedOutcome:
    """The answers that so many clients get in so many seconds. What fails is raised."""
    started = time.perf_counter()
    clients = _Clients(batcher, next_request, seconds)
    for _ in range(n_clients):
        clients.ask()
    for _ in range(n_clients):
        clients.is_over.acquire()
    if clients.failure is not None:
        raise clients.failure
    return ClosedOutcome(np.array(clients.latencies), time.perf_counter() - started)
