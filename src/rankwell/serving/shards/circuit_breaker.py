"""The circuit breaker of a node: one that fails is left alone for a while, then tried by a single request."""

from __future__ import annotations

import time
from collections.abc import Callable

CLOSED, HALF_OPEN, OPEN = "closed", "half-open", "open"


class CircuitBreaker:
    """Closed lets requests through, open none, half-open one.

    Parameters
    ----------
    most_failures : int
        How many requests in a row must fail to open it.
    pause : float
        Seconds that it stays open. Each time the trial fails, twice as long, up to `longest_pause`.
    """

    def __init__(
        self,
        most_failures: int = 3,
        pause: float = 0.5,
        longest_pause: float = 4.0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most, self._first_pause, self._longest = most_failures, pause, longest_pause
        self._clock = clock
        self._n_failures = 0
        self._pause = pause
        self._open_until: float | None = None
        self._is_trying = False

    @property
    def state(self) -> str:
        if self._open_until is None:
            return CLOSED
        return OPEN if self._clock() < self._open_until else HALF_OPEN

    def allows(self) -> bool:
        """Whether a request would be let through now."""
        return self.state == CLOSED or (self.state == HALF_OPEN and not self._is_trying)

    def begin(self) -> None:
        """A request is sent; while half-open it is the only one."""
        self._is_trying = self.state == HALF_OPEN

    def succeed(self) -> None:
        self._n_failures, self._open_until, self._pause, self._is_trying = 0, None, self._first_pause, False

    def withdraw(self) -> None:
        """A request ended without saying anything about the node."""
        self._is_trying = False

    def fail(self, *, at_once: bool = False) -> None:
        """A request failed; `at_once` opens it whatever came before."""
        self._n_failures += 1
        if self._open_until is not None:
            self._pause = min(2 * self._pause, self._longest)
        if at_once or self._open_until is not None or self._n_failures >= self._most:
            self._open_until = self._clock() + self._pause
        self._is_trying = False
