"""The aggregator: the shards of a collection and named rankers, answered as one index.

What queries are answered from (a commit of each shard, what is counted over all, the rankers) is replaced as a whole,
after the nodes have been prepared for it: queries that are under way keep the old one, and none waits.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.data.candidates import N_CANDIDATES
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, RankwellError
from rankwell.scoring.explanation import explain_rows
from rankwell.scoring.ranker_file import RankerFile, read_ranker_file
from rankwell.scoring.scorer import score_description
from rankwell.serving.answer import Answer, Result, SearchRequest
from rankwell.serving.batching import OverloadError
from rankwell.serving.deadline import Deadline
from rankwell.serving.named_rankers import BM25_ALONE, NamedRankers, checked_name
from rankwell.serving.ranking.explained_search import ExplainedDocument
from rankwell.serving.ranking.ranker_passes import RankerPasses
from rankwell.serving.shards import messages as shard_messages
from rankwell.serving.shards.collection import ShardedCollection
from rankwell.serving.shards.node_link import HEALTH_SECONDS, NodeError, NodeLink
from rankwell.serving.shards.shard import Shard
from rankwell.serving.shards.shard_node import ranker_digest
from rankwell.serving.shards.sharded_search import Candidates, Ranked, ShardedSearch
from rankwell.serving.shards.spares import Spares

_log = logging.getLogger("rankwell.serving")

# Calls besides searches may take longer.
_ASIDE_SECONDS = 10.0


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


class Aggregator:
    """Answers search requests over shards.

    Parameters
    ----------
    shards : in the order of their documents
    rankers : ranker files by name; the first is the default, without any it is BM25 alone
    n_candidates : int
        How many documents of all shards together selection gives to a ranker.
    spares : nodes that take the place of those that are gone
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        rankers: Mapping[str, str | os.PathLike[str]] | None = None,
        *,
        n_candidates: int = N_CANDIDATES,
        spares: Spares | None = None,
    ) -> None:
        self.shards, self._n_candidates = list(shards), n_candidates
        self.spares = spares or Spares(())
        self._contents = {checked_name(name): Path(path).read_bytes() for name, path in (rankers or {}).items()}
        self._digests = {name: ranker_digest(content) for name, content in self._contents.items()}
        self._files = {name: read_ranker_file(path) for name, path in (rankers or {}).items()}
        self._changed = asyncio.Event()
        self._changing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._current: ShardedSnapshot | None = None
        self._failed = ""

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
        await self._try_out(self.snapshot)
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

    async def put_ranker(self, name: str, path: str | os.PathLike[str]) -> None:
        """Add a ranker, or replace the one of that name, on all nodes; queries that are under way keep the old one."""
        content, file = await _in_thread(Path(path).read_bytes), await _in_thread(read_ranker_file, path)
        async with self._changing:
            RankerPasses(self.snapshot.collection.index, file.description)
            digest = ranker_digest(content)
            await asyncio.gather(*(self._give_ranker(link, digest, content) for link in self.links if link.is_up))
            self._contents = {**self._contents, checked_name(name): content}
            self._digests = {**self._digests, name: digest}
            self._use({**self._files, name: file}, self.snapshot.collection)

    async def remove_ranker(self, name: str) -> None:
        """Remove a ranker that is not the default."""
        async with self._changing:
            self._use(self.snapshot.without(name), self.snapshot.collection)

    async def answer(self, request: SearchRequest) -> Answer:
        snapshot, started = self.snapshot, time.perf_counter()
        ranker = snapshot.ranker(request.ranker)
        search = self._search(snapshot, request.query, request.plain, request.deadline)
        query = await search.parse()
        end = request.offset + request.k
        if ranker == BM25_ALONE:
            # Some more, in place of results whose shard is lost before they are shown.
            candidates = await search.select(end + request.k)
            ranked = Ranked(np.arange(len(candidates)), candidates.score, np.empty(0, np.int64), 0)
            n_candidates = min(len(candidates), end)
        else:
            passes, digest = snapshot.passes(ranker), snapshot.digests[ranker]
            candidates = await search.select(self._n_candidates, digest, passes)
            ranked = await search.rank(query, candidates, digest, passes, end + request.k)
            n_candidates = len(candidates)
        results = await self._results(search, candidates, ranked, request)
        self._check_some_answered(search)
        seconds = {"parse": 0.0, **search.seconds}
        seconds["merge"] = max(0.0, time.perf_counter() - started - sum(seconds.values()))
        return Answer(
            version=snapshot.version,
            ranker=None if ranker == BM25_ALONE else ranker,
            n_matches=candidates.n_matches,
            n_candidates=n_candidates,
            n_ranked=ranked.n_ranked,
            is_partial=ranker != BM25_ALONE and ranked.n_ranked == 0 and n_candidates > 0,
            seconds=seconds,
            results=tuple(results),
            n_shards=len(self.shards),
            missing=tuple(self.shards[shard].name for shard in sorted(search.missing)),
            fallback=self._fallback(),
        )

    async def explain(self, text: str, document: str, ranker: str, *, plain: bool = False) -> ExplainedDocument:
        """What the score of a document consists of; see `RankedSearch.explain`."""
        snapshot = self.snapshot
        search, passes, digest = self._aside(text, plain), snapshot.passes(ranker), snapshot.digests[ranker]
        query = await search.parse()
        candidates = await search.select(self._n_candidates)
        ranked = await search.rank(query, candidates, digest, passes, self._n_candidates)
        models = await search.relevance_models(query, candidates, passes)
        rows = await search.features(ranked.kept, candidates, digest, passes, models)
        found = await search.find([document])
        self._check_all_answered(search)
        row = _row_of(candidates, ranked.kept, *_place(found, document))
        if row is None:
            raise DataError(
                f"document {document!r} is not among the {len(ranked.kept)} documents that were ranked for this query: "
                f"it does not match, or {len(candidates)} candidates are too few."
            )
        dataset = RankingDataset(rows, group=[len(rows)])
        (explanation,) = await _in_thread(explain_rows, passes.description, dataset, [row])
        kept = int(ranked.kept[row])
        values = dict(zip(passes.feature_set.names, rows[row].tolist(), strict=True))
        rank = int(np.flatnonzero(ranked.rows == kept)[0]) + 1
        return ExplainedDocument(rank, document, float(candidates.score[kept]), explanation, values)

    async def features(self, text: str, documents: Sequence[str], ranker: str, *, plain: bool = False) -> np.ndarray:
        """The ranker's features of documents, float32 (n, n_features); see `RankedSearch.features`."""
        snapshot = self.snapshot
        search, passes = self._aside(text, plain), snapshot.passes(ranker)
        query = await search.parse()
        candidates = await search.select(self._n_candidates)
        models = await search.relevance_models(query, candidates, passes)
        found = await search.find(documents)
        self._check_all_answered(search)
        places = np.array([_place(found, document) for document in documents], np.int64).reshape(-1, 2)
        wanted = Candidates(places[:, 0], places[:, 1].copy(), np.zeros(len(places)), 0)
        rows = await search.features(np.arange(len(places)), wanted, snapshot.digests[ranker], passes, models)
        self._check_all_answered(search)
        return rows

    async def score(self, rows: np.ndarray, ranker: str) -> np.ndarray:
        """The ranker's scores of rows of features, which are the documents of one query: float64 (n,)."""
        description = self.snapshot.files[ranker].description.second_pass
        scores: np.ndarray = await _in_thread(score_description, description, RankingDataset(rows, group=[len(rows)]))
        return scores

    async def has_document(self, document: str) -> bool:
        search = self._aside("")
        found = await search.find([document])
        if not found:
            self._check_all_answered(search)
        return document in found

    def _fallback(self) -> str | None:
        """Why a node ranks on another device than it should, if one does."""
        reasons = [f"{link.name}: {link.facts.fallback}" for link in self.links if link.facts and link.facts.fallback]
        return reasons[0] if reasons else None

    def _search(self, snapshot: ShardedSnapshot, text: str, plain: bool, deadline: Deadline) -> ShardedSearch:
        return ShardedSearch(self.shards, snapshot.collection, text, plain=plain, deadline=deadline)

    def _aside(self, text: str, plain: bool = False) -> ShardedSearch:
        return self._search(self.snapshot, text, plain, Deadline.after(_ASIDE_SECONDS))

    async def _results(
        self, search: ShardedSearch, candidates: Candidates, ranked: Ranked, request: SearchRequest
    ) -> list[Result]:
        """The results with what is shown of them. Those of shards that are lost on the way make room for others."""
        end = request.offset + request.k
        rows = ranked.rows.tolist()
        shown = await search.show(rows[request.offset : end], candidates)
        if len(shown) < len(rows[request.offset : end]):
            rows = [row for row in rows if int(candidates.shard[row]) not in search.missing]
            shown |= await search.show([row for row in rows[request.offset : end] if row not in shown], candidates)
        score_of = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
        kept = [row for row in rows[request.offset : end] if row in shown]
        return [
            _result(place, score_of[row], float(candidates.score[row]), shown[row])
            for place, row in enumerate(kept, start=request.offset + 1)
        ]

    def _check_some_answered(self, search: ShardedSearch) -> None:
        if not search.present:
            why = "; ".join(f"{self.shards[shard].name}: {error}" for shard, error in search.missing.items())
            raise OverloadError(f"no shard answered ({why}). Try again.", retry_after=1.0)

    def _check_all_answered(self, search: ShardedSearch) -> None:
        if search.missing:
            why = "; ".join(f"{self.shards[shard].name}: {error}" for shard, error in search.missing.items())
            raise OverloadError(f"this call needs all shards, and some did not answer ({why}).", retry_after=1.0)

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
            except (RankwellError, OSError) as error:
                # What is served stays; the same failure is not logged every time.
                if str(error) != self._failed:
                    _log.error("the shards cannot be served together: %s", error)
                self._failed = str(error)

    def _is_outdated(self) -> bool:
        collection = self.snapshot.collection
        for number, shard in enumerate(self.shards):
            facts, served = shard.facts(), collection.facts.get(number)
            if facts is not None and (served is None or facts.commit != served.commit):
                return True
        is_whole = all(self.is_available(shard) for shard in range(len(self.shards)))
        return collection.is_full or (collection.is_incomplete and is_whole)

    async def _replace_collection(self) -> None:
        """Serve what the nodes have now."""
        before = None if self._current is None else self._current.collection
        facts = {} if before is None else dict(before.facts)
        facts |= {number: own for number, shard in enumerate(self.shards) if (own := shard.facts()) is not None}
        number, epoch = (1, 0) if before is None else (before.number + 1, before.epoch + 1)
        collection = ShardedCollection(dict(sorted(facts.items())), number, epoch)
        for file in self._files.values():
            RankerPasses(collection.index, file.description)
        await self._prepare(collection)
        self._use(self._files, collection)

    def _use(self, files: Mapping[str, RankerFile], collection: ShardedCollection) -> None:
        self._files = dict(files)
        self._contents = {name: content for name, content in self._contents.items() if name in files}
        self._digests = {name: digest for name, digest in self._digests.items() if name in files}
        version = 1 if self._current is None else self._current.version + 1
        default = next(iter(files), BM25_ALONE)
        self._current = ShardedSnapshot(version, self._files, default, collection, self._digests)

    async def _try_out(self, snapshot: ShardedSnapshot) -> None:
        """Search once by every ranker: what this process needs is loaded before the first user asks."""
        text = next((facts.sample for facts in snapshot.collection.facts.values() if facts.sample), "")
        for ranker in (BM25_ALONE, *snapshot.files):
            deadline = Deadline.after(_ASIDE_SECONDS)
            await self.answer(SearchRequest(text, deadline, ranker=ranker, plain=True))

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
        version = collection.version(number)
        try:
            for name, content in self._contents.items():
                await self._give_ranker(link, self._digests[name], content)
            if version not in link.prepared:
                await link.order(shard_messages.Prepare(version.commit, collection.census))
                link.prepared.add(version)
        except NodeError as error:
            # A replica that has not got the commit yet is asked again soon.
            if error.kind != "commit":
                _log.warning("node %s cannot be prepared: %s", link.name, error)

    async def _give_ranker(self, link: NodeLink, digest: str, content: bytes) -> None:
        if digest in link.prepared:
            return
        try:
            await link.order(shard_messages.PutRanker(content))
            link.prepared.add(digest)
        except NodeError as error:
            _log.warning("node %s did not take a ranker: %s", link.name, error)


def _result(place: int, score: float, first_score: float, document: shard_messages.ShownDocument) -> Result:
    caption = tuple(document.caption)
    return Result(place, document.id, score, first_score, document.title, document.url, caption, document.fields)


def _place(found: Mapping[str, tuple[int, int]], document: str) -> tuple[int, int]:
    if document not in found:
        raise DataError(f"there is no document {document!r} in the index.")
    return found[document]


def _row_of(candidates: Candidates, kept: np.ndarray, shard: int, doc: int) -> int | None:
    """Which of the kept candidates a document is."""
    places = np.flatnonzero((candidates.shard[kept] == shard) & (candidates.doc[kept] == doc))
    return int(places[0]) if len(places) else None


async def _in_thread(work: Any, *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, work, *arguments)
