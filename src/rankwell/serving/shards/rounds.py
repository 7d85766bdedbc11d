"""The rounds of a query: what is asked of all shards at once, each until a limit on the way to the deadline.

What a shard owes at the limit is left out: the shard is missing from then on, and the query goes on without it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rankwell.serving.deadline import Deadline
from rankwell.serving.shards import messages
from rankwell.serving.shards.collection import ShardedCollection
from rankwell.serving.shards.node_link import NodeCall, NodeError
from rankwell.serving.shards.shard import Shard, overload_of, raise_mistake

T = TypeVar("T")
Call = NodeCall[T] | asyncio.Task[tuple[T, float]]

# Where on the way to the deadline each round must end.
_LIMITS = {"count": 0.3, "select": 0.6, "words": 0.7, "first": 0.8, "second": 0.92, "show": 1.0}
# The stage that the time of a round counts for.
_STAGES = {
    "count": "parse", "select": "select", "words": "rank", "first": "rank", "second": "rank", "show": "captions",
}  # fmt: skip


class Rounds:
    """The shards that one query is asked of.

    Attributes
    ----------
    missing : shards that did not answer in time or at all, and why
    devices : where nodes ranked
    seconds : by stage, how long the slowest node took for it, and what was scored here; what is left is merging and the
        network
    """

    def __init__(self, shards: Sequence[Shard], collection: ShardedCollection, deadline: Deadline) -> None:
        self._shards, self._collection, self._deadline = shards, collection, deadline
        self._started = time.monotonic()
        self.seconds: dict[str, float] = {}
        self.devices: set[str] = set()
        self.missing: dict[int, NodeError] = {
            shard: NodeError("connection", "it was not reached yet")
            for shard in range(len(shards))
            if shard not in collection.facts
        }

    @property
    def present(self) -> list[int]:
        """The shards that have answered so far."""
        return [shard for shard in range(len(self._shards)) if shard not in self.missing]

    def add_seconds(self, stage: str, seconds: float) -> None:
        """Count time for a stage of the answer."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    async def ask(
        self, stage: str, bodies: Mapping[int, Any], checks: Mapping[int, Callable[[Any], T]], ranker: str | None = None
    ) -> dict[int, T]:
        """The replies of shards that come before the stage must end; the others are missing from now on."""
        until = Deadline(self._started + _LIMITS[stage] * (self._deadline.at - self._started))
        calls = self._begin(bodies, checks, until, ranker)
        await _wait(calls, until)
        answers, slowest = {}, 0.0
        for shard, call in calls.items():
            try:
                answers[shard], seconds = _concluded(call)
                slowest = max(slowest, seconds)
            except NodeError as error:
                raise_mistake(error)
                self.missing[shard] = error
        self.add_seconds(_STAGES[stage], slowest)
        overload = None if self.present else overload_of(list(self.missing.values()))
        if overload is not None:
            raise overload
        return answers

    def _begin(
        self,
        bodies: Mapping[int, Any],
        checks: Mapping[int, Callable[[Any], T]],
        until: Deadline,
        ranker: str | None,
    ) -> dict[int, Call[T]]:
        calls: dict[int, Call[T]] = {}
        for shard, body in bodies.items():
            needed: set[messages.Version | str] = {self._collection.version(shard)} | ({ranker} if ranker else set())
            try:
                calls[shard] = self._shards[shard].begin(body, until, checks[shard], needed)
            except NodeError as error:
                self.missing[shard] = error
        return calls


async def _wait(calls: Mapping[int, Call[T]], until: Deadline) -> None:
    """Until all calls are done, or there is no more time."""
    if not calls:
        return
    # Of one node the call itself is waited for, without a task for each.
    awaited: list[asyncio.Future[Any]] = [
        call.future if isinstance(call, NodeCall) else call for call in calls.values()
    ]
    try:
        await asyncio.wait(awaited, timeout=max(0.0, until.remaining))
    except asyncio.CancelledError:
        for call in calls.values():
            call.withdraw() if isinstance(call, NodeCall) else call.cancel()
        raise


def _concluded(call: Call[T]) -> tuple[T, float]:
    if isinstance(call, NodeCall):
        return call.conclude()
    if not call.done():
        call.cancel()
        raise NodeError("timeout", "no replica answered in time")
    return call.result()
