"""The service of an aggregator: what the HTTP calls do where shards answer."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import numpy as np

from rankwell.errors import ParameterError, RankwellError
from rankwell.serving.answer import Answer, SearchRequest
from rankwell.serving.batching import OverloadError, too_short
from rankwell.serving.http import messages
from rankwell.serving.http.metrics import Metrics
from rankwell.serving.http.query_service import Cached, QueryService, explain_answer, feature_rows, settings_of
from rankwell.serving.result_cache import ResultCache
from rankwell.serving.shards.aggregator import Aggregator, ShardedSnapshot
from rankwell.serving.shards.circuit_breaker import CLOSED, OPEN
from rankwell.serving.shards.messages import AskedQuery, Load
from rankwell.serving.shards.node_link import NodeLink
from rankwell.serving.shards.shard import Shard
from rankwell.serving.shards.supervision import Supervisor
from rankwell.serving.use import Use

T = TypeVar("T")


class AggregatorService(QueryService):
    """An aggregator with its cache, metrics and logs, and the nodes that it has started.

    Parameters
    ----------
    supervisor : the processes of nodes that are this server's own
    most : int
        How many searches may be under way; more are refused.
    on_ready : called when the shards answer

    Attributes
    ----------
    failure : why the server could not start, and ends
    """

    def __init__(
        self,
        aggregator: Aggregator,
        *,
        supervisor: Supervisor | None = None,
        use: Use | None = None,
        cache: ResultCache[Cached] | None = None,
        timeout: float = 0.5,
        most: int = 256,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(use, cache, timeout)
        self.aggregator, self.supervisor = aggregator, supervisor
        self.failure: RankwellError | None = None
        self._most, self._n_running, self._on_ready = most, 0, on_ready
        # One call besides searches at a time, as of one index: each is more work for the nodes than a search.
        self._turn = asyncio.Lock()
        self._add_metrics()

    @property
    def snapshot(self) -> ShardedSnapshot:
        return self.aggregator.snapshot

    async def start(self) -> None:
        try:
            if self.supervisor is not None:
                await self.supervisor.start()
            await self.aggregator.start()
        except RankwellError as error:
            # An exception here would be logged by Uvicorn, and not told as other errors are.
            self.failure = error
            signal.raise_signal(signal.SIGTERM)
            return
        self._on_ready()

    async def stop(self) -> None:
        await self.aggregator.stop()
        if self.supervisor is not None:
            await self.supervisor.stop()
        self._aside.shutdown()
        self.use.close()

    async def answer(self, request: SearchRequest) -> Answer:
        if request.deadline.is_over:
            # Nodes would be blamed for it.
            raise too_short()
        with self._running():
            return await self.aggregator.answer(request)

    async def explain(self, asked: messages.DocumentParameters) -> messages.ExplainAnswer:
        ranker = self.snapshot.with_features(asked.ranker)
        explained = await self._in_turn(lambda: self.aggregator.explain(_asked(asked.q, asked), asked.id, ranker))
        return explain_answer(explained)

    async def features(self, asked: messages.DocumentParameters) -> messages.FeaturesAnswer:
        ranker = self.snapshot.with_features(asked.ranker)
        rows = await self._in_turn(lambda: self.aggregator.features(_asked(asked.q, asked), [asked.id], ranker))
        names = self.snapshot.passes(ranker).feature_set.names
        return messages.FeaturesAnswer(dict(zip(names, rows[0].tolist(), strict=True)))

    async def rank(self, asked: messages.RankBody) -> messages.ScoresAnswer:
        ranker = self.snapshot.with_features(asked.ranker)
        text, documents, given = asked.query, asked.documents, asked.features
        if text is not None and documents is not None and given is None:
            question = _asked(text, asked)

            async def scores() -> np.ndarray:
                rows = await self.aggregator.features(question, documents, ranker)
                return await self.aggregator.score(rows, ranker)

            return messages.ScoresAnswer((await self._in_turn(scores)).tolist())
        if given is not None and text is None and documents is None:
            rows = feature_rows(given, self.snapshot.files[ranker].description.n_features)
            return messages.ScoresAnswer((await self._in_turn(lambda: self.aggregator.score(rows, ranker))).tolist())
        raise ParameterError("a body has query and documents, or features: one of both, and not parts of them.")

    async def has_document(self, name: str) -> bool:
        with self._running():
            return await self.aggregator.has_document(name)

    def index(self) -> messages.IndexAnswer:
        collection = self.snapshot.collection
        facts, schema = list(collection.facts.values()), collection.index.schema
        return messages.IndexAnswer(
            documents=collection.census.n_docs,
            segments=sum(one.n_segments for one in facts),
            streams=list(schema.streams),
            statics=list(schema.statics),
            keywords=list(schema.keywords),
            language=collection.analysis.language,
            generation=sum(one.generation for one in facts),
            bytes=sum(one.n_bytes for one in facts),
            clicks=self.use.has_log,
            votes=self.use.votes is not None,
            dates=list(schema.dates),
            static_order=schema.static_order,
            shards=[self._shard(number) for number in range(len(self.aggregator.shards))],
        )

    async def put_ranker(self, name: str, path: str) -> None:
        await self.aggregator.put_ranker(name, path)
        self.cache.clear()

    async def remove_ranker(self, name: str) -> None:
        await self.aggregator.remove_ranker(name)
        self.cache.clear()

    def is_ready(self) -> bool:
        """Whether any shard answers: a partial answer is better than none."""
        return any(self.aggregator.is_available(shard) for shard in range(len(self.aggregator.shards)))

    async def _in_turn(self, call: Callable[[], Awaitable[T]]) -> T:
        """What a call besides searches gives, when its turn comes; too many of them are refused."""
        with self._counted_aside():
            async with self._turn:
                return await call()

    @contextmanager
    def _running(self) -> Iterator[None]:
        """A request that the nodes answer in their queues. Raises OverloadError if there are too many."""
        if self._n_running >= self._most:
            raise OverloadError(f"too many requests: {self._n_running} are being answered.", retry_after=1.0)
        self._n_running += 1
        try:
            yield
        finally:
            self._n_running -= 1

    def _shard(self, number: int) -> messages.ShardAnswer:
        shard, facts = self.aggregator.shards[number], self.snapshot.collection.facts.get(number)
        nodes = [messages.NodeAnswer(link.name, _state(link)) for link in shard.links]
        if facts is None:
            return messages.ShardAnswer(0, 0, nodes)
        return messages.ShardAnswer(facts.n_docs, facts.generation, nodes)

    def _add_metrics(self) -> None:
        aggregator, gauge = self.aggregator, self.metrics.gauge
        self.metrics.log_losses("features", aggregator.log_losses)
        gauge("rankwell_searches_running", "Searches that are being answered.", lambda: self._n_running)
        gauge("rankwell_shards", "Shards.", lambda: len(aggregator.shards))
        gauge("rankwell_spares_used", "Spare nodes in the place of others.", lambda: aggregator.spares.n_used)
        gauge(
            "rankwell_shards_available",
            "Shards that can be asked now.",
            lambda: sum(map(aggregator.is_available, range(len(aggregator.shards)))),
        )
        for number, shard in enumerate(aggregator.shards):
            _add_shard_metrics(self.metrics, shard, number)
        if self.supervisor is not None:
            supervisor = self.supervisor
            gauge("rankwell_node_restarts", "Node processes that were started again.", lambda: supervisor.n_restarts)


def _asked(text: str, settings: messages.QueryParameters | messages.RankBody) -> AskedQuery:
    """What is searched for, as shards are told."""
    return AskedQuery(text, **settings_of(settings))


def _add_shard_metrics(metrics: Metrics, shard: Shard, number: int) -> None:
    metrics.gauge("rankwell_hedged_requests", "Sent to a second replica too.", lambda: shard.n_hedged, shard=number)
    metrics.gauge("rankwell_hedges_won", "Answered by it first.", lambda: shard.n_won, shard=number)
    for place, link in enumerate(shard.links):
        _add_node_metrics(metrics, link, {"shard": number, "replica": place})


def _add_node_metrics(metrics: Metrics, link: NodeLink, labels: Mapping[str, object]) -> None:
    metrics.gauge("rankwell_node_up", "Whether the node answers.", lambda: link.is_up, **labels)
    metrics.gauge("rankwell_node_breaker", "0 closed, 1 half-open, 2 open.", lambda: _breaker(link), **labels)
    metrics.gauge("rankwell_node_waiting", "Requests under way.", lambda: link.n_waiting, **labels)
    metrics.gauge("rankwell_node_failures", "Failed requests.", lambda: sum(link.n_failures.values()), **labels)
    metrics.gauge("rankwell_node_queue_length", "Requests in its queue.", lambda: _load(link).n_waiting, **labels)
    metrics.gauge("rankwell_node_batches", "Batches that it answered.", lambda: _load(link).n_batches, **labels)
    metrics.gauge("rankwell_node_requests", "Requests in its batches.", lambda: _load(link).n_requests, **labels)
    for device in ("cpu", "cuda"):
        ranked = partial(_n_ranked, link, device)
        metrics.gauge("rankwell_node_ranked", "Passes over a query's documents.", ranked, **labels, device=device)


def _load(link: NodeLink) -> Load:
    """What the node said last about its work; nothing if it was never reached."""
    return Load() if link.facts is None else link.facts.load


def _n_ranked(link: NodeLink, device: str) -> int:
    return _load(link).n_ranked.get(device, 0)


def _state(link: NodeLink) -> str:
    """The state of a node in a word: up, resting (its breaker is open) or down."""
    if not link.is_up:
        return "down"
    return "up" if link.breaker.state == CLOSED else "resting"


def _breaker(link: NodeLink) -> int:
    return {CLOSED: 0, OPEN: 2}.get(link.breaker.state, 1)
