"""Rankers kept ready on a device: the least recently used one is evicted when their memory budget is full."""

from __future__ import annotations

import logging
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, Protocol, TypeVar

from rankwell.errors import DeviceError, ParameterError
from rankwell.scoring.description import RankerDescription

logger = logging.getLogger("rankwell")


class Sized(Protocol):
    """A scorer that knows how much device memory its ranker uses."""

    @property
    def nbytes(self) -> int: ...


Scorer = TypeVar("Scorer", bound=Sized)


class RankerCache(Generic[Scorer]):
    """Scorers by key, at most `byte_budget` bytes of them.

    Any number of threads may use it. A ranker is loaded once, by the first thread that asks; others that want the same
    one wait for it, and those that want another one do not. An evicted scorer stays alive while it is in use; then
    its memory is freed.

    Parameters
    ----------
    byte_budget : int
        The device's memory for rankers. Memory that a scorer needs for documents while it scores is not included.
    make : callable
        Makes a scorer from a description: `CudaRankerScorer`.
    """

    def __init__(self, byte_budget: int, make: Callable[[RankerDescription], Scorer]) -> None:
        if byte_budget < 1:
            raise ParameterError(f"must be 1 or more, got {byte_budget}.", parameter="byte_budget")
        self.byte_budget = byte_budget
        self._make = make
        self._kept: OrderedDict[Hashable, Scorer] = OrderedDict()
        self._loading: dict[Hashable, Future[Scorer]] = {}
        self._dead: deque[Hashable] = deque()
        self._lock = threading.Lock()

    def get(self, key: Hashable, load: Callable[[], RankerDescription]) -> Scorer:
        """The scorer under `key`, made from the result of `load` if it is not cached.

        Raises
        ------
        DeviceError
            If the ranker alone takes more than the budget.
        """
        scorer = self._find_or_load(key, load)
        if scorer.nbytes > self.byte_budget:
            raise DeviceError(
                f"the ranker {key!r} takes {scorer.nbytes} bytes, the cache may hold {self.byte_budget}. "
                "Raise the cache's byte budget, or use a smaller ranker."
            )
        return scorer

    def of(self, description: RankerDescription) -> Scorer:
        """The scorer of `description`, cached while the description is alive.

        A scorer that takes more than the budget is made at every call and not cached.
        """
        scorer = self._find_or_load(weakref.ref(description, self._forget_dead), lambda: description)
        if scorer.nbytes > self.byte_budget:
            logger.info(
                "a ranker of %d bytes is prepared at every call: the cache may hold %d.",
                scorer.nbytes,
                self.byte_budget,
            )
        return scorer

    def forget(self, key: Hashable) -> None:
        """Drop the scorer under `key`, if there is one (its ranker file has changed)."""
        with self._lock:
            self._kept.pop(key, None)
            self._loading.pop(key, None)

    @property
    def nbytes(self) -> int:
        """The memory of the cached rankers."""
        with self._lock:
            return self._kept_bytes()

    def keys(self) -> list[Hashable]:
        """The keys, the least recently used first."""
        with self._lock:
            return list(self._kept)

    def _find_or_load(self, key: Hashable, load: Callable[[], RankerDescription]) -> Scorer:
        with self._lock:
            self._drop_dead()
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            others = self._loading.get(key)
            if others is None:
                mine = self._loading[key] = Future()
        if others is not None:
            return others.result()
        try:
            scorer = self._make(load())
        except BaseException as cause:
            self._end_loading(key, mine)
            mine.set_exception(cause)
            raise
        self._end_loading(key, mine, scorer)
        mine.set_result(scorer)
        return scorer

    def _end_loading(self, key: Hashable, mine: Future[Scorer], scorer: Scorer | None = None) -> None:
        with self._lock:
            if self._loading.get(key) is not mine:
                return  # forgotten while it was being loaded
            del self._loading[key]
            if scorer is not None and scorer.nbytes <= self.byte_budget:
                self._kept[key] = scorer
                while self._kept_bytes() > self.byte_budget:
                    self._kept.popitem(last=False)

    def _kept_bytes(self) -> int:
        return sum(scorer.nbytes for scorer in self._kept.values())

    def _forget_dead(self, key: Hashable) -> None:
        """Called by the garbage collector at any time, also in a thread that is inside this cache."""
        self._dead.append(key)
        if self._lock.acquire(blocking=False):
            try:
                self._drop_dead()
            finally:
                self._lock.release()

    def _drop_dead(self) -> None:
        while self._dead:
            self._kept.pop(self._dead.popleft(), None)
