"""A node of a sharded collection: one shard's index, which answers an aggregator's requests.

A node keeps no names of rankers and no state of a query between requests: each request names the commit of the index,
the census that its statistics come from and the digest of the ranker, so that an answer is made of one of each, and
any replica gives the same.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from rankwell.errors import ParameterError
from rankwell.features.own_features import OwnFeatures
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import BM25
from rankwell.index.search.selector import Selector
from rankwell.serving.deadline import Deadline
from rankwell.serving.shards import messages
from rankwell.serving.shards.missing import MissingError
from rankwell.serving.shards.shard_facts import count, facts_of, try_out
from rankwell.serving.shards.shard_rankers import ScoreInTime, ShardRankers
from rankwell.serving.shards.shard_view import ShardView, selected
from rankwell.serving.shards.statistics import digest

_log = logging.getLogger("rankwell.serving")

# How many commits are kept, the newest ones, and how many censuses: those that were used last.
_COMMITS_KEPT = 3
_CENSUSES_KEPT = 4


@dataclass(frozen=True)
class NodeRequest:
    """A request to a node, and until when it is wanted."""

    body: messages.Request
    deadline: Deadline


class ShardNode:
    """Answers batches of requests over one shard.

    Parameters
    ----------
    index : Index or path
    device, n_jobs, own : as of `rankwell.serving.node.Node`
    """

    def __init__(
        self,
        index: Index | str | os.PathLike[str],
        *,
        device: str = "cpu",
        n_jobs: int | None = None,
        own: OwnFeatures | None = None,
    ) -> None:
        self._rankers = ShardRankers(device, n_jobs, own)
        self._commits: OrderedDict[str, Index] = OrderedDict()
        self._views: OrderedDict[messages.Version, ShardView] = OrderedDict()
        self._changing = threading.Lock()
        self._is_closing = threading.Event()
        self._watcher: threading.Thread | None = None
        self._add(index if isinstance(index, Index) else Index.open(index))

    @property
    def index(self) -> Index:
        """The newest commit."""
        return next(reversed(self._commits.values()))

    def watch(self, every: float = 0.5) -> None:
        """Look for a new commit of the index every so many seconds, in a thread of its own."""
        self._watcher = threading.Thread(target=self._watch, args=(every,), name="rankwell-watcher", daemon=True)
        self._watcher.start()

    def refresh(self) -> bool:
        """Take the newest commit of the index; returns whether there was one. Earlier ones can still be asked for."""
        newest = self.index.reopen()
        if newest is self.index:
            return False
        self._add(newest)
        return True

    def close(self) -> None:
        self._is_closing.set()
        if self._watcher is not None:
            self._watcher.join()

    def describe(self) -> messages.Facts:
        """The newest commit."""
        load = messages.Load(n_ranked=dict(self._rankers.n_ranked))
        return msgspec.structs.replace(self._facts, fallback=self._rankers.health.reason or "", load=load)

    def prepare(self, asked: messages.Prepare) -> messages.Done:
        """Make what answers by a census."""
        version = messages.Version(asked.commit, digest(asked.census))
        if self._used(version) is not None:
            return messages.Done()
        view = ShardView(self._commit(asked.commit), asked.census)
        # The norms of documents are computed now, and not by the first query.
        Selector.of(view.index, BM25().columns(view.index.schema))
        with self._changing:
            self._views[version] = view
            while len(self._views) > _CENSUSES_KEPT:
                self._views.popitem(last=False)
        return messages.Done()

    def put_ranker(self, asked: messages.PutRanker) -> messages.Done:
        self._rankers.put(asked.content, self.index, self._facts.sample)
        return messages.Done()

    def answer(self, requests: Sequence[NodeRequest]) -> list[messages.Reply | Exception]:
        """The replies to a batch, or what went wrong. Passes of one ranker over several queries are run together."""
        replies: dict[int, messages.Reply | Exception] = {}
        together: dict[tuple[messages.Version, str, str], dict[int, ScoreInTime]] = {}
        for number, request in enumerate(requests):
            body = request.body
            if isinstance(body, messages.Score):
                together.setdefault((body.version, body.ranker, body.stage), {})[number] = ScoreInTime(
                    body, request.deadline
                )
            else:
                replies[number] = _tried(partial(self._one, body, request.deadline))
        for asked in together.values():
            replies |= self._scored(asked)
        return [replies[number] for number in range(len(requests))]

    def _one(self, body: messages.Request, deadline: Deadline) -> messages.Reply:
        if isinstance(body, messages.Select):
            view = self._view(body.version)
            found = view.select(body)
            return selected(found, self._rankers.first_pass(view, body, found, deadline))
        if isinstance(body, messages.Show):
            return self._view(body.version).show(body)
        if isinstance(body, messages.Count):
            return count(self._commit(body.commit), body)
        if isinstance(body, messages.Find):
            return self._view(body.version).find(body)
        if isinstance(body, messages.Words):
            return self._view(body.version).words(body)
        if isinstance(body, messages.StaticOrder):
            return self._view(body.version).static_order(body)
        raise ParameterError(f"a node cannot answer {type(body).__name__} from its queue.")

    def _scored(self, asked: Mapping[int, ScoreInTime]) -> dict[int, messages.Reply | Exception]:
        """One pass over several queries; if that fails, over each alone."""
        try:
            requests = list(asked.values())
            return dict(zip(asked, self._rankers.score(self._view(requests[0].body.version), requests), strict=True))
        except Exception as error:
            if len(asked) == 1:
                return dict.fromkeys(asked, error)
            alone = [self._scored({number: one}) for number, one in asked.items()]
            return {number: reply for one in alone for number, reply in one.items()}

    def _view(self, version: messages.Version) -> ShardView:
        view = self._used(version)
        if view is None:
            self._commit(version.commit)
            raise MissingError("census", version.census)
        return view

    def _used(self, version: messages.Version) -> ShardView | None:
        """A view that is about to be used, and is kept for longer than those that are not; None if it is gone."""
        with self._changing:
            view = self._views.get(version)
            if view is not None:
                self._views.move_to_end(version)
            return view

    def _commit(self, commit: str) -> Index:
        index = self._commits.get(commit)
        if index is None:
            raise MissingError("commit", commit)
        return index

    def _add(self, index: Index) -> None:
        try_out(index)
        facts = facts_of(index)
        with self._changing:
            self._facts = facts
            self._commits[index.commit] = index
            while len(self._commits) > _COMMITS_KEPT:
                gone, _ = self._commits.popitem(last=False)
                for version in [one for one in self._views if one.commit == gone]:
                    del self._views[version]

    def _watch(self, every: float) -> None:
        failed = None
        while not self._is_closing.wait(every):
            try:
                if self.refresh():
                    _log.info("index replaced", extra={"generation": self.index.generation})
                failed = None
            except Exception as error:
                # What is served stays; the same failure is not logged every time.
                if str(error) != failed:
                    _log.error("the new commit of the index cannot be served: %s", error)
                failed = str(error)


def _tried(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return error
