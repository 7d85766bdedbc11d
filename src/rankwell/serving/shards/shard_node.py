"""A node of a sharded collection: one shard's index, which answers an aggregator's requests.

A node keeps no names of rankers and no state of a query between requests: each request names the commit of the index,
the census that its statistics come from and the digest of the ranker, so that an answer is made of one of each, and
any replica gives the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from rankwell.errors import DataError, ParameterError, RankwellError
from rankwell.features.feedback import ModelSettings, RelevanceModel, model_settings
from rankwell.features.selected import selected_features
from rankwell.index.query.near_words import near_counts
from rankwell.index.query.prefixes import prefix_counts
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import BM25
from rankwell.index.search.selection import SearchResult
from rankwell.index.search.selector import Selector
from rankwell.index.segments.document_counts import document_counts
from rankwell.index.statistics import Statistics
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.ranker_file import read_ranker_file
from rankwell.serving.answer import Result
from rankwell.serving.deadline import Deadline
from rankwell.serving.node import shown
from rankwell.serving.ranking.device_health import DeviceHealth
from rankwell.serving.ranking.ranked_search import RankedSearch
from rankwell.serving.ranking.ranker_passes import FIRST, RankerPasses
from rankwell.serving.shards import messages
from rankwell.serving.shards.statistics import GivenStatistics, counted_index, digest
from rankwell.serving.snapshot import some_texts
from rankwell.version import __version__

_log = logging.getLogger("rankwell.serving")

# How many commits, censuses of one commit and rankers are kept: those that are in use, and those before.
_COMMITS_KEPT = 3
_CENSUSES_KEPT = 4
_RANKERS_KEPT = 32
CPU = "cpu"


class MissingError(RankwellError):
    """The node does not have what a request names. kind : "commit", "census" or "ranker" """

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        super().__init__(f"this node does not have the {kind} {name}.")


@dataclass(frozen=True)
class NodeRequest:
    """A request to a node, and until when it is wanted."""

    body: messages.Request
    deadline: Deadline


class ShardView:
    """A commit of the index as one census counts it: what selects and ranks."""

    def __init__(self, index: Index, census: messages.Census) -> None:
        self.index = counted_index(index, census)
        self.passes: dict[tuple[str, str], RankerPasses] = {}

    @cached_property
    def statistics(self) -> GivenStatistics:
        return cast(GivenStatistics, Statistics.of(self.index))

    def parse(self, question: messages.Question) -> Query:
        self.statistics.take(question)
        return self.index.parse(question.query, plain=question.plain)


class ShardNode:
    """Answers batches of requests over one shard.

    Parameters
    ----------
    index : Index or path
    device, n_jobs : as of `RankedSearch`
    """

    def __init__(
        self, index: Index | str | os.PathLike[str], *, device: str = "cpu", n_jobs: int | None = None
    ) -> None:
        self._device, self._n_jobs = device, n_jobs
        self._health = DeviceHealth(device)
        self._commits: OrderedDict[str, Index] = OrderedDict()
        self._views: OrderedDict[messages.Version, ShardView] = OrderedDict()
        self._rankers: OrderedDict[str, RankerDescription] = OrderedDict()
        self._changing = threading.Lock()
        self._is_closing = threading.Event()
        self._watcher: threading.Thread | None = None
        self._add(index if isinstance(index, Index) else Index.open(index))

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
        return msgspec.structs.replace(self._facts, fallback=self._health.reason or "")

    def prepare(self, asked: messages.Prepare) -> messages.Done:
        """Make what answers by a census."""
        version = messages.Version(asked.commit, digest(asked.census))
        if version in self._views:
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
        with tempfile.TemporaryDirectory(prefix="rankwell-ranker-") as folder:
            path = Path(folder) / "sent.rank"
            path.write_bytes(asked.content)
            description = read_ranker_file(path).description
        self._try_ranker(description)
        with self._changing:
            self._rankers[ranker_digest(asked.content)] = description
            while len(self._rankers) > _RANKERS_KEPT:
                self._rankers.popitem(last=False)
        return messages.Done()

    def answer(self, requests: Sequence[NodeRequest]) -> list[messages.Reply | Exception]:
        """The replies to a batch, or what went wrong. Passes of one ranker over several queries are run together."""
        replies: dict[int, messages.Reply | Exception] = {}
        together: dict[tuple[messages.Version, str, str], dict[int, messages.Score]] = {}
        for number, request in enumerate(requests):
            body = request.body
            if isinstance(body, messages.Score):
                together.setdefault((body.version, body.ranker, body.stage), {})[number] = body
            else:
                replies[number] = self._tried(lambda body=body: self._one(body))  # type: ignore[misc]
        for asked in together.values():
            replies |= self._scored(asked)
        return [replies[number] for number in range(len(requests))]

    @property
    def index(self) -> Index:
        """The newest commit."""
        return next(reversed(self._commits.values()))

    def _one(self, body: messages.Request) -> messages.Reply:
        if isinstance(body, messages.Select):
            return self._select(body)
        if isinstance(body, messages.Show):
            return self._show(body)
        if isinstance(body, messages.Count):
            return self._count(body)
        if isinstance(body, messages.Find):
            index = self._view(body.version).index
            return messages.Found([index.find(one) for one in body.ids])
        if isinstance(body, messages.Words):
            return self._words(body)
        raise ParameterError(f"a node cannot answer {type(body).__name__} from its queue.")

    def _tried(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:
            return error

    def _select(self, asked: messages.Select) -> messages.Selected:
        view = self._view(asked.version)
        query = view.parse(asked.question)
        found = view.index.search(query, k=asked.k)
        docs, scores = found.docs.tobytes(), found.scores.tobytes()
        first = None
        if asked.ranker is not None and self._passes(view, asked.ranker, CPU).of(FIRST).knows([query], None):
            request = messages.Score(asked.version, asked.question, asked.ranker, FIRST, docs, scores)
            (first,) = self._score([request])
        return messages.Selected(docs, scores, found.n_matches, first)

    def _show(self, asked: messages.Show) -> messages.Shown:
        view = self._view(asked.version)
        query = view.parse(asked.question)
        documents = []
        for doc in asked.docs:
            one = shown(view.index, query, doc, Result(0, view.index.id_of(doc), 0.0, 0.0))
            documents.append(
                messages.ShownDocument(doc, one.id, one.title, one.url, list(one.caption), one.fields or {})
            )
        return messages.Shown(documents)

    def _count(self, asked: messages.Count) -> messages.Counted:
        index = self._commit(asked.commit)
        statistics = Statistics.of(index)
        terms = [statistics.named(term) for term in asked.terms]
        return messages.Counted(
            [(one.doc_freq.tobytes(), one.occurrences.tobytes()) for one in terms],
            [
                {}
                if (column := _column(index, field)) is None
                else dict(prefix_counts(index.segments, statistics, start, column))
                for start, field in asked.prefixes
            ],
            [
                {}
                if (column := _column(index, field)) is None
                else near_counts(index.segments, statistics, term, distance, column)
                for term, distance, field in asked.near
            ],
        )

    def _words(self, asked: messages.Words) -> messages.WordsOf:
        index = self._view(asked.version).index
        documents: list[dict[bytes, int]] = [{} for _ in asked.docs]
        counted = document_counts(index, asked.docs)
        for doc, number, frequency in zip(
            counted.doc.tolist(), counted.number.tolist(), counted.frequency.tolist(), strict=True
        ):
            documents[doc][counted.term(number)] = frequency
        return messages.WordsOf(documents)

    def _scored(self, asked: Mapping[int, messages.Score]) -> dict[int, messages.Reply | Exception]:
        """One pass over several queries; if that fails, over each alone."""
        try:
            return dict(zip(asked, self._score(list(asked.values())), strict=True))
        except Exception as error:
            if len(asked) == 1:
                return dict.fromkeys(asked, error)
            alone = [self._scored({number: one}) for number, one in asked.items()]
            return {number: reply for one in alone for number, reply in one.items()}

    def _score(self, asked: Sequence[messages.Score]) -> list[messages.Scored]:
        """One pass over several queries; the CPU gives the same answer if the device fails."""
        failure = None
        if self._device != CPU and self._health.may_be_used:
            try:
                scored = self._score_on(self._device, asked)
                self._health.report_success()
                return scored
            except MissingError:
                raise
            except Exception as error:
                # A device's state after a failure is unknown: all that is on it is made anew.
                self._view(asked[0].version).passes.clear()
                failure = error
        scored = self._score_on(CPU, asked)
        # What fails on the CPU too is not the device's fault, and has been raised by now.
        if failure is not None:
            self._health.report_failure(failure)
        return scored

    def _score_on(self, device: str, asked: Sequence[messages.Score]) -> list[messages.Scored]:
        view, stage = self._view(asked[0].version), asked[0].stage
        passes = self._passes(view, asked[0].ranker, device)
        queries = [view.parse(one.question) for one in asked]
        docs = [np.frombuffer(one.docs, np.int64) for one in asked]
        scores = [np.frombuffer(one.scores, np.float64) for one in asked]
        found = [
            SearchResult(own, score, query, cast(Any, None))
            for own, score, query in zip(docs, scores, queries, strict=True)
        ]
        one_pass, ends = passes.of(stage), np.cumsum([len(own) for own in docs])[:-1]
        if stage == FIRST and one_pass.knows(queries, None):
            rows = selected_features(view.index, one_pass.feature_set, found, docs)
            if not passes.scores_alone(stage):
                return [messages.Scored(rows=part.tobytes()) for part in np.split(rows, ends)]
            values = one_pass.score_rows(rows, [len(own) for own in docs])
        else:
            hits = one_pass.hits(queries, found, docs, _models(passes, asked))
            if not passes.scores_alone(stage):
                return [messages.Scored(rows=part.tobytes()) for part in np.split(one_pass.rows(hits), ends)]
            values = one_pass.score(hits)
        return [messages.Scored(part.tobytes()) for part in np.split(values, ends)]

    def _try_ranker(self, description: RankerDescription) -> None:
        """Search once, so that no query waits for kernels; a shard may lack streams that the collection has."""
        with contextlib.suppress(DataError):
            search = RankedSearch(self.index, description, n_jobs=self._n_jobs)
            found = search.search(self.index.parse(self._facts.sample, plain=True), 1)
            for doc in found.docs.tolist():
                shown(self.index, found.selected.query, doc, Result(0, "", 0.0, 0.0))

    def _passes(self, view: ShardView, ranker: str, device: str) -> RankerPasses:
        passes = view.passes.get((ranker, device))
        if passes is None:
            description = self._rankers.get(ranker)
            if description is None:
                raise MissingError("ranker", ranker)
            passes = RankerPasses(view.index, description, device=device, n_jobs=self._n_jobs)
            if len(view.passes) >= _RANKERS_KEPT:
                view.passes.clear()
            view.passes[ranker, device] = passes
        return passes

    def _view(self, version: messages.Version) -> ShardView:
        view = self._views.get(version)
        if view is None:
            self._commit(version.commit)
            raise MissingError("census", version.census)
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


def facts_of(index: Index) -> messages.Facts:
    size = 0 if index.path is None else sum(path.stat().st_size for path in index.path.iterdir() if path.is_file())
    return messages.Facts(
        release=__version__,
        folder="" if index.path is None else str(index.path.absolute()),
        commit=index.commit,
        generation=index.generation,
        schema=index.schema.to_json(),
        analysis=index.analysis.to_json(),
        n_docs=index.n_docs,
        n_numbers=int(index.bases[-1]),
        n_segments=len(index.segments),
        n_bytes=size,
        tokens=Statistics.of(index).tokens.tolist(),
        sample=next(some_texts(index), "") if index.n_docs else "",
    )


def try_out(index: Index) -> None:
    """Search once: kernels are compiled, and a commit that cannot be read is known, before the first user asks."""
    _ = Statistics.of(index).tokens
    if index.n_docs:
        index.search(next(some_texts(index), ""), plain=True)


def ranker_digest(content: bytes) -> str:
    """The name of a ranker file between an aggregator and its nodes."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _column(index: Index, field: str | None) -> int | None:
    """The number of a stream; -1 is the whole document, None a stream that this shard does not have."""
    if field is None:
        return -1
    return index.schema.streams.index(field) if field in index.schema.streams else None


def _models(passes: RankerPasses, asked: Sequence[messages.Score]) -> dict[ModelSettings, list[RelevanceModel]] | None:
    """The relevance models of queries by their settings."""
    by_settings: dict[ModelSettings, list[RelevanceModel]] = {one: [] for one in model_settings(passes.feature_set)}
    for one in asked:
        sent = {(model.documents, model.terms, model.original): dict(model.weights) for model in one.models}
        for settings, models in by_settings.items():
            if settings not in sent:
                raise DataError(f"the relevance model of {settings} was not sent.")
            models.append(sent[settings])
    return by_settings or None
