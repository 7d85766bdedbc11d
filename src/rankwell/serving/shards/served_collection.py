"""The collection that an aggregator serves now: its nodes, the newest commits of their indexes, the rankers.

What queries are answered from (a commit of each shard, what is counted over all, the rankers) is replaced as a whole,
after the nodes have been prepared for it: queries that are under way keep the old one, and none waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.errors import DataError, RankwellError
from rankwell.index.text.synonyms import Synonyms
from rankwell.scoring.ranker_file import RankerFile, read_ranker_file
from rankwell.serving.batching import OverloadError
from rankwell.serving.deadline import Deadline
from rankwell.serving.named_rankers import BM25_ALONE, NamedRankers, checked_name
from rankwell.serving.ranking.ranker_passes import RankerPasses
from rankwell.serving.shards import messages, replies
from rankwell.serving.shards.collection import ShardedCollection
from rankwell.serving.shards.node_link import HEALTH_SECONDS, NodeError, NodeLink
from rankwell.serving.shards.shard import Shard, raise_mistake
from rankwell.serving.shards.shard_rankers import ranker_digest
from rankwell.serving.shards.spares import Spares

_log = logging.getLogger("rankwell.serving")

ASIDE_SECONDS = 10.0
"""Calls besides searches may take longer."""


@dataclass(frozen=True, eq=False)
class ShardedSnapshot(NamedRankers):
    """What answers are made from.

    digests : of the ranker files, by which nodes know them
    """

    collection: ShardedCollection
    digests: Mapping[str, str]

    def passes(self, name: str) -> RankerPasses:
        """A ranker's passes over the collection."""
        known = self.collection.passes
        if self.digests[name] not in known:
            known[self.digests[name]] = RankerPasses(self.collection.index, self.files[name].description)
        return known[self.digests[name]]


class ServedCollection:
    """Follows the nodes of a collection.

    Parameters
    ----------
    shards : in the order of their documents
    rankers : ranker files by name; the first is the default, without any it is BM25 alone
    spares : nodes that take the place of those that are gone
    synonyms : words that are found too, in all queries
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        rankers: Mapping[str, str | os.PathLike[str]] | None = None,
        *,
        spares: Spares | None = None,
        synonyms: Synonyms | None = None,
    ) -> None:
        self.shards = list(shards)
        self.spares = spares or Spares(())
        self._synonyms = () if synonyms is None else synonyms.rules
        self._contents = {checked_name(name): Path(path).read_bytes() for name, path in (rankers or {}).items()}
        self._digests = {name: ranker_digest(content) for name, content in self._contents.items()}
        self._files = {name: read_ranker_file(path) for name, path in (rankers or {}).items()}
        self._changed = asyncio.Event()
        self._changing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._current: ShardedSnapshot | None = None
        self._failed = ""
        for link in (*self.links, *self.spares.links):
            link.on_change = self.changed

    @property
    def snapshot(self) -> ShardedSnapshot:
        if self._current is None:
            raise OverloadError("no shard was reached yet.", retry_after=1.0)
        return self._current

    @property
    def links(self) -> list[NodeLink]:
        """To all nodes of shards; a spare in use is one of them."""
        return [link for shard in self.shards for link in shard.links]

    async def start(self, patience: float = 10.0) -> None:
        """Connect to the nodes, and wait for all shards; after some seconds, for at least one.

        Raises DataError if no shard can be reached, or if they do not belong together.
        """
        self._tasks = [asyncio.create_task(link.watch()) for link in (*self.links, *self.spares.links)]
        until = Deadline.after(patience)
        while not all(shard.facts() for shard in self.shards) and not until.is_over:
            await asyncio.sleep(0.02)
        if not any(shard.facts() for shard in self.shards):
            why = "; ".join(f"{link.name}: {link.last_error}" for link in self.links)
            await self.stop()
            raise DataError(f"no node answers ({why}). Start them with `rankwell node`, or wait until they are up.")
        await self._replace_collection()
        self._tasks.append(asyncio.create_task(self._maintain()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def is_available(self, shard: int) -> bool:
        """Whether a shard can be asked now."""
        snapshot = self._current
        if snapshot is None or shard not in snapshot.collection.facts:
            return False
        return bool(self.shards[shard].ready({snapshot.collection.version(shard)}))

    def changed(self) -> None:
        """Look at the nodes again: one of them has another state."""
        self._changed.set()

    def check_ranker(self, name: str, file: RankerFile) -> None:
        """Raise DataError if a ranker cannot be used."""

    async def put_ranker(self, name: str, path: str | os.PathLike[str]) -> None:
        """Add a ranker, or replace the one of that name, on all nodes; queries that are under way keep the old one."""
        content, file = await in_thread(Path(path).read_bytes), await in_thread(read_ranker_file, path)
        async with self._changing:
            self.check_ranker(name, file)
            RankerPasses(self.snapshot.collection.index, file.description)
            digest = ranker_digest(content)
            # Also to nodes that have got it before: they may have given it up since.
            links = [link for link in self.links if link.is_up]
            refusals = await asyncio.gather(*(link.give(messages.PutRanker(content), digest) for link in links))
            for link, refused in zip(links, refusals, strict=True):
                # With a ranker that a node cannot use, its shard would be missing from every answer.
                if refused is not None:
                    raise_mistake(refused)
                    if refused.kind == "failed":
                        raise DataError(f"node {link.name} cannot use the ranker: {refused}")
            self._contents = {**self._contents, checked_name(name): content}
            self._digests = {**self._digests, name: digest}
            self._use({**self._files, name: file}, self.snapshot.collection)

    async def remove_ranker(self, name: str) -> None:
        """Remove a ranker that is not the default."""
        async with self._changing:
            self._use(self.snapshot.without(name), self.snapshot.collection)

    def fallback(self) -> str | None:
        """Why a node ranks on another device than it should, if one does."""
        reasons = [f"{link.name}: {link.facts.fallback}" for link in self.links if link.facts and link.facts.fallback]
        return reasons[0] if reasons else None

    async def _maintain(self) -> None:
        """Follow the nodes: take new commits, count again what a shard was missing from, prepare who came back."""
        while True:
            try:
                async with asyncio.timeout(HEALTH_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            try:
                async with self._changing:
                    await self.spares.look_after(self.shards, self.snapshot.collection.facts)
                    if self._is_outdated():
                        await self._replace_collection()
                    else:
                        await self._prepare(self.snapshot.collection)
                self._failed = ""
            except Exception as error:
                # What is served stays, whatever goes wrong: without this task no node would come back. The same failure
                # is not logged every time.
                if repr(error) != self._failed:
                    is_expected = isinstance(error, RankwellError | OSError)
                    trace = None if is_expected else error
                    _log.error("the shards cannot be served together: %s", error, exc_info=trace)
                self._failed = repr(error)

    def _is_outdated(self) -> bool:
        collection = self.snapshot.collection
        for number, shard in enumerate(self.shards):
            facts, served = shard.facts(), collection.facts.get(number)
            if facts is not None and (served is None or facts.commit != served.commit):
                return True
        return collection.is_full or (collection.is_incomplete and self._could_count(collection))

    def _could_count(self, collection: ShardedCollection) -> bool:
        """Whether all shards could count words now. A node that is back need not be prepared for that: it would be for
        the counts that were made without it. One that refused to be prepared would do so again.
        """
        return all(
            any(
                link.is_up and link.breaker.allows() and collection.version(number) not in link.refused
                for link in shard.links
            )
            for number, shard in enumerate(self.shards)
            if number in collection.facts
        )

    async def _replace_collection(self) -> None:
        """Serve what the nodes have now."""
        before = None if self._current is None else self._current.collection
        facts = {} if before is None else dict(before.facts)
        facts |= {number: own for number, shard in enumerate(self.shards) if (own := shard.facts()) is not None}
        number, epoch = (1, 0) if before is None else (before.number + 1, before.epoch + 1)
        collection = ShardedCollection(dict(sorted(facts.items())), number, epoch, self._synonyms)
        for file in self._files.values():
            RankerPasses(collection.index, file.description)
        await self._prepare(collection)
        await self._order(collection)
        self._use(self._files, collection)

    async def _order(self, collection: ShardedCollection) -> None:
        """Learn the static order of all documents, if they have one."""
        if collection.index.schema.static_order is None:
            return
        orders: dict[int, np.ndarray] = {}
        for number, facts in collection.facts.items():
            version = collection.version(number)
            for link in self.shards[number].ready({version})[:1]:
                with contextlib.suppress(NodeError):
                    orders[number], _ = await link.call(
                        messages.StaticOrder(version), Deadline.after(ASIDE_SECONDS), replies.ordered(facts)
                    )
        collection.order_documents(orders)
        collection.is_incomplete |= len(orders) < len(collection.facts)

    def _use(self, files: Mapping[str, RankerFile], collection: ShardedCollection) -> None:
        self._files = dict(files)
        self._contents = {name: content for name, content in self._contents.items() if name in files}
        self._digests = {name: digest for name, digest in self._digests.items() if name in files}
        version = 1 if self._current is None else self._current.version + 1
        default = next(iter(files), BM25_ALONE)
        self._current = ShardedSnapshot(version, self._files, default, collection, self._digests)

    async def _prepare(self, collection: ShardedCollection) -> None:
        """Give the nodes that live what they lack to answer from a collection."""
        await asyncio.gather(
            *(
                self._prepare_link(link, collection, number)
                for number, shard in enumerate(self.shards)
                for link in shard.links
                if link.is_up and number in collection.facts
            )
        )

    async def _prepare_link(self, link: NodeLink, collection: ShardedCollection, number: int) -> None:
        for name, content in self._contents.items():
            refused = link.refused.get(self._digests[name])
            # A ranker that a node cannot use is not sent again until it is connected anew.
            if self._digests[name] not in link.prepared and (refused is None or refused.kind != "mistake"):
                await link.give(messages.PutRanker(content), self._digests[name])
        version = collection.version(number)
        if version not in link.prepared:
            await link.give(messages.Prepare(version.commit, collection.census), version)


async def in_thread(work: Any, *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, work, *arguments)
