"""Where batches are ranked: on the CPU, or on a device if that is quicker for so many queries.

A device has a fixed cost per batch (packing, copies, launches) and a low one per query, a CPU the opposite: from the
break-even size on, the device is quicker. Both are measured when a ranker is loaded. If the device fails or is missing,
the CPU gives the same answers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rankwell.index.query.query import Query
from rankwell.kernels.device_report import report_device
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.scorer import scoring_device
from rankwell.serving.ranking.device_health import DeviceHealth
from rankwell.serving.ranking.ranked_search import RankedResult, RankedSearch

CPU_BATCH = 16
"""How many queries are ranked together on a CPU: more save little.

Of the demo, a query in full batches of 1, 2, 4, 8, 16, 32, 64 takes 928, 707, 583, 523, 477, 458, 452 µs of processor
time. At 90 % of the capacity batches have 9 to 13 queries where up to 16, 32 or 64 may be in them, and take 546, 545
and 565 µs a query; up to 4 do not keep up (`python -m benchmarks serve_batch_sizes`, on two cores).
"""

# The batches that are measured, each twice: the first call on a device prepares the second.
_MEASURED_SIZES = (1, 4, 16, 64)
_MEASURING_SECONDS = 0.8
# A batch that is so much more expensive per query than the best is still worth its shorter wait.
_WORTH_WAITING = 1.1


@dataclass(frozen=True)
class BatchCosts:
    """Seconds of ranking by the size of a batch, measured on both.

    documents : how many a query had, on average
    break_even : the number of queries from which on the device is quicker; infinite if it never is
    best_size : the smallest batch that costs about as little per query as any
    """

    on_cpu: Mapping[int, float]
    on_device: Mapping[int, float]
    documents: float = 0.0

    @property
    def break_even(self) -> float:
        gains = [(size, self.on_cpu[size] - self.on_device[size]) for size in sorted(self.on_device)]
        above = math.inf
        for (size, gain), before in zip(reversed(gains), [*reversed(gains[:-1]), None], strict=True):
            if gain <= 0:
                break
            above = float(size)
            if before is not None and before[1] <= 0:
                # Costs grow linearly between two sizes.
                above = before[0] + (size - before[0]) * -before[1] / (gain - before[1])
        return above

    @property
    def best_size(self) -> int:
        each = {size: seconds / size for size, seconds in self.on_device.items()}
        best = min(each.values())
        return min(size for size, seconds in each.items() if seconds <= _WORTH_WAITING * best)


class Placed(NamedTuple):
    """Results, the device that gave them, and why it is not the one that should have."""

    results: list[RankedResult]
    device: str
    fallback: str | None


class PlacedSearch:
    """Ranked search by one ranker, on the CPU and on a device.

    Parameters
    ----------
    on_cpu : RankedSearch
    make : makes the same search on a device; it is called when the device is used first, and again after a failure
    health : DeviceHealth, optional
        Of the device that should be used, if there is one.
    costs : BatchCosts, optional
        The device is used from their break-even on; without them, always.
    always : bool
        Whether the device is used for batches of any size.
    """

    def __init__(
        self,
        on_cpu: RankedSearch,
        make: Callable[[str], RankedSearch],
        health: DeviceHealth | None = None,
        costs: BatchCosts | None = None,
        *,
        always: bool = False,
    ) -> None:
        self.on_cpu, self.health, self.costs, self._always = on_cpu, health, costs, always
        self._make = make
        self._on_device: RankedSearch | None = None

    @property
    def break_even(self) -> float:
        """The number of queries from which on the device is used."""
        return 1.0 if self._always or self.costs is None else self.costs.break_even

    @property
    def batch_size(self) -> int:
        """How many queries should be ranked together at most."""
        if self.health is None:
            return CPU_BATCH
        return max(_MEASURED_SIZES) if self.costs is None else max(CPU_BATCH, self.costs.best_size)

    def search_many(
        self,
        queries: Sequence[Query],
        k: int,
        *,
        query_ids: Sequence[str | None] | None = None,
        deadline: Sequence[float] | None = None,
        stop_after: Sequence[int | None] | None = None,
    ) -> Placed:
        """As `RankedSearch.search_many`, on the device that suits the number of queries."""
        health = self.health
        more: dict[str, Any] = {"query_ids": query_ids, "deadline": deadline, "stop_after": stop_after}
        if health is None or len(queries) < self.break_even:
            return Placed(self.on_cpu.search_many(queries, k, **more), "cpu", None)
        failure: Exception | None = None
        if health.may_be_used:
            try:
                found = self._device_search().search_many(queries, k, **more)
                health.report_success()
                return Placed(found, health.device, None)
            except Exception as error:
                # A device's state after a failure is unknown: all that is on it is made anew.
                self._on_device, failure = None, error
        found = self.on_cpu.search_many(queries, k, **more)
        # What fails on the CPU too is not the device's fault, and has been raised by now.
        if failure is not None:
            health.report_failure(failure)
        return Placed(found, "cpu", health.reason)

    def measure(self, queries: Sequence[Query]) -> None:
        """Measure `costs` by these queries, for less than a second; a device that fails is reported."""
        if self.health is None or not queries:
            return
        measured: tuple[dict[int, float], dict[int, float]] = {}, {}
        documents = 0.0
        try:
            searches = self.on_cpu, self._device_search()
            for search in searches:
                search.search_many(queries[:1])
            started = before = time.monotonic()
            for size in _MEASURED_SIZES:
                batch = [queries[number % len(queries)] for number in range(size)]
                for search, seconds in zip(searches, measured, strict=True):
                    search.search_many(batch)
                    found = search.search_many(batch)
                    seconds[size] = found[0].seconds["rank"]
                    documents = sum(result.n_candidates for result in found) / size
                now = time.monotonic()
                # The next size takes about four times as long as this one.
                if now + 4 * (now - before) > started + _MEASURING_SECONDS:
                    break
                before = now
        except Exception as error:
            self._on_device = None
            self.health.report_failure(error)
            return
        self.costs = BatchCosts(*measured, documents)

    def _device_search(self) -> RankedSearch:
        if self._on_device is None:
            self._on_device = self._make("cuda" if self.health is None else self.health.device)
        return self._on_device


def batch_size_on(device: str) -> int:
    """How many requests should be taken together at most by a process whose rankers, which are measured, come later."""
    is_used = device == "cuda" or (device == "auto" and report_device("cuda").usable)
    return max(_MEASURED_SIZES) if is_used else CPU_BATCH


def suits_device(description: RankerDescription) -> bool:
    """Whether this machine has a device that accepts a ranker."""
    return scoring_device(description, "auto") != "cpu"
