"""A shard as an aggregator sees it: one or several nodes with the same index.

A request goes to the replica with the fewest requests under way, of those that did not lose against another one just
now. If it fails, the next one is asked; if it is slower
than nearly all requests of its kind were, the next one is asked too, and the first answer counts. Such hedged requests
are a bounded share of all, so that they cannot double the load of a shard that is slow because it has too much to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

from rankwell.errors import DataError, ParameterError
from rankwell.serving.batching import OverloadError
from rankwell.serving.deadline import Deadline
from rankwell.serving.shards import messages
from rankwell.serving.shards.circuit_breaker import OPEN
from rankwell.serving.shards.latency_quantile import LatencyQuantile
from rankwell.serving.shards.node_link import NodeCall, NodeError, NodeLink

T = TypeVar("T")

HEDGED_SHARE = 0.1
"""At most this share of requests is sent to a second replica because the first is slow."""

_MOST_SAVED_HEDGES = 10.0


class Shard:
    """The replicas of a shard.

    Attributes
    ----------
    links : the nodes; a spare that has taken a dead node's place is one of them
    n_hedged : requests that were sent to a second replica because the first was slow; n_won : those that it answered
    """

    def __init__(self, links: list[NodeLink]) -> None:
        self.links = links
        self.n_hedged = self.n_won = 0
        self._hedges = _MOST_SAVED_HEDGES
        self._latencies: dict[type, LatencyQuantile] = {}

    @property
    def name(self) -> str:
        return "|".join(link.name for link in self.links)

    def facts(self) -> messages.Facts | None:
        """What is served: the commit that most of the nodes that live have, of equal ones the newest."""
        alive = [link.facts for link in self.links if link.is_up and link.facts is not None]
        commits = [facts.commit for facts in alive]
        return max(alive, key=lambda facts: (commits.count(facts.commit), facts.generation), default=None)

    def ready(self, needed: set[messages.Version | str]) -> list[NodeLink]:
        """The nodes that can be asked now, those with the fewest requests first; last those that others outran."""
        able = [link for link in self.links if link.is_up and needed <= link.prepared and link.breaker.allows()]
        return sorted(able, key=lambda link: (link.pace.state == OPEN, link.n_waiting))

    def begin(
        self, body: Any, deadline: Deadline, check: Callable[[Any], T], needed: set[messages.Version | str]
    ) -> NodeCall[T] | asyncio.Task[tuple[T, float]]:
        """Ask for a reply: of one node, a call to conclude; of several, a task. Raises NodeError."""
        left = self.ready(needed)
        if not left:
            raise NodeError("connection", self._why_not(needed))
        if len(left) == 1:
            return left[0].begin(body, deadline, check)
        return asyncio.create_task(self._race(body, deadline, check, left))

    async def _race(
        self, body: Any, deadline: Deadline, check: Callable[[Any], T], left: list[NodeLink]
    ) -> tuple[T, float]:
        """The first good reply of a replica, and the seconds that the node worked on it. Raises NodeError."""
        self._hedges = min(self._hedges + HEDGED_SHARE, _MOST_SAVED_HEDGES)
        latency, started = self._latencies.setdefault(type(body), LatencyQuantile()), time.monotonic()
        asked_first = left.pop(0)
        first = asyncio.create_task(asked_first.call(body, deadline, check))
        running, hedge, error = {first}, None, NodeError("connection", "no replica answered")
        try:
            while running:
                patience = latency.value if hedge is None and left and self._hedges >= 1.0 else None
                done, running = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                if not done and patience is not None:
                    self._hedges -= 1.0
                    self.n_hedged += 1
                    hedge = asyncio.create_task(left.pop(0).call(body, deadline, check))
                    running.add(hedge)
                for task in done:
                    try:
                        answer = task.result()
                        self.n_won += task is hedge
                        if task is hedge and first in running:
                            # One whose ranking hangs lives otherwise, and would be asked first again and again.
                            asked_first.pace.fail()
                        latency.add(time.monotonic() - started)
                        return answer
                    except NodeError as failed:
                        error = failed
                        if failed.kind == "mistake":
                            raise
                if not running and left and not deadline.is_over:
                    running = {asyncio.create_task(left.pop(0).call(body, deadline, check))}
            raise error
        finally:
            for task in running:
                task.cancel()

    def _why_not(self, needed: set[messages.Version | str]) -> str:
        return "; ".join(_why_not_asked(link, needed) for link in sorted(self.links, key=lambda link: link.is_up))


def _why_not_asked(link: NodeLink, needed: set[messages.Version | str]) -> str:
    """Why a node cannot be asked for what needs these versions and rankers."""
    if not link.is_up:
        return f"{link.name}: {link.last_error}"
    refused = [str(link.refused[one]) for one in needed if one in link.refused]
    if refused:
        return f"{link.name} did not take what it needs for the answer: {refused[0]}"
    if not needed <= link.prepared:
        return f"{link.name} is being prepared and can be asked soon"
    return f"{link.name} failed and is left alone for a while"


def raise_mistake(error: NodeError) -> None:
    """What a user did wrong is told, as one index would tell it."""
    failure = error.failure
    if failure is not None and failure.kind == "mistake":
        if failure.parameter is not None:
            mistake = ParameterError(failure.text)
            # The text names it already.
            mistake.parameter = failure.parameter
            raise mistake
        raise DataError(failure.text)


def overload_of(errors: list[NodeError]) -> OverloadError | None:
    """If any node had too much to do: when to try again."""
    refused = [error.failure for error in errors if error.failure is not None and error.kind == "overload"]
    if not refused:
        return None
    return OverloadError(refused[0].text, retry_after=max(one.retry_after for one in refused))
