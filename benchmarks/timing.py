"""Timing: how long one thing took, the first call (which compiles) separately from the others."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Timing:
    """What was timed, in seconds.

    Attributes
    ----------
    name : str
    first_s : float
        The first call, with compilation and cold caches. It is also in `times` only if there is no warm-up.
    times : list of float
        The raw times of the calls that count, in the order they were made.
    result : object
        What the last call returned, so that exactly what was timed can be checked.
    """

    name: str
    first_s: float
    times: list[float]
    result: Any = field(default=None, repr=False, compare=False)

    @property
    def minimum(self) -> float:
        return min(self.times)

    @property
    def median(self) -> float:
        return statistics.median(self.times)


def time_function(
    name: str,
    function: Callable[[], Any],
    *,
    repeat: int = 5,
    warmup: int = 1,
    setup: Callable[[], Any] | None = None,
) -> Timing:
    """Call `function` ``warmup + repeat`` times; `setup` runs before each call and is not timed.

    Python's garbage collector is off inside a timed call, as in `timeit`: a collection may be caused by other code
    than the timed function.
    """
    if repeat < 1 or warmup < 0:
        raise ValueError(f"repeat must be 1 or more and warmup 0 or more, got repeat={repeat}, warmup={warmup}.")
    seconds: list[float] = []
    result: Any = None
    for _ in range(warmup + repeat):
        result = None  # release the last result first: two of them would double the memory
        if setup is not None:
            setup()
        elapsed, result = _call(function)
        seconds.append(elapsed)
    return Timing(name, first_s=seconds[0], times=seconds[warmup:], result=result)


def _call(function: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        result = function()
        return time.perf_counter() - start, result
    finally:
        if was_enabled:
            gc.enable()
