"""The rounds of a query: what is asked of all shards at once, each until a limit on the way to the deadline.

What a shard owes at the limit is left out: the shard is missing from then on, and the query goes on without it. In a
pass of ranking it is late instead, since its documents are known: they keep the order that they have, and are shown. A
round of ranking that no shard answers in time is given up: the query goes on with the order that it has.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rankwell.serving.batching import OverloadError
from rankwell.serving.deadline import Deadline
from rankwell.serving.shards import messages
from rankwell.serving.shards.collection import ShardedCollection
from rankwell.serving.shards.node_link import NodeCall, NodeError
from rankwell.serving.shards.shard import Shard, overload_of, raise_mistake

T = TypeVar("T")
Call = NodeCall[T] | asyncio.Task[tuple[T, float]]

# Where on the way to the deadline each round must end, and what it has at least of the time that is left then: rounds
# may be repeated, and one that waited for a node until its limit must leave time for the next one of its kind.
_LIMITS = {
    "count": 0.3, "select": 0.6, "words": 0.66, "terms": 0.7, "first": 0.76, "second": 0.86, "show": 0.97,
    "replace": 1.0,
}  # fmt: skip
_LEAST_SHARE = 1 / 3
# What showing has in any case, in seconds: an answer that is a little late is better than none, as of one index.
_LEAST_TO_SHOW = 0.05
# The stage that the time of a round counts for.
_STAGES = {
    "count": "parse", "select": "select", "words": "rank", "terms": "rank", "first": "rank", "second": "rank",
    "show": "captions", "replace": "captions",
}  # fmt: skip
# The passes of a ranker: who is late there can still show its documents.
_PASSES = frozenset({"first", "second"})
# How shards fail that would have answered with more time.
_LATE = frozenset({"timeout", "deadline", "overload"})


class UnansweredError(OverloadError):
    """No shard answered a round in time."""


class Rounds:
    """The shards that one query is asked of.

    Attributes
    ----------
    missing : shards that did not answer in time or at all, and why
    late : shards that did not rank in time, and why; no other pass is asked of them
    given_up : why a round has no answers that the query can do without; None if there is no such round
    devices : where nodes ranked
    seconds : by stage, how long the slowest node took for it, and what was scored here; what is left is merging and the
        network
    """

    def __init__(self, shards: Sequence[Shard], collection: ShardedCollection, deadline: Deadline) -> None:
        self._shards, self._collection, self._deadline = shards, collection, deadline
        self._started = time.monotonic()
        self.seconds: dict[str, float] = {}
        self.devices: set[str] = set()
        self.given_up: NodeError | None = None
        self.late: dict[int, NodeError] = {}
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

    def unanswered(self) -> UnansweredError:
        """The refusal of a query that no shard answers."""
        return UnansweredError(f"no shard answered ({self.why()}). Try again.", retry_after=1.0)

    def why(self) -> str:
        """Why shards are missing or late, or a round was given up."""
        failed = self.missing | {shard: error for shard, error in self.late.items() if shard not in self.missing}
        reasons = [f"{self._shards[shard].name}: {error}" for shard, error in failed.items()]
        return "; ".join(reasons if self.given_up is None else [*reasons, str(self.given_up)])

    async def ask(
        self, stage: str, bodies: Mapping[int, Any], checks: Mapping[int, Callable[[Any], T]], ranker: str | None = None
    ) -> dict[int, T]:
        """The replies of shards that come before the stage must end; the others are missing from now on, or late.

        There are none, and no shard is missing for it, if there was no time to ask, or if it was a round of ranking
        that no shard answered in time.
        """
        until = self._limit(stage)
        if bodies and until.is_over:
            self.given_up = NodeError("timeout", "no time was left")
            return {}
        calls, failed = self._begin(bodies, checks, until, ranker)
        await _wait(calls, until)
        answers, slowest = {}, 0.0
        for shard, call in calls.items():
            try:
                answers[shard], seconds = _concluded(call)
                slowest = max(slowest, seconds)
            except NodeError as error:
                raise_mistake(error)
                failed[shard] = error
        self.add_seconds(_STAGES[stage], slowest)
        if failed and not answers and _STAGES[stage] == "rank" and all(one.kind in _LATE for one in failed.values()):
            self.given_up = next(iter(failed.values()))
            return {}
        late = {shard: error for shard, error in failed.items() if stage in _PASSES and error.kind in _LATE}
        self.late |= late
        self.missing |= {shard: error for shard, error in failed.items() if shard not in late}
        overload = None if self.present else overload_of(list(self.missing.values()))
        if overload is not None:
            raise overload
        return answers

    def _limit(self, stage: str) -> Deadline:
        """When a round that begins now must end."""
        by_stage = self._started + _LIMITS[stage] * (self._deadline.at - self._started)
        least = max(0.0, _LEAST_SHARE * self._deadline.remaining)
        if _STAGES[stage] == "captions":
            least = max(least, _LEAST_TO_SHOW)
        return Deadline(max(by_stage, time.monotonic() + least))

    def _begin(
        self,
        bodies: Mapping[int, Any],
        checks: Mapping[int, Callable[[Any], T]],
        until: Deadline,
        ranker: str | None,
    ) -> tuple[dict[int, Call[T]], dict[int, NodeError]]:
        """The calls under way, and why the others cannot be made."""
        calls: dict[int, Call[T]] = {}
        failed: dict[int, NodeError] = {}
        for shard, body in bodies.items():
            needed: set[messages.Version | str] = {self._collection.version(shard)} | ({ranker} if ranker else set())
            try:
                calls[shard] = self._shards[shard].begin(body, until, checks[shard], needed)
            except NodeError as error:
                failed[shard] = error
        return calls, failed


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
