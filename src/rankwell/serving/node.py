"""A node: the newest commit of an index and named rankers, which answer batches of requests.

Index and rankers are replaced as a whole, by one assignment, after the new ones have been tried: queries that are
being answered keep the old ones, and none waits.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rankwell.data.candidates import N_CANDIDATES
from rankwell.errors import ParameterError, RankwellError
from rankwell.features.own_features import OwnFeatures
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.search.facets import Facets
from rankwell.index.search.more_like import like_query, search_others
from rankwell.index.search.selection import SearchResult, checked_settings
from rankwell.index.text.synonyms import Synonyms
from rankwell.scoring.ranker_file import RankerFile, read_ranker_file
from rankwell.serving.answer import Answer, Result, SearchRequest
from rankwell.serving.log_losses import LogLosses
from rankwell.serving.named_rankers import BM25_ALONE, checked_name
from rankwell.serving.ranking.ranked_search import RankedResult, features_of
from rankwell.serving.ranking.served_feature_log import ServedFeatureLog
from rankwell.serving.served_query import parse_served, parse_served_filter
from rankwell.serving.shown_documents import shown_results
from rankwell.serving.snapshot import SearchSettings, Snapshot, make_snapshot
from rankwell.serving.unknown_document import unknown_document

_log = logging.getLogger("rankwell.serving")

Found = SearchResult | RankedResult


class Node:
    """Answers search requests over one index.

    Parameters
    ----------
    index : Index or path
    rankers : ranker files by name; the first is the default, without any it is BM25 alone
    n_candidates : int
        How many documents selection gives to a ranker.
    device : {"cpu", "cuda", "auto"}
        Where batches are ranked. "auto" uses a CUDA device, where there is one, for batches that it ranks quicker than
        the CPU. A device that fails or is missing is replaced by the CPU, until it works again.
    n_jobs : as of `RankedSearch`
    feature_log : path, optional
        Where the features of the default ranker are logged, for requests with an id.
    own : OwnFeatures, optional
        Where the values of own features come from.
    synonyms : Synonyms, optional
        Words that are found too, in all queries.
    """

    def __init__(
        self,
        index: Index | str | os.PathLike[str],
        rankers: Mapping[str, str | os.PathLike[str]] | None = None,
        *,
        n_candidates: int = N_CANDIDATES,
        device: str = "cpu",
        n_jobs: int | None = None,
        feature_log: str | os.PathLike[str] | None = None,
        own: OwnFeatures | None = None,
        synonyms: Synonyms | None = None,
    ) -> None:
        self._synonyms = synonyms
        opened = index if isinstance(index, Index) else Index.open(index)
        files = {checked_name(name): read_ranker_file(path) for name, path in (rankers or {}).items()}
        default = next(iter(files), BM25_ALONE)
        if feature_log is not None and not files:
            raise ParameterError("needs a ranker, whose features are logged.", parameter="feature_log")
        self._feature_log = (
            None if feature_log is None else ServedFeatureLog(feature_log, features_of(files[default].description))
        )
        self._settings = SearchSettings(n_candidates, device, n_jobs, own)
        self._changing = threading.Lock()
        self._is_closing = threading.Event()
        self._watcher: threading.Thread | None = None
        self.snapshot: Snapshot = make_snapshot(1, opened, files, default, self._settings, self._feature_log)

    def watch(self, every: float = 1.0) -> None:
        """Look for a new commit of the index every so many seconds, in a thread of its own."""
        self._watcher = threading.Thread(target=self._watch, args=(every,), name="rankwell-watcher", daemon=True)
        self._watcher.start()

    def refresh(self) -> bool:
        """Take the newest commit of the index; returns whether there was one."""
        with self._changing:
            newest = self.snapshot.index.reopen()
            if newest is self.snapshot.index:
                return False
            self._replace(newest, self.snapshot.files)
            return True

    def put_ranker(self, name: str, path: str | os.PathLike[str]) -> None:
        """Add a ranker, or replace the one of that name."""
        file = read_ranker_file(path)
        with self._changing:
            self._replace(self.snapshot.index, {**self.snapshot.files, checked_name(name): file})

    def remove_ranker(self, name: str) -> None:
        """Remove a ranker that is not the default."""
        with self._changing:
            self._replace(self.snapshot.index, self.snapshot.without(name))

    @property
    def log_losses(self) -> LogLosses | None:
        """What the feature log could not keep; None if there is no log."""
        return None if self._feature_log is None else self._feature_log.losses

    def close(self) -> None:
        self._is_closing.set()
        if self._watcher is not None:
            self._watcher.join()
        if self._feature_log is not None:
            self._feature_log.close()

    def answer(self, requests: Sequence[SearchRequest]) -> list[Answer | Exception]:
        """The answers of a batch; in place of one that failed, its exception. All are of one snapshot."""
        return list(self.answers(requests))

    def answers(self, requests: Sequence[SearchRequest]) -> Iterator[Answer | Exception]:
        """The same one after the other: all are ranked together, then each gets its captions and can be given."""
        snapshot = self.snapshot
        found: dict[int, Ranked | Exception] = {}
        groups: dict[str, dict[int, Query]] = {}
        started = time.perf_counter()
        for number, request in enumerate(requests):
            try:
                # The same order of checks as over shards, so that of two mistakes the same one is told.
                ranker = request.ranker_of(snapshot)
                groups.setdefault(ranker, {})[number] = self._parsed(snapshot.index, request)
            except RankwellError as error:
                found[number] = error
        parse = time.perf_counter() - started
        for ranker, queries in groups.items():
            found |= _rank_group(snapshot, ranker, queries, {n: requests[n] for n in queries}, parse)
        for number, request in enumerate(requests):
            yield _answer(snapshot, request, found[number])

    def parse(self, index: Index, text: str, **settings: Any) -> Query:
        """A query as it is searched for; settings : as of `parse_served`"""
        return parse_served(index, text, synonyms=self._synonyms, **settings)

    def _parsed(self, index: Index, request: SearchRequest) -> Query:
        """The query of a request, what it asks for besides checked."""
        checked_settings(index, request.sort, request.facets, request.stop_after)
        if request.like is None:
            wanted = {"plain": request.plain, "filter": request.filter, "typos": request.typos, "match": request.match}
            return self.parse(index, request.query, **wanted)
        doc = index.find(request.like)
        if doc < 0:
            raise unknown_document(request.like)
        return replace(like_query(index, doc), filter=parse_served_filter(index, request.filter))

    def _replace(self, index: Index, files: Mapping[str, RankerFile]) -> None:
        old = self.snapshot
        self.snapshot = make_snapshot(
            old.version + 1, index, files, old.default, self._settings, self._feature_log, old
        )

    def _watch(self, every: float) -> None:
        failed = None
        while not self._is_closing.wait(every):
            try:
                if self.refresh():
                    _log.info("index replaced", extra={"generation": self.snapshot.index.generation})
                failed = None
            except Exception as error:
                # What is served stays; the same failure is not logged every second.
                if str(error) != failed:
                    _log.error("the new commit of the index cannot be served: %s", error)
                failed = str(error)


@dataclass(frozen=True)
class Ranked:
    """What was found for one request, and on which device; seconds : of the stages that its batch shares"""

    ranker: str
    query: Query
    found: Found
    seconds: Mapping[str, float]
    device: str
    fallback: str | None


def _rank_group(
    snapshot: Snapshot, ranker: str, queries: Mapping[int, Query], requests: Mapping[int, SearchRequest], parse: float
) -> dict[int, Ranked | Exception]:
    """The rankings of requests for one ranker. If they cannot be ranked together, each is tried alone."""
    started = time.perf_counter()
    try:
        found, device, fallback = _search(snapshot, ranker, list(queries.values()), list(requests.values()))
    except Exception as error:
        if len(queries) == 1:
            return dict.fromkeys(queries, error)
        alone = [_rank_group(snapshot, ranker, {n: queries[n]}, {n: requests[n]}, parse) for n in queries]
        return {number: ranked for one in alone for number, ranked in one.items()}
    stages = {"parse": parse, "select": time.perf_counter() - started}
    pairs = zip(queries.items(), found, strict=True)
    return {number: Ranked(ranker, query, result, stages, device, fallback) for (number, query), result in pairs}


def _search(
    snapshot: Snapshot, ranker: str, queries: Sequence[Query], requests: Sequence[SearchRequest]
) -> tuple[Sequence[Found], str, str | None]:
    """What is found, the device that ranked it, and why it is not the one that should have."""
    if ranker == BM25_ALONE:
        pairs = zip(queries, requests, strict=True)
        return [_search_alone(snapshot.index, query, request) for query, request in pairs], "cpu", None
    depth = max(request.offset + request.k for request in requests)
    return snapshot.placed[ranker].search_many(
        queries,
        depth,
        query_ids=[request.query_id for request in requests],
        deadline=[request.deadline.at for request in requests],
        stop_after=[request.stop_after for request in requests],
    )


def _search_alone(index: Index, query: Query, request: SearchRequest) -> SearchResult:
    """What is found without a ranker."""
    depth = request.offset + request.k
    if request.like is not None:
        return search_others(index, query, index.find(request.like), k=depth)
    return index.search(query, k=depth, sort=request.sort, stop_after=request.stop_after)


def _answer(snapshot: Snapshot, request: SearchRequest, ranked: Ranked | Exception) -> Answer | Exception:
    """The answer with its results, and their captions if they are wanted."""
    if isinstance(ranked, Exception):
        return ranked
    started = time.perf_counter()
    found, wanted = ranked.found, slice(request.offset, request.offset + request.k)
    by_ranker = found if isinstance(found, RankedResult) else None
    selected = found if isinstance(found, SearchResult) else found.selected
    first_scores = (selected.scores if by_ranker is None else by_ranker.first_scores)[wanted].tolist()
    docs, scores, first = found.docs[wanted].tolist(), found.scores[wanted].tolist(), request.offset + 1
    if request.captions:
        try:
            results = shown_results(snapshot.index, ranked.query, docs, scores, first_scores, first)
        except RankwellError as error:
            return error
    else:
        rows = zip(found.ids[wanted], scores, first_scores, strict=True)
        results = [Result(place, *row) for place, row in enumerate(rows, start=first)]
    stages = {**ranked.seconds, **({} if by_ranker is None else by_ranker.seconds)}
    stages["captions"] = time.perf_counter() - started
    facets: Facets = {}
    if request.facets:
        started = time.perf_counter()
        facets = selected.count_facets(request.facets)
        stages["facets"] = time.perf_counter() - started
    n_ranked, n_kept = (0, 0) if by_ranker is None else (by_ranker.n_ranked, by_ranker.n_kept)
    return Answer(
        version=snapshot.version,
        ranker=None if by_ranker is None else ranked.ranker,
        n_matches=None if selected.stopped_early else selected.n_matches,
        n_candidates=len(selected),
        n_ranked=n_ranked,
        n_kept=n_kept,
        is_partial=n_ranked < n_kept,
        seconds=stages,
        results=tuple(results),
        device=ranked.device,
        fallback=ranked.fallback,
        n_examined=selected.n_examined,
        facets=facets,
        words=() if request.like is None else words_of(ranked.query),
    )


def words_of(query: Query) -> tuple[str, ...]:
    """The terms that are searched for."""
    return tuple(term.decode(errors="replace") for term in query.terms)
