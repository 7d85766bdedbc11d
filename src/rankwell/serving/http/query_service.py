"""A service that answers queries: what is the same whether one index answers or the shards of a collection."""

from __future__ import annotations

import asyncio
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import msgspec
import numpy as np

from rankwell.errors import ParameterError
from rankwell.index.search.facets import written_facets
from rankwell.scoring.trees import TreeInputs
from rankwell.serving.answer import Answer, Result, SearchRequest
from rankwell.serving.batching import OverloadError
from rankwell.serving.deadline import Deadline
from rankwell.serving.http import messages
from rankwell.serving.http.metrics import Metrics
from rankwell.serving.named_rankers import NamedRankers
from rankwell.serving.ranking.explained_search import ExplainedDocument
from rankwell.serving.result_cache import ResultCache
from rankwell.serving.use import Use
from rankwell.serving.votes import query_id_of

T = TypeVar("T")

# How many calls besides searches may wait.
_MOST_ASIDE = 16
_MOST_COMPARED = 4
_UNRANKED = "the deadline came before the ranker: results are in the order of the stage before."
_LATE = "the answer is whole, and came after the deadline."
_PARTLY_COUNTED = "words were counted while a shard was missing, and are counted again now: scores may still change."
_NAMED = 4


@dataclass(frozen=True)
class Cached:
    """An answer as it is kept: its results and facets are JSON already."""

    answer: Answer
    results: msgspec.Raw
    facets: msgspec.Raw
    ids: tuple[str, ...]


class QueryService(ABC):
    """Cache, metrics and logs around what answers queries.

    Parameters
    ----------
    timeout : float
        The seconds that a request may take if it does not say.
    """

    def __init__(self, use: Use | None, cache: ResultCache[Cached] | None, timeout: float) -> None:
        self.use, self.timeout = use or Use(), timeout
        self.cache: ResultCache[Cached] = ResultCache() if cache is None else cache
        self.metrics = Metrics()
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="rankwell-aside")
        self._n_aside = 0
        self._encoder = msgspec.json.Encoder()
        self.metrics.gauge("rankwell_cache_bytes", "Bytes in the result cache.", lambda: self.cache.n_bytes)
        self.metrics.log_losses("use", self.use.losses if self.use.has_log else None)

    @property
    @abstractmethod
    def snapshot(self) -> NamedRankers:
        """The rankers, and the version that cached answers are of."""

    @abstractmethod
    async def start(self) -> None:
        """Begin, in the event loop of the server."""

    @abstractmethod
    async def stop(self) -> None:
        """Answer what waits, then end."""

    @abstractmethod
    async def answer(self, request: SearchRequest) -> Answer: ...

    @abstractmethod
    async def explain(self, asked: messages.DocumentParameters) -> messages.ExplainAnswer: ...

    @abstractmethod
    async def features(self, asked: messages.DocumentParameters) -> messages.FeaturesAnswer: ...

    @abstractmethod
    async def rank(self, asked: messages.RankBody) -> messages.ScoresAnswer: ...

    @abstractmethod
    def index(self) -> messages.IndexAnswer: ...

    @abstractmethod
    async def has_document(self, name: str) -> bool: ...

    @abstractmethod
    async def put_ranker(self, name: str, path: str) -> None: ...

    @abstractmethod
    async def remove_ranker(self, name: str) -> None: ...

    def is_ready(self) -> bool:
        """Whether queries are answered now."""
        return True

    @property
    def is_overloaded(self) -> bool:
        """Whether a search that does not say its time would be refused now; known at once."""
        return False

    def refusal(self, asked: messages.SearchParameters) -> OverloadError | None:
        """Why a search would be refused now; None if it would not, or that is not known."""
        return None

    async def search(self, asked: messages.SearchParameters) -> messages.SearchAnswer:
        started = time.perf_counter()
        timeout = self._seconds(asked)
        depends_on, known = self._look_up(asked)
        self.metrics.add_lookup(is_hit=known is not None)
        found = known
        if found is None:
            request = self._request(asked, Deadline.after(timeout))
            found = self._keep(await self._counted(request), depends_on)
        impression = None
        if asked.offset == 0:  # positions count from the first place, so that only first pages are impressions
            found = found if asked.sort else self._exchanged(found)
            impression = self.use.show(asked.q, found.ids)
        return _search_answer(asked.q, found, impression, time.perf_counter() - started, is_hit=known is not None)

    async def similar(self, asked: messages.SimilarParameters) -> messages.SearchAnswer:
        started = time.perf_counter()
        key = ("like", asked.id, asked.k, asked.offset, asked.filter)
        known = self.cache.get((self.snapshot.version, key))
        self.metrics.add_lookup(is_hit=known is not None)
        found = known
        if found is None:
            deadline = Deadline.after(self._seconds(asked))
            request = SearchRequest("", deadline, k=asked.k, offset=asked.offset, filter=asked.filter, like=asked.id)
            found = self._keep(await self._counted(request), key)
        words = " ".join(found.answer.words)
        return _search_answer(words, found, None, time.perf_counter() - started, is_hit=known is not None)

    async def compare(self, asked: messages.CompareParameters) -> messages.CompareAnswer:
        names = asked.rankers.split(",")
        if not 2 <= len(names) <= _MOST_COMPARED or len(set(names)) < len(names):
            raise ParameterError(
                f"must be two to {_MOST_COMPARED} different names, separated by commas, got {asked.rankers!r}.",
                parameter="rankers",
            )
        rankers = [self.snapshot.ranker(name) for name in names]
        deadline = Deadline.after(self.timeout)
        requests = [
            SearchRequest(asked.q, deadline, k=asked.k, ranker=ranker, **settings_of(asked)) for ranker in rankers
        ]
        answers = await asyncio.gather(*map(self._counted, requests))
        shown = [[replace(result, fields=None) for result in answer.results] for answer in answers]
        rankings = [messages.Ranking(ranker, results) for ranker, results in zip(rankers, shown, strict=True)]
        missing = tuple(dict.fromkeys(name for answer in answers for name in answer.missing))
        # Of the answers that say the most: where one is partial, how far it came.
        told = min(answers, key=lambda answer: (not answer.is_partial, answer.n_ranked))
        unranked = tuple(dict.fromkeys(name for answer in answers for name in answer.unranked if name not in missing))
        together = replace(
            told,
            missing=missing,
            unranked=unranked,
            is_late=any(answer.is_late for answer in answers),
            is_partly_counted=any(answer.is_partly_counted for answer in answers),
        )
        return messages.CompareAnswer(rankings, _moved(shown[0], shown[-1]), _coverage(together), _degraded(together))

    def rankers(self) -> list[messages.RankerAnswer]:
        return [messages.RankerAnswer(**ranker) for ranker in self.snapshot.described()]

    def _request(self, asked: messages.SearchParameters, deadline: Deadline) -> SearchRequest:
        return SearchRequest(
            asked.q,
            deadline,
            k=asked.k,
            offset=asked.offset,
            ranker=asked.ranker,
            query_id=query_id_of(asked.q),
            sort=() if asked.sort is None else tuple(asked.sort.split(",")),
            facets=written_facets(asked.facet),
            stop_after=asked.stop_after,
            **settings_of(asked),
        )

    def _seconds(self, asked: messages.SearchParameters | messages.SimilarParameters) -> float:
        """The time that a search has."""
        return self.timeout if asked.timeout_ms is None else asked.timeout_ms / 1000

    def _look_up(self, asked: messages.SearchParameters) -> tuple[Hashable, Cached | None]:
        """What the answer of a search depends on, and the answer if it is cached."""
        snapshot = self.snapshot
        ranker = None if asked.sort is not None and asked.ranker is None else snapshot.ranker(asked.ranker)
        more = (asked.sort, *asked.facet, asked.stop_after)
        depends_on = (ranker, asked.q, *settings_of(asked).values(), asked.k, asked.offset, more)
        return depends_on, self.cache.get((snapshot.version, depends_on))

    async def _counted(self, request: SearchRequest) -> Answer:
        answer = replace(await self.answer(request), is_late=request.deadline.is_over)
        self.metrics.add_answer(
            answer.seconds,
            answer.device,
            is_partial=answer.is_degraded,
            is_late=answer.is_late,
            is_fallback=answer.fallback is not None,
        )
        return answer

    def _keep(self, answer: Answer, depends_on: Hashable) -> Cached:
        """An answer with its results encoded; it is cached, unless it is partial."""
        encoded = self._encoder.encode(answer.results)
        facets = self._encoder.encode({field: _facet_answer(counts) for field, counts in answer.facets.items()})
        bare = replace(answer, results=(), facets={})
        kept = Cached(bare, msgspec.Raw(encoded), msgspec.Raw(facets), tuple(one.id for one in answer.results))
        if not answer.is_degraded:
            # Of the version that gave it, which may be newer than the one that was looked up. It is not late again.
            again = replace(kept, answer=replace(bare, is_late=False))
            self.cache.put((answer.version, depends_on), again, len(encoded) + len(facets))
        return kept

    def _exchanged(self, found: Cached) -> Cached:
        """The answer as it is shown to one user, if neighbours are exchanged; it is cached as it was found."""
        order = self.use.order(len(found.ids))
        if order is None:
            return found
        results = msgspec.json.decode(found.results, type=list[Result])
        shown = [replace(results[place], rank=at.rank) for place, at in zip(order, results, strict=True)]
        encoded = msgspec.Raw(self._encoder.encode(shown))
        return replace(found, results=encoded, ids=tuple(one.id for one in shown))

    async def _run_aside(self, call: Callable[[], T]) -> T:
        with self._counted_aside():
            return await asyncio.get_running_loop().run_in_executor(self._aside, call)

    @contextmanager
    def _counted_aside(self) -> Iterator[None]:
        """A call besides searches, which waits or is answered meanwhile. Raises OverloadError if there are too many."""
        if self._n_aside >= _MOST_ASIDE:
            raise OverloadError(f"too many requests: {self._n_aside} such calls are waiting.", retry_after=1.0)
        self._n_aside += 1
        try:
            yield
        finally:
            self._n_aside -= 1


def settings_of(asked: messages.QueryParameters | messages.RankBody) -> dict[str, Any]:
    """What is asked for besides the text of a query, as `parse_served` takes it."""
    return {"plain": asked.plain, "filter": asked.filter, "typos": asked.typos, "match": asked.match}


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
        n_kept=answer.n_kept,
        took_ms=round(1000 * seconds, 3),
        stages_ms={stage: round(1000 * duration, 3) for stage, duration in stages.items()},
        cached=is_hit,
        coverage=_coverage(answer),
        degraded=_degraded(answer),
        device=answer.device,
        fallback=answer.fallback,
        results=cast("list[Result]", found.results),
        n_examined=answer.n_examined,
        facets=cast("dict[str, messages.FacetAnswer]", found.facets),
    )


def _facet_answer(counts: Mapping[Any, int]) -> messages.FacetAnswer:
    first = itertools.islice(counts.items(), messages.MOST_FACET_VALUES)
    return messages.FacetAnswer([messages.FacetCount(*pair) for pair in first], len(counts))


def _coverage(answer: Answer) -> messages.Coverage:
    n_answered = answer.n_shards - len(answer.missing)
    return messages.Coverage(answer.n_shards, n_answered, list(answer.missing), list(answer.unranked))


def _degraded(answer: Answer) -> messages.Degraded | None:
    """Why an answer is not what it could be; None if it is."""
    if answer.missing:
        text = f"{len(answer.missing)} of {answer.n_shards} shards did not answer: {_some(answer.missing)}."
        return messages.Degraded("shards", f"{text} Besides, {_early(answer)}" if answer.is_partial else text)
    if answer.is_partial:
        return messages.Degraded("deadline", _early(answer))
    if answer.is_partly_counted:
        return messages.Degraded("counts", _PARTLY_COUNTED)
    return messages.Degraded("late", _LATE) if answer.is_late else None


def _early(answer: Answer) -> str:
    """How far ranking came until the deadline."""
    if answer.n_ranked == 0:
        return _UNRANKED
    who = f"; {_some(answer.unranked)} did not rank all of theirs" if answer.unranked else ""
    return (
        f"the deadline came when {answer.n_ranked:,} of {answer.n_kept:,} documents were ranked{who}: the others are "
        f"below, in the order of the stage before."
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def explain_answer(explained: ExplainedDocument) -> messages.ExplainAnswer:
    """A document's score in parts, the largest first."""
    parts = explained.explanation
    by_size = sorted(parts.features.items(), key=lambda part: -abs(part[1]))
    read = parts.columns
    transforms: dict[str, list[messages.Transform]] = {}
    for part in parts.inputs:
        if part.kind != TreeInputs.kind:
            made = messages.Transform(part.kind, part.value, part.contribution)
            transforms.setdefault(part.name, []).append(made)
    # The score of a part is read as it is; a formula, which a constant is too, is no feature and has no value.
    features = [
        messages.FeaturePart(
            name, explained.values.get(name, read.get(name)), read.get(name), share, transforms.get(name, [])
        )
        for name, share in by_size
    ]
    return messages.ExplainAnswer(
        explained.id, explained.rank, parts.score, parts.feature_base, features, explained.ranking_pass, parts.offset
    )


def _moved(before: list[Result], after: list[Result]) -> dict[str, messages.Move]:
    """The documents whose place differs."""
    old, new = ({result.id: result.rank for result in results} for results in (before, after))
    places = {name: (old.get(name), new.get(name)) for name in (*old, *new)}
    return {name: messages.Move(*pair) for name, pair in places.items() if pair[0] != pair[1]}


def feature_rows(given: list[list[float | None]], n_features: int) -> np.ndarray:
    """float32 (n, n_features); null is a missing value."""
    for number, row in enumerate(given, start=1):
        if len(row) != n_features:
            raise ParameterError(
                f"must be rows of {n_features} numbers, which the ranker reads; row {number} has {len(row)}.",
                parameter="features",
            )
    values: Any = given
    wide = np.array(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        rows = wide.astype(np.float32)
    too_large = np.argwhere(np.isinf(rows))
    if len(too_large):
        row, column = too_large[0].tolist()
        raise ParameterError(
            f"must be numbers that float32 can hold, up to {np.finfo(np.float32).max:.6g}; row {row + 1}, number "
            f"{column + 1} is {wide[row, column]:g}. Scale it as in training, or send null for a missing value.",
            parameter="features",
        )
    return rows
