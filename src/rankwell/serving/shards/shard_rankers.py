"""The rankers of a shard's node: ranker files that aggregators sent, and their passes over the shard's documents."""

from __future__ import annotations

import contextlib
import hashlib
import math
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from rankwell.errors import DataError
from rankwell.features.feedback import ModelSettings, RelevanceModel, model_settings
from rankwell.features.own_features import NOTHING, OwnFeatures
from rankwell.features.selected import selected_features
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.search.selection import SearchResult
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.ranker_file import read_ranker_file
from rankwell.serving.ranking.device_health import DeviceHealth
from rankwell.serving.ranking.placement import PlacedSearch, suits_device
from rankwell.serving.ranking.ranked_search import RankedSearch, features_of
from rankwell.serving.ranking.ranker_passes import FIRST, RankerPasses
from rankwell.serving.ranking.ranking_pass import RankingPass
from rankwell.serving.shards import messages
from rankwell.serving.shards.missing import MissingError
from rankwell.serving.shards.shard_view import ShardView
from rankwell.serving.shown_documents import shown_results
from rankwell.serving.snapshot import check_device, some_queries

# How many rankers are kept: those that were used last.
_RANKERS_KEPT = 32
CPU, AUTO = "cpu", "auto"


class ShardRankers:
    """Ranker files by digest, and where they are run.

    Parameters
    ----------
    device, n_jobs, own : as of `rankwell.serving.node.Node`

    Attributes
    ----------
    n_ranked : passes over the documents of a query, by device
    """

    def __init__(self, device: str, n_jobs: int | None, own: OwnFeatures | None = None) -> None:
        check_device(device)
        self.health = DeviceHealth("cuda")
        self.n_ranked: Counter[str] = Counter()
        self._device, self._n_jobs, self._own = device, n_jobs, own or NOTHING
        self._descriptions: OrderedDict[str, RankerDescription] = OrderedDict()
        self._break_even: dict[str, float] = {}
        self._changing = threading.Lock()

    def put(self, content: bytes, index: Index, sample: str) -> None:
        """Keep a ranker file, after a search on `index` for `sample`."""
        digest = ranker_digest(content)
        if self._used(digest) is not None:
            return
        with tempfile.TemporaryDirectory(prefix="rankwell-ranker-") as folder:
            path = Path(folder) / "sent.rank"
            path.write_bytes(content)
            description = read_ranker_file(path).description
        self._own.check(features_of(description))
        self._try_out(description, index, sample)
        break_even = self._measured_break_even(description, index)
        with self._changing:
            self._descriptions[digest] = description
            self._break_even[digest] = break_even
            while len(self._descriptions) > _RANKERS_KEPT:
                gone, _ = self._descriptions.popitem(last=False)
                del self._break_even[gone]

    def first_pass(self, view: ShardView, asked: messages.Select, found: SearchResult) -> messages.Scored | None:
        """What the first pass of a cascade gives, if it reads nothing but what selection knows."""
        if asked.ranker is None or not self._passes(view, asked.ranker, CPU).of(FIRST).knows([found.query], None):
            return None
        docs, scores = found.docs.tobytes(), found.scores.tobytes()
        request = messages.Score(asked.version, asked.question, asked.ranker, FIRST, docs, scores)
        (first,) = self.score(view, [request])
        return first

    def score(self, view: ShardView, asked: Sequence[messages.Score]) -> list[messages.Scored]:
        """One pass over several queries, on the device if that is quicker for so many documents; the CPU gives the same
        answer if the device fails.
        """
        failure = None
        n_docs = sum(len(one.docs) for one in asked) // np.dtype(np.int64).itemsize
        if n_docs >= self._break_even.get(asked[0].ranker, math.inf) and self.health.may_be_used:
            try:
                scored = self._score_on(self.health.device, view, asked)
                self.health.report_success()
                return scored
            except MissingError:
                raise
            except Exception as error:
                # A device's state after a failure is unknown: all that is on it is made anew.
                view.passes.clear()
                failure = error
        scored = self._score_on(CPU, view, asked)
        # What fails on the CPU too is not the device's fault, and has been raised by now.
        if failure is not None:
            self.health.report_failure(failure)
        return scored

    def _score_on(self, device: str, view: ShardView, asked: Sequence[messages.Score]) -> list[messages.Scored]:
        stage, passes = asked[0].stage, self._passes(view, asked[0].ranker, device)
        queries = [view.parse(one.question) for one in asked]
        docs = [np.frombuffer(one.docs, np.int64) for one in asked]
        found = [
            SearchResult(own, np.frombuffer(one.scores, np.float64), query, cast(Any, None))
            for own, one, query in zip(docs, asked, queries, strict=True)
        ]
        self.n_ranked[device] += len(asked)
        alone = passes.scores_alone(stage)
        values = _values(passes, asked, queries, found, alone=alone)
        ends, scored = np.cumsum([len(own) for own in docs])[:-1], []
        for own, one, part in zip(docs, asked, np.split(values, ends), strict=True):
            ids = [view.index.id_of(doc) for doc in own.tolist()] if one.ids else []
            scores, rows = (part.tobytes(), None) if alone else (None, part.tobytes())
            scored.append(messages.Scored(scores, rows, ids, device))
        return scored

    def _used(self, ranker: str) -> RankerDescription | None:
        """A ranker that is about to be used, and is kept for longer than those that are not; None if it is gone."""
        with self._changing:
            description = self._descriptions.get(ranker)
            if description is not None:
                self._descriptions.move_to_end(ranker)
            return description

    def _passes(self, view: ShardView, ranker: str, device: str) -> RankerPasses:
        description = self._used(ranker)
        passes = view.passes.get((ranker, device))
        if passes is None:
            if description is None:
                raise MissingError("ranker", ranker)
            passes = RankerPasses(view.index, description, own=self._own, device=device, n_jobs=self._n_jobs)
            if len(view.passes) >= _RANKERS_KEPT:
                view.passes.clear()
            view.passes[ranker, device] = passes
        return passes

    def _measured_break_even(self, description: RankerDescription, index: Index) -> float:
        """From how many documents on the device is used: of all queries together, since a shard has a part of each
        query's. 0 if it is always used, infinite if it never is.
        """
        if self._device != AUTO:
            return math.inf if self._device == CPU else 0.0
        if not suits_device(description):
            return math.inf
        make = partial(self._search_on, index, description)
        # A shard may lack streams that the collection has: then nothing can be measured.
        with contextlib.suppress(DataError):
            placed = PlacedSearch(make(CPU), make, self.health)
            placed.measure(some_queries(index))
            if placed.costs is not None:
                return placed.costs.break_even * placed.costs.documents
        return 0.0

    def _search_on(self, index: Index, description: RankerDescription, device: str) -> RankedSearch:
        return RankedSearch(index, description, own=self._own, device=device, n_jobs=self._n_jobs)

    def _try_out(self, description: RankerDescription, index: Index, sample: str) -> None:
        """Search once, so that no query waits for kernels; a shard may lack streams that the collection has."""
        with contextlib.suppress(DataError):
            search = self._search_on(index, description, CPU)
            found = search.search(index.parse(sample, plain=True), 1)
            docs, none = found.docs.tolist(), [0.0] * len(found.docs)
            shown_results(index, found.selected.query, docs, none, none, 1)


def ranker_digest(content: bytes) -> str:
    """The name of a ranker file between an aggregator and its nodes."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _values(
    passes: RankerPasses,
    asked: Sequence[messages.Score],
    queries: Sequence[Query],
    found: Sequence[SearchResult],
    *,
    alone: bool,
) -> np.ndarray:
    """Scores of all documents, float64 (n,), or, if a document's score depends on others, their features."""
    one_pass: RankingPass = passes.of(asked[0].stage)
    docs = [own.docs for own in found]
    if asked[0].stage == FIRST and one_pass.knows(queries, None):
        rows = selected_features(one_pass.index, one_pass.feature_set, found, docs)
        return one_pass.score_rows(rows, [len(own) for own in docs]) if alone else rows
    hits = one_pass.hits(queries, found, docs, _models(passes, asked))
    return one_pass.score(hits) if alone else one_pass.rows(hits)


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
