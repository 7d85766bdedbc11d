"""The result cache: answers that were given before, within a budget of bytes and for a limited time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from rankwell.errors import ParameterError

Value = TypeVar("Value")

# What an entry takes besides its answer: key, links and counters.
_ENTRY_BYTES = 512


@dataclass(frozen=True)
class _Entry(Generic[Value]):
    value: Value
    n_bytes: int
    expires: float


class ResultCache(Generic[Value]):
    """The answers that were used last.

    What a key contains is what an answer depends on: with the version of index and rankers in it, an answer of an
    earlier version is never found again, also if it comes after the change.

    Parameters
    ----------
    budget : int
        Bytes; 0 keeps nothing.
    expiry : float
        Seconds after which an answer is not given again.
    """

    def __init__(
        self, budget: int = 64 << 20, expiry: float = 300.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if budget < 0:
            raise ParameterError(f"must be 0 or more bytes, got {budget}.", parameter="budget")
        self.budget, self.expiry = budget, expiry
        self.n_bytes = 0
        self._clock = clock
        self._entries: OrderedDict[Hashable, _Entry[Value]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Value | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if self._clock() >= entry.expires:
                self._remove(key)
                return None
            self._entries.move_to_end(key)
            return entry.value

    def put(self, key: Hashable, value: Value, n_bytes: int) -> None:
        """Keep an answer of `n_bytes` bytes; the ones used longest ago make room for it."""
        n_bytes += _ENTRY_BYTES
        with self._lock:
            if key in self._entries:
                self._remove(key)
            if n_bytes > self.budget:
                return
            while self.n_bytes + n_bytes > self.budget:
                self._remove(next(iter(self._entries)))
            self._entries[key] = _Entry(value, n_bytes, self._clock() + self.expiry)
            self.n_bytes += n_bytes

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self.n_bytes = 0

    def _remove(self, key: Hashable) -> None:
        self.n_bytes -= self._entries.pop(key).n_bytes
