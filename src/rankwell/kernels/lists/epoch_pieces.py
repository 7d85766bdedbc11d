"""The pieces of an epoch: how many queries a kernel trains on before Python can react to a signal (Ctrl-C)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

# A user should wait for at most a second; a quarter of it, because queries differ in length.
_SECONDS_PER_PIECE = 0.25
_FIRST_LENGTH = 64


class EpochPieces:
    """Divides an epoch's queries into pieces of a fraction of a second. What is trained must not depend on it.

    The first pieces are short, since they may include compilation, and a piece is at most twice as long as the last.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._length = _FIRST_LENGTH

    def slices(self, n_queries: int) -> Iterator[slice]:
        """The pieces in order; the time until the next one is asked for is taken as the time of this one."""
        start = 0
        while start < n_queries:
            piece = slice(start, min(start + self._length, n_queries))
            before = self._clock()
            yield piece
            seconds = self._clock() - before
            start = piece.stop
            self._length = _fitting(piece.stop - piece.start, seconds, 2 * self._length)


def _fitting(n_queries: int, seconds: float, most: int) -> int:
    """How many queries fit, if `n_queries` took `seconds`."""
    if seconds * most <= _SECONDS_PER_PIECE * n_queries:
        return most
    return max(1, int(_SECONDS_PER_PIECE * n_queries / seconds))
