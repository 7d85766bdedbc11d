"""The service: what the HTTP calls do. Searches go through cache and queue, rarer calls to a thread of their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import msgspec
import numpy as np

from rankwell.errors import ParameterError
from rankwell.serving import messages
from rankwell.serving.answer import Answer, Result, SearchRequest
from rankwell.serving.batching import Batcher, OverloadError
from rankwell.serving.deadline import Deadline
from rankwell.serving.metrics import Metrics
from rankwell.serving.node import Node
from rankwell.serving.result_cache import ResultCache
from rankwell.serving.use import Use
from rankwell.serving.votes import query_id_of

T = TypeVar("T")

# How many calls besides searches may wait.
_MOST_ASIDE = 16
_MOST_COMPARED = 4
_PARTIAL = "the deadline came before the ranker: results are in the order of the stage before."


@dataclass(frozen=True)
class Cached:
    """An answer as it is kept: its results are JSON already."""

    answer: Answer
    results: msgspec.Raw
    ids: tuple[str, ...]


class SearchService:
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
        self.node, self.use, self.timeout = node, use or Use(), timeout
        self.cache: ResultCache[Cached] = ResultCache() if cache is None else cache
        self.metrics = Metrics()
        self._batcher: Batcher[SearchRequest, Answer] = Batcher(
            node.answers,
            most=batch_size or node.snapshot.batch_size,
            window=batch_window,
            capacity=queue,
            on_batch=self.metrics.add_batch,
        )
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="rankwell-aside")
        self._n_aside = 0
        self._encoder = msgspec.json.Encoder()
        self.metrics.gauge("rankwell_queue_length", "Requests that wait.", lambda: self._batcher.length)
        self.metrics.gauge("rankwell_cache_bytes", "Bytes in the result cache.", lambda: self.cache.n_bytes)
        self.metrics.gauge("rankwell_index_documents", "Documents.", lambda: node.snapshot.index.n_docs)
        self.metrics.gauge("rankwell_index_generation", "The commit.", lambda: node.snapshot.index.generation)

    def close(self) -> None:
        """Answer what waits, then end."""
        self._batcher.close()
        self._aside.shutdown()
        self.node.close()
        self.use.close()

    async def search(self, asked: messages.SearchParameters) -> messages.SearchAnswer:
        started = time.perf_counter()
        timeout = self.timeout if asked.timeout_ms is None else asked.timeout_ms / 1000
        snapshot = self.node.snapshot
        ranker = snapshot.ranker(asked.ranker)
        depends_on = (ranker, asked.q, asked.plain, asked.k, asked.offset)
        known = self.cache.get((snapshot.version, depends_on))
        self.metrics.add_lookup(is_hit=known is not None)
        found = known
        if found is None:
            request = SearchRequest(
                asked.q,
                Deadline.after(timeout),
                k=asked.k,
                offset=asked.offset,
                ranker=ranker,
                plain=asked.plain,
                query_id=query_id_of(asked.q),
            )
            found = self._keep(await self._answer(request), depends_on)
        # Positions count from the first place, so that only first pages are impressions.
        impression = self.use.show(asked.q, found.ids) if asked.offset == 0 else None
        return _search_answer(asked.q, found, impression, time.perf_counter() - started, is_hit=known is not None)

    async def compare(self, asked: messages.CompareParameters) -> messages.CompareAnswer:
        names = asked.rankers.split(",")
        if not 2 <= len(names) <= _MOST_COMPARED or len(set(names)) < len(names):
            raise ParameterError(
                f"must be two to {_MOST_COMPARED} different names, separated by commas, got {asked.rankers!r}.",
                parameter="rankers",
            )
        rankers = [self.node.snapshot.ranker(name) for name in names]
        deadline = Deadline.after(self.timeout)
        requests = [SearchRequest(asked.q, deadline, k=asked.k, ranker=ranker) for ranker in rankers]
        answers = await asyncio.gather(*map(self._answer, requests))
        shown = [[replace(result, fields=None) for result in answer.results] for answer in answers]
        rankings = [messages.Ranking(ranker, results) for ranker, results in zip(rankers, shown, strict=True)]
        return messages.CompareAnswer(rankings, _moved(shown[0], shown[-1]))

    async def explain(self, asked: messages.DocumentParameters) -> messages.ExplainAnswer:
        search = self.node.snapshot.search_of(asked.ranker)
        (explained,) = await self._run_aside(lambda: search.explain(asked.q, document=asked.id))
        parts = explained.explanation
        by_size = sorted(parts.features.items(), key=lambda part: -abs(part[1]))
        features = [messages.FeaturePart(name, explained.values.get(name), share) for name, share in by_size]
        return messages.ExplainAnswer(explained.id, explained.rank, parts.score, parts.feature_base, features)

    async def features(self, asked: messages.DocumentParameters) -> messages.FeaturesAnswer:
        search = self.node.snapshot.search_of(asked.ranker)
        rows = await self._run_aside(lambda: search.features(asked.q, [asked.id]))
        return messages.FeaturesAnswer(dict(zip(search.feature_set.names, rows[0].tolist(), strict=True)))

    async def rank(self, asked: messages.RankBody) -> messages.ScoresAnswer:
        search = self.node.snapshot.search_of(asked.ranker)
        query, documents, given = asked.query, asked.documents, asked.features
        if query is not None and documents is not None and given is None:
            scores = await self._run_aside(lambda: search.score(search.features(query, documents)))
        elif given is not None and query is None and documents is None:
            rows = _feature_rows(given, search.description.n_features)
            scores = await self._run_aside(lambda: search.score(rows))
        else:
            raise ParameterError("a body has query and documents, or features: one of both, and not parts of them.")
        return messages.ScoresAnswer(scores.tolist())

    def rankers(self) -> list[messages.RankerAnswer]:
        return [messages.RankerAnswer(**ranker) for ranker in self.node.snapshot.described()]

    def index(self) -> messages.IndexAnswer:
        index = self.node.snapshot.index
        size = 0 if index.path is None else sum(path.stat().st_size for path in index.path.iterdir() if path.is_file())
        return messages.IndexAnswer(
            documents=index.n_docs,
            segments=len(index.segments),
            streams=list(index.schema.streams),
            statics=list(index.schema.statics),
            keywords=list(index.schema.keywords),
            language=index.analysis.language,
            generation=index.generation,
            bytes=size,
            clicks=self.use.has_log,
            votes=self.use.votes is not None,
        )

    async def put_ranker(self, name: str, path: str) -> None:
        await self._run_aside(lambda: self.node.put_ranker(name, path))
        self.cache.clear()

    async def remove_ranker(self, name: str) -> None:
        await self._run_aside(lambda: self.node.remove_ranker(name))
        self.cache.clear()

    async def _answer(self, request: SearchRequest) -> Answer:
        answer = await asyncio.wrap_future(self._batcher.submit(request))
        self.metrics.add_answer(
            answer.seconds, answer.device, is_partial=answer.is_partial, is_fallback=answer.fallback is not None
        )
        return answer

    def _keep(self, answer: Answer, depends_on: Hashable) -> Cached:
        """An answer with its results encoded; it is cached, unless it is partial."""
        encoded = self._encoder.encode(answer.results)
        kept = Cached(replace(answer, results=()), msgspec.Raw(encoded), tuple(one.id for one in answer.results))
        if not answer.is_partial:
            # Of the version that gave it, which may be newer than the one that was looked up.
            self.cache.put((answer.version, depends_on), kept, len(encoded))
        return kept

    async def _run_aside(self, call: Callable[[], T]) -> T:
        if self._n_aside >= _MOST_ASIDE:
            raise OverloadError(f"too many requests: {self._n_aside} such calls are waiting.", retry_after=1.0)
        self._n_aside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._aside, call)
        finally:
            self._n_aside -= 1


def _search_answer(
    query: str, found: Cached, impression: str | None, seconds: float, *, is_hit: bool
) -> messages.SearchAnswer:
    answer = found.answer
    stages = {"cache": seconds} if is_hit else dict(answer.seconds)
    if not is_hit:
        # In the queue, and until the captions of the batch's queries before it were made.
        stages["wait"] = max(0.0, seconds - sum(stages.values()))
    return messages.SearchAnswer(
        query=query,
        ranker=answer.ranker,
        impression=impression,
        n_matches=answer.n_matches,
        n_candidates=answer.n_candidates,
        n_ranked=answer.n_ranked,
        took_ms=round(1000 * seconds, 3),
        stages_ms={stage: round(1000 * duration, 3) for stage, duration in stages.items()},
        cached=is_hit,
        coverage=messages.Coverage(),
        degraded=messages.Degraded("deadline", _PARTIAL) if answer.is_partial else None,
        device=answer.device,
        fallback=answer.fallback,
        results=cast("list[Result]", found.results),
    )


def _moved(before: list[Result], after: list[Result]) -> dict[str, messages.Move]:
    """The documents whose place differs."""
    old, new = ({result.id: result.rank for result in results} for results in (before, after))
    places = {name: (old.get(name), new.get(name)) for name in (*old, *new)}
    return {name: messages.Move(*pair) for name, pair in places.items() if pair[0] != pair[1]}


def _feature_rows(given: list[list[float | None]], n_features: int) -> np.ndarray:
    """float32 (n, n_features); null is a missing value."""
    for number, row in enumerate(given, start=1):
        if len(row) != n_features:
            raise ParameterError(
                f"must be rows of {n_features} numbers, which the ranker reads; row {number} has {len(row)}.",
                parameter="features",
            )
    values: Any = given
    with np.errstate(over="ignore"):
        return np.array(values, dtype=np.float64).astype(np.float32)
