"""Spare nodes: each takes the place of the nodes of a shard that are all gone, until one of them is back."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from rankwell.serving.shards import messages
from rankwell.serving.shards.node_link import NodeError, NodeLink
from rankwell.serving.shards.shard import Shard

_log = logging.getLogger("rankwell.serving")

# A shard without a node gets a spare after so many seconds: restarting a process is often quicker.
PATIENCE = 1.0


class Spares:
    """The spare nodes of an aggregator.

    Parameters
    ----------
    links : to nodes that were started with `rankwell node --spare`
    """

    def __init__(self, links: Sequence[NodeLink], *, patience: float = PATIENCE) -> None:
        self.links, self._patience = list(links), patience
        self._used: dict[int, NodeLink] = {}
        self._down_since: dict[int, float] = {}

    @property
    def n_used(self) -> int:
        return len(self._used)

    async def look_after(self, shards: Sequence[Shard], served: Mapping[int, messages.Facts]) -> None:
        """Give spares to shards without a living node, and take back those that are not needed any more.

        served : by shard, what a node of it must have
        """
        for number, shard in enumerate(shards):
            used = self._used.get(number)
            if used is not None and not used.is_up:
                # Another one may be free.
                self._take_back(number, shard, "is gone")
            own = [link for link in shard.links if link is not used]
            is_alive = any(link.is_up and link.prepared for link in own)
            if is_alive:
                self._down_since.pop(number, None)
                self._take_back(number, shard, "is free again")
            elif number in served and number not in self._used:
                since = self._down_since.setdefault(number, time.monotonic())
                if time.monotonic() - since >= self._patience:
                    await self._give(number, shard, served[number])

    def _take_back(self, number: int, shard: Shard, why: str) -> None:
        link = self._used.pop(number, None)
        if link is not None:
            shard.links = [one for one in shard.links if one is not link]
            _log.warning("spare node %s %s", link.name, why)

    async def _give(self, number: int, shard: Shard, facts: messages.Facts) -> None:
        for link in self.links:
            if link in self._used.values() or not link.is_connected:
                continue
            try:
                await link.order(messages.Open(facts.folder))
                await link.look()
            except NodeError as error:
                _log.warning("spare node %s cannot open %s: %s", link.name, facts.folder, error)
                continue
            if link.facts is not None and link.facts.commit == facts.commit:
                self._used[number] = link
                shard.links = [*shard.links, link]
                _log.warning("spare node %s takes the place of %s", link.name, shard.links[0].name)
                return
