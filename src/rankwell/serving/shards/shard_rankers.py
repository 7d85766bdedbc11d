"""The rankers of a shard's node: ranker files that aggregators sent, and their passes over the shard's documents."""

from __future__ import annotations

import contextlib
import hashlib
import math
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
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
from rankwell.serving.batching import too_short
from rankwell.serving.deadline import Deadline
from rankwell.serving.ranking.device_health import DeviceHealth
from rankwell.serving.ranking.pass_in_time import RankedInTime
from rankwell.serving.ranking.placement import PlacedSearch, suits_device
from rankwell.serving.ranking.ranked_search import RankedSearch, features_of
from rankwell.serving.ranking.ranker_passes import FIRST, RankerPasses
from rankwell.serving.shards import messages
from rankwell.serving.shards.missing import MissingError
from rankwell.serving.shards.shard_view import ShardView
from rankwell.serving.shown_documents import shown_results
from rankwell.serving.snapshot import check_device, some_queries

# How many rankers are kept: those that were used last.
_RANKERS_KEPT = 32
# The share of a request's time that its reply may take to be made and sent.
_REPLY_SHARE = 0.1
CPU, AUTO = "cpu", "auto"


@dataclass(frozen=True)
class ScoreInTime:
    """A pass over some documents, and until when its reply is wanted."""

    body: messages.Score
    deadline: Deadline


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

    def first_pass(
        self, view: ShardView, asked: messages.Select, found: SearchResult, deadline: Deadline
    ) -> messages.Scored | None:
        """What the first pass of a cascade gives, if it reads nothing but what selection knows."""
        if asked.ranker is None or not self._passes(view, asked.ranker, CPU).of(FIRST).knows([found.query], None):
            return None
        docs, scores = found.docs.tobytes(), found.scores.tobytes()
        request = messages.Score(asked.version, asked.question, asked.ranker, FIRST, docs, scores)
        (first,) = self.score(view, [ScoreInTime(request, deadline)])
        # What there is no time for now is asked for in a round of its own.
        return first if isinstance(first, messages.Scored) and first.ranked is None else None

    def score(self, view: ShardView, asked: Sequence[ScoreInTime]) -> list[messages.Scored | Exception]:
        """One pass over several queries, on the device if that is quicker for so many documents; the CPU gives the same
        answer if the device fails. What a deadline leaves of a query is not scored; of a ranker that compares documents
        it leaves all or nothing, and then the query is refused.
        """
        failure = None
        n_docs = sum(len(one.body.docs) for one in asked) // np.dtype(np.int64).itemsize
        if n_docs >= self._break_even.get(asked[0].body.ranker, math.inf) and self.health.may_be_used:
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

    def _score_on(
        self, device: str, view: ShardView, asked: Sequence[ScoreInTime]
    ) -> list[messages.Scored | Exception]:
        bodies = [one.body for one in asked]
        stage, passes = bodies[0].stage, self._passes(view, bodies[0].ranker, device)
        queries = [view.parse(one.question) for one in bodies]
        docs = [np.frombuffer(one.docs, np.int64) for one in bodies]
        found = [
            SearchResult(own, np.frombuffer(one.scores, np.float64), query, cast(Any, None))
            for own, one, query in zip(docs, bodies, queries, strict=True)
        ]
        self.n_ranked[device] += len(asked)
        alone = passes.scores_alone(stage)
        scored: list[messages.Scored | Exception] = []
        values = _values_in_time(passes, asked, queries, found, alone=alone)
        for own, one, part in zip(docs, bodies, values, strict=True):
            is_whole = len(part.places) == len(own)
            if not alone and not is_whole:
                scored.append(too_short())
                continue
            ids = [view.index.id_of(doc) for doc in own.tolist()] if one.ids else []
            content = part.scores.tobytes()
            scores, rows = (content, None) if alone else (None, content)
            scored.append(messages.Scored(scores, rows, ids, device, None if is_whole else part.places.tobytes()))
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


def _values_in_time(
    passes: RankerPasses,
    asked: Sequence[ScoreInTime],
    queries: Sequence[Query],
    found: Sequence[SearchResult],
    *,
    alone: bool,
) -> list[RankedInTime]:
    """Scores of each query's documents, float64 (n,), or, if a document's score depends on others, their features, as
    far as deadlines let it come.
    """
    stage = asked[0].body.stage
    one_pass = passes.of(stage)
    is_known = stage == FIRST and one_pass.knows(queries, None)
    models = None if is_known else _models(passes, [one.body for one in asked])

    def values(numbers: Sequence[int], places: Sequence[np.ndarray]) -> np.ndarray:
        own = [found[number] for number in numbers]
        docs = [result.docs[rows] for result, rows in zip(own, places, strict=True)]
        if is_known:
            rows = selected_features(one_pass.index, one_pass.feature_set, own, docs)
            return one_pass.score_rows(rows, list(map(len, docs))) if alone else rows
        of_queries = models and {settings: [those[number] for number in numbers] for settings, those in models.items()}
        hits = one_pass.hits([queries[number] for number in numbers], own, docs, of_queries)
        return one_pass.score(hits) if alone else one_pass.rows(hits)

    in_time = passes.known_first if is_known else passes.in_time(stage)
    # They came in the order in which they are to be ranked.
    falling = [-np.arange(len(result)) for result in found]
    every = [np.arange(len(result)) for result in found]
    return in_time.run(values, every, falling, [_until(one.deadline) for one in asked])


def _until(deadline: Deadline) -> float:
    """When ranking must end for a reply to be there at the deadline."""
    return deadline.at - _REPLY_SHARE * max(0.0, deadline.remaining)


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
