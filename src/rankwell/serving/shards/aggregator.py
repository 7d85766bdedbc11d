"""The aggregator: the shards of a collection and named rankers, answered as one index."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankwell.data.candidates import N_CANDIDATES
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, ParameterError
from rankwell.index.query.query import Query
from rankwell.index.search.selection import checked_settings
from rankwell.index.text.synonyms import Synonyms
from rankwell.scoring.ranker_file import RankerFile
from rankwell.scoring.scorer import score_description
from rankwell.serving.answer import Answer, Result, SearchRequest
from rankwell.serving.batching import OverloadError
from rankwell.serving.deadline import Deadline
from rankwell.serving.log_losses import LogLosses
from rankwell.serving.named_rankers import BM25_ALONE
from rankwell.serving.node import words_of
from rankwell.serving.ranking.explained_search import (
    ExplainedDocument,
    explain_first_pass,
    explain_ranked,
    not_ranked,
)
from rankwell.serving.ranking.ranked_search import features_of
from rankwell.serving.ranking.served_feature_log import ServedFeatureLog
from rankwell.serving.shards import messages
from rankwell.serving.shards.candidates import Candidates, Ranked, Selection
from rankwell.serving.shards.collection import ShardedCollection
from rankwell.serving.shards.served_collection import ASIDE_SECONDS, ServedCollection, ShardedSnapshot, in_thread
from rankwell.serving.shards.shard import Shard
from rankwell.serving.shards.sharded_ranking import LoggedAs, ShardedRanking, ranking_of
from rankwell.serving.shards.sharded_search import ShardedSearch
from rankwell.serving.shards.spares import Spares
from rankwell.serving.unknown_document import unknown_document

# Of so many documents a shard may tell the order: their values are sent in one message.
_MOST_ORDERED = 1 << 24


@dataclass(frozen=True)
class _Found:
    """What was found for a request. ranker : None for BM25 alone; n_candidates : how many could be ranked"""

    ranker: str | None
    query: Query
    candidates: Candidates
    ranked: Ranked
    n_candidates: int


class Aggregator(ServedCollection):
    """Answers search requests over shards.

    Parameters
    ----------
    shards, rankers, spares, synonyms : as of `ServedCollection`
    n_candidates : int
        How many documents of all shards together selection gives to a ranker.
    feature_log : path, optional
        Where the features of the default ranker are logged, for requests with an id.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        rankers: Mapping[str, str | os.PathLike[str]] | None = None,
        *,
        n_candidates: int = N_CANDIDATES,
        spares: Spares | None = None,
        synonyms: Synonyms | None = None,
        feature_log: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(shards, rankers, spares=spares, synonyms=synonyms)
        self._n_candidates = n_candidates
        self._log: ServedFeatureLog | None = None
        if feature_log is not None:
            if not self._files:
                raise ParameterError("needs a ranker, whose features are logged.", parameter="feature_log")
            self._log = ServedFeatureLog(feature_log, features_of(next(iter(self._files.values())).description))

    @property
    def log_losses(self) -> LogLosses | None:
        """What the feature log could not keep; None if there is no log."""
        return None if self._log is None else self._log.losses

    async def start(self, patience: float = 10.0) -> None:
        await super().start(patience)
        await self._try_out(self.snapshot)

    async def stop(self) -> None:
        await super().stop()
        if self._log is not None:
            self._log.close()

    def check_ranker(self, name: str, file: RankerFile) -> None:
        log = self._log if name == self.snapshot.default else None
        if log is not None and features_of(file.description) != log.feature_set:
            raise DataError("the log has rows of another feature set than the ranker's. Start another log.")

    async def answer(self, request: SearchRequest) -> Answer:
        snapshot, started = self.snapshot, time.perf_counter()
        asked = messages.AskedQuery(
            request.query, request.plain, request.filter, typos=request.typos, match=request.match
        )
        search = self._search(snapshot, asked, request.deadline)
        found = await self._found(snapshot, search, request)
        results = await self._results(search, found.candidates, found.ranked, request)
        is_empty = not results and len(found.ranked.rows) > request.offset
        if not search.rounds.present or (is_empty and search.rounds.given_up is not None):
            raise search.rounds.unanswered()
        seconds = {"parse": 0.0, **search.rounds.seconds}
        ranked, shard_of = found.ranked, found.candidates.shard
        # Rows of shards that are missing are not results, and are told of as missing.
        unranked = ranked.unranked[~np.isin(shard_of[ranked.unranked], list(search.rounds.missing))]
        seconds["merge"] = max(0.0, time.perf_counter() - started - sum(seconds.values()))
        return Answer(
            version=snapshot.version,
            ranker=found.ranker,
            n_matches=found.candidates.n_matches,
            n_candidates=found.n_candidates,
            n_ranked=ranked.n_ranked,
            n_kept=ranked.n_ranked + int(np.isin(unranked, ranked.kept).sum()),
            is_partial=len(unranked) > 0,
            seconds=seconds,
            results=tuple(results),
            n_shards=len(self.shards),
            missing=tuple(self.shards[shard].name for shard in sorted(search.rounds.missing)),
            unranked=tuple(self.shards[shard].name for shard in np.unique(shard_of[unranked]).tolist()),
            device="+".join(sorted(search.rounds.devices)) or "cpu",
            fallback=self.fallback(),
            n_examined=found.candidates.n_examined,
            facets=found.candidates.facets,
            words=() if request.like is None else words_of(found.query),
            is_partly_counted=search.is_partly_counted,
        )

    async def explain(self, asked: messages.AskedQuery, document: str, ranker: str) -> ExplainedDocument:
        """What the score of a document consists of; see `RankedSearch.explain`."""
        search, ranking = await self._ranking_aside(asked, ranker)
        candidates = ranking.candidates
        ranked = await ranking.rank(self._n_candidates)
        found = await search.find([document])
        self._check_all_answered(search)
        candidate = _row_of(candidates, *_place(found, document))
        if candidate is None:
            raise not_ranked(document, len(candidates))
        is_kept = candidate in ranked.kept
        rows = await ranking.features(ranked.kept if is_kept else np.arange(len(candidates)))
        self._check_all_answered(search)
        description = ranking.passes.description
        rank = int(np.flatnonzero(ranked.rows == candidate)[0]) + 1
        if is_kept:
            row = int(np.searchsorted(ranked.kept, candidate))
            (explained,) = await in_thread(explain_ranked, description, ranking.passes.feature_set, rows, [row])
        else:
            score = float(ranked.scores[rank - 1])
            (explained,) = await in_thread(explain_first_pass, description, rows, [candidate], [score])
        return ExplainedDocument(rank, document, float(candidates.score[candidate]), *explained)

    async def features(self, asked: messages.AskedQuery, documents: Sequence[str], ranker: str) -> np.ndarray:
        """The ranker's features of documents, float32 (n, n_features); see `RankedSearch.features`."""
        search, ranking = await self._ranking_aside(asked, ranker)
        found = await search.find(documents)
        self._check_all_answered(search)
        places = np.array([_place(found, document) for document in documents], np.int64).reshape(-1, 2)
        wanted = Candidates(places[:, 0], places[:, 1].copy(), np.zeros(len(places)), 0)
        of_wanted = ShardedRanking(search, wanted, ranking.ranker, ranking.passes, ranking.models)
        rows = await of_wanted.features(np.arange(len(places)))
        self._check_all_answered(search)
        return rows

    async def score(self, rows: np.ndarray, ranker: str) -> np.ndarray:
        """The ranker's scores of rows of features, which are the documents of one query: float64 (n,)."""
        description = self.snapshot.files[ranker].description.second_pass
        scores: np.ndarray = await in_thread(score_description, description, RankingDataset(rows, group=[len(rows)]))
        return scores

    async def has_document(self, document: str) -> bool:
        search = self._search(self.snapshot, messages.AskedQuery(""), Deadline.after(ASIDE_SECONDS))
        found = await search.find([document])
        if not found:
            self._check_all_answered(search)
        return document in found

    async def _found(self, snapshot: ShardedSnapshot, search: ShardedSearch, request: SearchRequest) -> _Found:
        """The candidates of a request, in the order of its ranker."""
        ranker = request.ranker_of(snapshot)
        end = request.offset + request.k
        # Some more, in place of results whose shard is lost before they are shown; a search that stops early is
        # another one for another number.
        depth = end if request.stop_after is not None else end + request.k
        selection = _selection(snapshot.collection, request, depth if ranker == BM25_ALONE else self._n_candidates)
        if request.like is not None:
            place = (await search.find([request.like], "count")).get(request.like)
            if place is None:
                self._check_all_answered(search)
                raise unknown_document(request.like)
            query, selection = await search.parse_like(place), replace(selection, without=place)
        else:
            query = await search.parse()
        if ranker == BM25_ALONE:
            candidates = await search.select(query, selection)
            ranked = Ranked(
                np.arange(len(candidates)), candidates.score, np.empty(0, np.int64), 0, np.empty(0, np.int64)
            )
            return _Found(None, query, candidates, ranked, min(len(candidates), end))
        passes, digest = snapshot.passes(ranker), snapshot.digests[ranker]
        candidates = await search.select(query, selection, digest, passes)
        ranking = await ranking_of(search, query, candidates, digest, passes)
        logged = None
        if self._log is not None and request.query_id is not None and ranker == snapshot.default:
            logged = LoggedAs(self._log, request.query_id)
        return _Found(ranker, query, candidates, await ranking.rank(end + request.k, logged), len(candidates))

    def _search(self, snapshot: ShardedSnapshot, asked: messages.AskedQuery, deadline: Deadline) -> ShardedSearch:
        return ShardedSearch(self.shards, snapshot.collection, asked, deadline)

    async def _ranking_aside(self, asked: messages.AskedQuery, ranker: str) -> tuple[ShardedSearch, ShardedRanking]:
        """A query's candidates and their ranking, with more time than a search has."""
        snapshot = self.snapshot
        search = self._search(snapshot, asked, Deadline.after(ASIDE_SECONDS))
        query = await search.parse()
        candidates = await search.select(query, Selection(self._n_candidates))
        passes, digest = snapshot.passes(ranker), snapshot.digests[ranker]
        return search, await ranking_of(search, query, candidates, digest, passes)

    async def _results(
        self, search: ShardedSearch, candidates: Candidates, ranked: Ranked, request: SearchRequest
    ) -> list[Result]:
        """The results with what is shown of them. Those of shards that are lost on the way make room for others."""
        end = request.offset + request.k
        rows = ranked.rows.tolist()
        shown = await search.show(rows[request.offset : end], candidates)
        if len(shown) < len(rows[request.offset : end]):
            rows = [row for row in rows if int(candidates.shard[row]) not in search.rounds.missing]
            others = [row for row in rows[request.offset : end] if row not in shown]
            shown |= await search.show(others, candidates, "replace")
        score_of = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
        kept = [row for row in rows[request.offset : end] if row in shown]
        return [
            _result(place, score_of[row], float(candidates.score[row]), shown[row])
            for place, row in enumerate(kept, start=request.offset + 1)
        ]

    def _check_all_answered(self, search: ShardedSearch) -> None:
        if search.rounds.missing or search.rounds.late or search.rounds.given_up is not None:
            text = f"this call needs all shards, and some did not answer ({search.rounds.why()})."
            raise OverloadError(text, retry_after=1.0)
        if search.is_partly_counted:
            text = "words of the query were counted while a shard was missing, and are counted again now. Try again."
            raise OverloadError(text, retry_after=1.0)

    async def _try_out(self, snapshot: ShardedSnapshot) -> None:
        """Search once by every ranker: what this process needs is loaded before the first user asks."""
        text = next((facts.sample for facts in snapshot.collection.facts.values() if facts.sample), "")
        for ranker in (BM25_ALONE, *snapshot.files):
            deadline = Deadline.after(ASIDE_SECONDS)
            await self.answer(SearchRequest(text, deadline, ranker=ranker, plain=True))


def _selection(collection: ShardedCollection, request: SearchRequest, k: int) -> Selection:
    """What is to be selected for a request, checked."""
    keys, facets = checked_settings(collection.index, request.sort, request.facets, request.stop_after)
    if request.stop_after is not None and any(one.n_numbers > _MOST_ORDERED for one in collection.facts.values()):
        raise ParameterError(
            f"is for shards of up to {_MOST_ORDERED:,} documents, whose order this server knows.",
            parameter="stop_after",
        )
    return Selection(k, keys, facets, request.facets, request.stop_after)


def _result(place: int, score: float, first_score: float, document: messages.ShownDocument) -> Result:
    caption = tuple(document.caption)
    return Result(place, document.id, score, first_score, document.title, document.url, caption, document.fields)


def _place(found: Mapping[str, tuple[int, int]], document: str) -> tuple[int, int]:
    if document not in found:
        raise unknown_document(document)
    return found[document]


def _row_of(candidates: Candidates, shard: int, doc: int) -> int | None:
    """Which of the candidates a document is."""
    places = np.flatnonzero((candidates.shard == shard) & (candidates.doc == doc))
    return int(places[0]) if len(places) else None
