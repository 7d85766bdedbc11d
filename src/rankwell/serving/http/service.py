"""The service: what the HTTP calls do. Searches go through cache and queue, rarer calls to a thread of their own."""

from __future__ import annotations

import asyncio

from rankwell.errors import ParameterError
from rankwell.serving.answer import Answer, SearchRequest
from rankwell.serving.batching import Batcher, OverloadError
from rankwell.serving.http import messages
from rankwell.serving.http.query_service import Cached, QueryService, explain_answer, feature_rows, settings_of
from rankwell.serving.node import Node
from rankwell.serving.result_cache import ResultCache
from rankwell.serving.snapshot import Snapshot
from rankwell.serving.use import Use


class SearchService(QueryService):
    """A node with its queue, cache, metrics and logs.

    Parameters
    ----------
    timeout : float
        The seconds that a request may take if it does not say.
    batch_size : int, optional
        How many queries are ranked together at most; by default what was measured to be best for the device.
    """

    def __init__(
        self,
        node: Node,
        *,
        use: Use | None = None,
        cache: ResultCache[Cached] | None = None,
        timeout: float = 0.5,
        batch_size: int | None = None,
        batch_window: float = 0.0,
        queue: int = 256,
    ) -> None:
        super().__init__(use, cache, timeout)
        self.node = node
        self._batcher: Batcher[SearchRequest, Answer] = Batcher(
            node.answers,
            most=batch_size or node.snapshot.batch_size,
            window=batch_window,
            capacity=queue,
            on_batch=self.metrics.batch_sizes(),
        )
        self.metrics.log_losses("features", node.log_losses)
        self.metrics.gauge("rankwell_queue_length", "Requests that wait.", lambda: self._batcher.length)
        self.metrics.gauge("rankwell_index_documents", "Documents.", lambda: node.snapshot.index.n_docs)
        self.metrics.gauge("rankwell_index_generation", "The commit.", lambda: node.snapshot.index.generation)

    def close(self) -> None:
        """Answer what waits, then end."""
        self._batcher.close()
        self._aside.shutdown()
        self.node.close()
        self.use.close()

    @property
    def snapshot(self) -> Snapshot:
        return self.node.snapshot

    async def start(self) -> None:
        """The node answers since it was made."""

    async def stop(self) -> None:
        self.close()

    @property
    def is_overloaded(self) -> bool:
        return self._batcher.refuses(self.timeout)

    def refusal(self, asked: messages.SearchParameters) -> OverloadError | None:
        refusal = self._batcher.refusal(self._seconds(asked))
        try:
            return None if refusal is None or self._look_up(asked)[1] is not None else refusal
        except ParameterError:
            return None

    async def answer(self, request: SearchRequest) -> Answer:
        return await asyncio.wrap_future(self._batcher.submit(request))

    async def has_document(self, name: str) -> bool:
        return self.node.snapshot.index.find(name) >= 0

    async def explain(self, asked: messages.DocumentParameters) -> messages.ExplainAnswer:
        search = self.node.snapshot.search_of(asked.ranker)
        query = self.node.parse(search.index, asked.q, **settings_of(asked))
        (explained,) = await self._run_aside(lambda: search.explain(query, document=asked.id))
        return explain_answer(explained)

    async def features(self, asked: messages.DocumentParameters) -> messages.FeaturesAnswer:
        search = self.node.snapshot.search_of(asked.ranker)
        query = self.node.parse(search.index, asked.q, **settings_of(asked))
        rows = await self._run_aside(lambda: search.features(query, [asked.id]))
        return messages.FeaturesAnswer(dict(zip(search.feature_set.names, rows[0].tolist(), strict=True)))

    async def rank(self, asked: messages.RankBody) -> messages.ScoresAnswer:
        search = self.node.snapshot.search_of(asked.ranker)
        text, documents, given = asked.query, asked.documents, asked.features
        if text is not None and documents is not None and given is None:
            query = self.node.parse(search.index, text, **settings_of(asked))
            scores = await self._run_aside(lambda: search.score(search.features(query, documents)))
        elif given is not None and text is None and documents is None:
            rows = feature_rows(given, search.description.n_features)
            scores = await self._run_aside(lambda: search.score(rows))
        else:
            raise ParameterError("a body has query and documents, or features: one of both, and not parts of them.")
        return messages.ScoresAnswer(scores.tolist())

    def index(self) -> messages.IndexAnswer:
        index = self.node.snapshot.index
        return messages.IndexAnswer(
            documents=index.n_docs,
            segments=len(index.segments),
            streams=list(index.schema.streams),
            statics=list(index.schema.statics),
            keywords=list(index.schema.keywords),
            language=index.analysis.language,
            generation=index.generation,
            bytes=self.node.snapshot.n_bytes,
            clicks=self.use.has_log,
            votes=self.use.votes is not None,
            dates=list(index.schema.dates),
            static_order=index.schema.static_order,
        )

    async def put_ranker(self, name: str, path: str) -> None:
        await self._run_aside(lambda: self.node.put_ranker(name, path))
        self.cache.clear()

    async def remove_ranker(self, name: str) -> None:
        await self._run_aside(lambda: self.node.remove_ranker(name))
        self.cache.clear()
