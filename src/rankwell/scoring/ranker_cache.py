"""Rankers kept ready on a device: the least recently used one goes when the memory set aside for them is full."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from rankwell.errors import DeviceError, ParameterError
from rankwell.scoring.description import RankerDescription


class Sized(Protocol):
    """An evaluator that knows how much device memory its ranker takes."""

    @property
    def nbytes(self) -> int: ...


Evaluator = TypeVar("Evaluator", bound=Sized)


class RankerCache(Generic[Evaluator]):
    """Evaluators by key, at most `byte_budget` bytes of them.

    Parameters
    ----------
    byte_budget : int
        Device memory for rankers. What an evaluator needs for documents while it scores comes on top.
    make : callable
        Makes an evaluator of a description: `CudaRankerScorer`.

    Any number of threads may ask; a ranker is uploaded once. An evaluator that was evicted lives on as long as somebody
    holds it, and its memory is free after that.
    """

    def __init__(self, byte_budget: int, make: Callable[[RankerDescription], Evaluator]) -> None:
        if byte_budget < 1:
            raise ParameterError(f"byte_budget must be 1 or more, got {byte_budget}.")
        self.byte_budget = byte_budget
        self._make = make
        self._kept: OrderedDict[Hashable, Evaluator] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, load: Callable[[], RankerDescription]) -> Evaluator:
        """The evaluator under `key`, made of what `load` returns where it is not kept yet."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            evaluator = self._make(load())
            if evaluator.nbytes > self.byte_budget:
                raise DeviceError(
                    f"the ranker {key!r} takes {evaluator.nbytes} bytes, the cache may hold {self.byte_budget}. "
                    "Raise the cache's byte budget, or use a smaller ranker."
                )
            self._kept[key] = evaluator
            while self.nbytes > self.byte_budget:
                self._kept.popitem(last=False)
            return evaluator

    def forget(self, key: Hashable) -> None:
        """Drop the evaluator under `key`, if there is one (its ranker file has changed)."""
        with self._lock:
            self._kept.pop(key, None)

    @property
    def nbytes(self) -> int:
        """What the kept rankers take."""
        return sum(evaluator.nbytes for evaluator in self._kept.values())

    def keys(self) -> list[Hashable]:
        """What is kept, the least recently used first."""
        return list(self._kept)
