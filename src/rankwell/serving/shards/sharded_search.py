"""One query over the shards of a collection, in rounds.

    count   what is not known yet about the query's words; later queries with these words do without
    select  each shard's best candidates; the best of all go on
    words   of the first candidates, for rankers that read a relevance model
    first   a cascade's first pass, over all candidates
    second  the ranker, over the candidates that the first pass keeps, wherever they are
    show    ids and captions of the results, from the shards that hold them

Every round has a limit on the way to the deadline, at which the query goes on with what has come. What a shard owes
after that is left out: a shard that did not select has no results, candidates that were not ranked come last.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from rankwell.features.feedback import ModelSettings, model_of_documents, model_settings, weighed_terms
from rankwell.index.query.query import Query
from rankwell.index.segments.document_counts import DocumentCounts
from rankwell.scoring.composition import best_rows
from rankwell.serving.deadline import Deadline
from rankwell.serving.ranking.ranked_search import best_candidates
from rankwell.serving.ranking.ranker_passes import FIRST, SECOND, WHOLE, RankerPasses
from rankwell.serving.shards import messages, replies
from rankwell.serving.shards.collection import ShardedCollection
from rankwell.serving.shards.node_link import NodeCall, NodeError
from rankwell.serving.shards.shard import Shard, overload_of, raise_mistake
from rankwell.serving.shards.statistics import MissingCountError

T = TypeVar("T")

# Where on the way to the deadline each round must end.
_LIMITS = {"count": 0.3, "select": 0.6, "words": 0.7, "first": 0.8, "second": 0.92, "show": 1.0}
# The stage that the time of a round counts for.
_STAGES = {
    "count": "parse", "select": "select", "words": "rank", "first": "rank", "second": "rank", "show": "captions",
}  # fmt: skip
_SCORED_AT_ONCE = 128
# Of this many times as many terms as a relevance model has, the counts are asked for at once: common ones are left out.
_TERMS_AHEAD = 4


@dataclass(frozen=True)
class Candidates:
    """What selection found, best first.

    shard, doc : int64 (n,), where each document is; score : float64 (n,)
    first : scores or features of a first pass, if all shards have run it
    """

    shard: np.ndarray
    doc: np.ndarray
    score: np.ndarray
    n_matches: int
    first: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.doc)

    def of(self, shard: int, rows: np.ndarray) -> np.ndarray:
        """Those of the rows that a shard has."""
        return rows[self.shard[rows] == shard]


@dataclass(frozen=True)
class Ranked:
    """Candidates in the order of a ranker.

    rows : the best candidates, best first; scores : theirs
    kept : the rows that were to be ranked, ascending; n_ranked : how many of them were
    """

    rows: np.ndarray
    scores: np.ndarray
    kept: np.ndarray
    n_ranked: int


class ShardedSearch:
    """A query on its way.

    Attributes
    ----------
    missing : shards that did not answer in time or at all, and why
    seconds : by stage, how long the slowest node took for it; what is left is merging and the network
    """

    def __init__(
        self, shards: Sequence[Shard], collection: ShardedCollection, text: str, *, plain: bool, deadline: Deadline
    ) -> None:
        self.shards, self.collection, self.deadline = shards, collection, deadline
        self.text, self.plain = text, plain
        self.started = time.monotonic()
        self.missing: dict[int, NodeError] = {}
        self.seconds: dict[str, float] = {}
        self.question = messages.Question(text, plain, {})
        for shard in range(len(shards)):
            if shard not in collection.facts:
                self.missing[shard] = NodeError("connection", "it was not reached yet")

    @property
    def present(self) -> list[int]:
        """The shards that have answered so far."""
        return [shard for shard in range(len(self.shards)) if shard not in self.missing]

    async def parse(self) -> Query:
        """The query, its words counted over all shards."""
        lacking = self.collection.expansions_lacking(self.text, self.plain)
        if lacking is not None:
            await self._count(lacking)
        query = self.collection.parse(self.text, self.plain)
        await self.know(self.collection.terms_of(query))
        self.question = self.collection.question(self.text, self.plain, self.collection.terms_of(query))
        return query

    async def know(self, terms: Sequence[bytes]) -> None:
        """Have terms counted that were not counted before."""
        lacking = self.collection.terms_lacking(terms)
        if lacking is not None:
            await self._count(lacking)

    async def select(self, k: int, ranker: str | None = None, passes: RankerPasses | None = None) -> Candidates:
        """The best k documents of all shards; equal scores in the order of shards and documents.

        ranker, passes : of a cascade, whose first pass may be run in the same round
        """
        facts, version = self.collection.facts, self.collection.version
        sent, n_features, alone = None, 0, True
        if passes is not None and passes.first is not None:
            sent, n_features, alone = ranker, len(passes.first.feature_set), passes.scores_alone(FIRST)
        found = await self.ask(
            "select",
            {shard: messages.Select(version(shard), self.question, k, sent) for shard in self.present},
            {shard: replies.selected(k, facts[shard], n_features, alone=alone) for shard in self.present},
            sent,
        )
        parts = [(shard, found[shard]) for shard in sorted(found)]
        shard = np.repeat([one for one, _ in parts], [len(own.docs) for _, own in parts]).astype(np.int64)
        none = np.empty(0, np.int64)
        doc = np.concatenate([none, *(own.docs for _, own in parts)])
        score = np.concatenate([none.astype(np.float64), *(own.scores for _, own in parts)])
        # Shards ascend, and so do documents of equal score within them.
        order = np.argsort(-score, kind="stable")[:k]
        n_matches = sum(own.n_matches for _, own in parts)
        firsts = [own.first for _, own in parts if own.first is not None]
        ran = np.concatenate(firsts)[order] if firsts and len(firsts) == len(parts) else None
        return Candidates(shard[order], doc[order], score[order], n_matches, ran)

    async def rank(self, query: Query, candidates: Candidates, ranker: str, passes: RankerPasses, k: int) -> Ranked:
        """The best k candidates by a ranker: of a cascade, as many as it keeps of all shards get the second pass."""
        models = await self.relevance_models(query, candidates, passes)
        before, kept = candidates.score, np.arange(len(candidates))
        if passes.first is not None and passes.description.first_pass is not None:
            by_row = await self._first_scores(candidates, ranker, passes, models)
            scored = ~np.isnan(by_row)
            if scored.any():
                # Candidates of a shard that is missing now come last; none of them is kept if there are enough others.
                least = by_row[scored].min()
                before = np.where(scored, by_row, least - 1.0 - np.arange(len(by_row)))
            kept = best_rows(before, np.array([0, len(before)]), passes.description.first_pass.keep)
        scores = await self._score(SECOND, kept, candidates, ranker, passes, models)
        ranked = ~np.isnan(scores)
        rows, values = best_candidates(kept[ranked], scores[ranked], before, k)
        return Ranked(rows, values, kept, int(ranked.sum()))

    async def features(
        self, rows: np.ndarray, candidates: Candidates, ranker: str, passes: RankerPasses, models: list[messages.Model]
    ) -> np.ndarray:
        """All features of candidates, float32 (n, n_features); NaN in the rows of shards that are missing."""
        return await self._rows(WHOLE, rows, candidates, ranker, passes, models)

    async def show(self, rows: Sequence[int], candidates: Candidates) -> dict[int, messages.ShownDocument]:
        """What is shown of candidates, by row; those of shards that are missing are not in it."""
        by_shard: dict[int, list[int]] = {}
        for row in rows:
            by_shard.setdefault(int(candidates.shard[row]), []).append(row)
        asked = {shard: candidates.doc[own].tolist() for shard, own in by_shard.items() if shard not in self.missing}
        version = self.collection.version
        found = await self.ask(
            "show",
            {shard: messages.Show(version(shard), self.question, docs) for shard, docs in asked.items()},
            {shard: replies.shown(docs) for shard, docs in asked.items()},
        )
        return {row: document for shard in found for row, document in zip(by_shard[shard], found[shard], strict=True)}

    async def find(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """The shard and the number there of documents, by id; those that no shard has are not in it."""
        facts, version = self.collection.facts, self.collection.version
        asked = list(ids)
        found = await self.ask(
            "select",
            {shard: messages.Find(version(shard), asked) for shard in self.present},
            {shard: replies.found(len(asked), facts[shard]) for shard in self.present},
        )
        places: dict[str, tuple[int, int]] = {}
        for shard, docs in sorted(found.items()):
            for name, doc in zip(asked, docs, strict=True):
                if doc >= 0:
                    places.setdefault(name, (shard, doc))
        return places

    async def relevance_models(
        self, query: Query, candidates: Candidates, passes: RankerPasses
    ) -> list[messages.Model]:
        """The models that a ranker's feedback features read, made from the first documents of all shards."""
        wanted = model_settings(passes.feature_set)
        if not wanted:
            return []
        n_docs = min(max(one.documents for one in wanted), len(candidates))
        words = await self._words(candidates, n_docs)
        models = []
        for settings in wanted:
            weights = await self._model(query, words[: settings.documents], candidates.score, settings)
            models.append(messages.Model(*settings, list(weights.items())))
        terms = [term for model in models for term, _ in model.weights]
        await self.know(terms)
        self.question = self.collection.question(self.text, self.plain, [*self.question.terms, *terms])
        return models

    async def ask(
        self, stage: str, bodies: Mapping[int, Any], checks: Mapping[int, Callable[[Any], T]], ranker: str | None = None
    ) -> dict[int, T]:
        """The replies of shards that come before the stage must end; the others are missing from now on."""
        until = Deadline(self.started + _LIMITS[stage] * (self.deadline.at - self.started))
        calls: dict[int, NodeCall[T] | asyncio.Task[tuple[T, float]]] = {}
        for shard, body in bodies.items():
            needed: set[messages.Version | str] = {self.collection.version(shard)} | ({ranker} if ranker else set())
            try:
                calls[shard] = self.shards[shard].begin(body, until, checks[shard], needed)
            except NodeError as error:
                self.missing[shard] = error
        if calls:
            # Of one node the call itself is waited for, without a task for each.
            try:
                await asyncio.wait([_awaited(call) for call in calls.values()], timeout=max(0.0, until.remaining))
            except asyncio.CancelledError:
                for call in calls.values():
                    call.withdraw() if isinstance(call, NodeCall) else call.cancel()
                raise
        answers, slowest = {}, 0.0
        for shard, call in calls.items():
            try:
                answers[shard], seconds = _concluded(call)
                slowest = max(slowest, seconds)
            except NodeError as error:
                raise_mistake(error)
                self.missing[shard] = error
        self.seconds[_STAGES[stage]] = self.seconds.get(_STAGES[stage], 0.0) + slowest
        overload = None if self.present else overload_of(list(self.missing.values()))
        if overload is not None:
            raise overload
        return answers

    async def _count(self, lacking: messages.Count) -> None:
        facts = self.collection.facts
        counted = await self.ask(
            "count",
            {
                shard: messages.Count(facts[shard].commit, lacking.terms, lacking.prefixes, lacking.near)
                for shard in self.present
            },
            {shard: replies.counted(lacking, facts[shard]) for shard in self.present},
        )
        self.collection.add_counts(lacking, counted)

    async def _score(
        self,
        stage: str,
        rows: np.ndarray,
        candidates: Candidates,
        ranker: str,
        passes: RankerPasses,
        models: list[messages.Model],
    ) -> np.ndarray:
        """The scores of candidates in a pass, float64; NaN for those of shards that are missing."""
        if len(rows) == 0:
            return np.empty(0)
        if passes.scores_alone(stage):
            scores = np.full(len(rows), np.nan)
            for places, part in await self._pass(stage, rows, candidates, ranker, passes, models):
                scores[places] = part
            return scores
        features = await self._rows(stage, rows, candidates, ranker, passes, models)
        present = np.isin(candidates.shard[rows], self.present)
        scores = np.full(len(rows), np.nan)
        if present.any():
            n_present = int(present.sum())
            score = partial(passes.of(stage).score_rows, features[present], [n_present])
            # A few documents are scored sooner than another thread is awake.
            is_little = n_present <= _SCORED_AT_ONCE
            scores[present] = score() if is_little else await asyncio.get_running_loop().run_in_executor(None, score)
        return scores

    async def _first_scores(
        self, candidates: Candidates, ranker: str, passes: RankerPasses, models: list[messages.Model]
    ) -> np.ndarray:
        """The scores of all candidates in the first pass, which may have been run with selection."""
        if candidates.first is None:
            return await self._score(FIRST, np.arange(len(candidates)), candidates, ranker, passes, models)
        if passes.scores_alone(FIRST):
            return candidates.first
        score = partial(passes.of(FIRST).score_rows, candidates.first, [len(candidates)])
        return await asyncio.get_running_loop().run_in_executor(None, score)

    async def _rows(
        self,
        stage: str,
        rows: np.ndarray,
        candidates: Candidates,
        ranker: str,
        passes: RankerPasses,
        models: list[messages.Model],
    ) -> np.ndarray:
        features = np.full((len(rows), len(passes.of(stage).feature_set)), np.nan, np.float32)
        for places, part in await self._pass(stage, rows, candidates, ranker, passes, models):
            features[places] = part
        return features

    async def _pass(
        self,
        stage: str,
        rows: np.ndarray,
        candidates: Candidates,
        ranker: str,
        passes: RankerPasses,
        models: list[messages.Model],
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """One pass over rows: for each shard, which of the rows it has and what it answered."""
        places = {shard: np.flatnonzero(candidates.shard[rows] == shard) for shard in self.present}
        places = {shard: own for shard, own in places.items() if len(own)}
        alone, n_features = passes.scores_alone(stage), len(passes.of(stage).feature_set)
        bodies = {}
        for shard, own in places.items():
            docs, scores = candidates.doc[rows[own]].tobytes(), candidates.score[rows[own]].tobytes()
            version = self.collection.version(shard)
            bodies[shard] = messages.Score(version, self.question, ranker, stage, docs, scores, models)
        checks = {shard: replies.scored(len(own), n_features, alone=alone) for shard, own in places.items()}
        answered = await self.ask("first" if stage == FIRST else "second", bodies, checks, ranker)
        return [(places[shard], answer) for shard, answer in answered.items()]

    async def _words(self, candidates: Candidates, n_docs: int) -> list[dict[bytes, int]]:
        """The terms of the first candidates; none of those whose shard is missing."""
        places = {shard: np.flatnonzero(candidates.shard[:n_docs] == shard) for shard in self.present}
        places = {shard: own for shard, own in places.items() if len(own)}
        version = self.collection.version
        bodies = {shard: messages.Words(version(shard), candidates.doc[own].tolist()) for shard, own in places.items()}
        found = await self.ask("words", bodies, {shard: replies.words_of(len(own)) for shard, own in places.items()})
        words: list[dict[bytes, int]] = [{} for _ in range(n_docs)]
        for shard, documents in found.items():
            for place, document in zip(places[shard].tolist(), documents, strict=True):
                words[place] = document
        return words

    async def _model(
        self, query: Query, words: Sequence[Mapping[bytes, int]], scores: np.ndarray, settings: ModelSettings
    ) -> dict[bytes, float]:
        """A relevance model; terms are counted over all shards, the weightiest first, as far as it needs them."""
        counted, own = _document_counts(words), scores[: len(words)]
        terms = weighed_terms(counted, own)
        while True:
            try:
                return model_of_documents(self.collection.index, query, counted, own, settings)
            except MissingCountError as error:
                ahead = [error.term, *islice(terms, _TERMS_AHEAD * settings.terms)]
                await self.know(ahead)
                self.collection.question(self.text, self.plain, ahead)


def _awaited(call: NodeCall[T] | asyncio.Task[tuple[T, float]]) -> asyncio.Future[Any]:
    return call.future if isinstance(call, NodeCall) else call


def _concluded(call: NodeCall[T] | asyncio.Task[tuple[T, float]]) -> tuple[T, float]:
    if isinstance(call, NodeCall):
        return call.conclude()
    if not call.done():
        call.cancel()
        raise NodeError("timeout", "no replica answered in time")
    return call.result()


def _document_counts(words: Sequence[Mapping[bytes, int]]) -> DocumentCounts:
    """The terms of documents, numbered in the order of their bytes."""
    terms = sorted({term for document in words for term in document})
    number_of = {term: number for number, term in enumerate(terms)}
    entries = [(doc, number_of[term], count) for doc, document in enumerate(words) for term, count in document.items()]
    doc, number, frequency = np.array(entries, np.int64).reshape(-1, 3).T
    return DocumentCounts(
        np.ascontiguousarray(doc), np.ascontiguousarray(number), np.ascontiguousarray(frequency),
        terms.__getitem__, is_ordered=True,
    )  # fmt: skip
