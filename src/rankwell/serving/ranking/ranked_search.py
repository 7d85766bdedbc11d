"""Ranked search, the whole way: selection, then one or two passes of ranking, results.

A ranker with a first pass (a cascade) ranks twice: its first pass orders all candidates by the few features that it
reads, and the ranker itself orders the best of them. Candidates that were not ranked, or not in time, stay below, in
the order of the stage before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankwell.data.candidates import N_CANDIDATES
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, ParameterError
from rankwell.features.feature_set import FeatureSet
from rankwell.features.names import parse_feature
from rankwell.features.own_features import NOTHING, OwnFeatures
from rankwell.index.query.query import Query
from rankwell.index.query.tree import Match
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.selection import SearchResult, search, search_many
from rankwell.scoring.composition import best_places, rank_below
from rankwell.scoring.description import RankerDescription, default_feature_names
from rankwell.scoring.ranker_file import read_ranker_file
from rankwell.scoring.scorer import score_description, scoring_device
from rankwell.serving.ranking.feature_log import FeatureLog
from rankwell.serving.ranking.pass_in_time import PassInTime, RankedInTime
from rankwell.serving.ranking.ranking_pass import RankingPass
from rankwell.serving.unknown_document import unknown_document

if TYPE_CHECKING:
    from rankwell.serving.ranking.explained_search import ExplainedDocument

_NAMED_IN_ERRORS = 8


@dataclass(frozen=True, eq=False)
class RankedResult:
    """The best documents of one query, best first.

    docs : int64 (k,), numbers in the index; scores : float64 (k,), the ranker's
    first_scores : float64 (k,), their scores in selection; n_candidates : how many documents selection gave
    n_ranked : how many of them the ranker scored; the others are below, in the order of its first pass, or of
        selection where the deadline came before that
    n_kept : how many it would have scored with enough time: more than `n_ranked` if the deadline ended it early
    selected : what selection found
    seconds : the duration of each stage of the call that gave this result, for all its queries together
    """

    docs: np.ndarray
    scores: np.ndarray
    first_scores: np.ndarray
    n_candidates: int
    n_ranked: int
    n_kept: int
    selected: SearchResult = field(repr=False)
    seconds: Mapping[str, float] = field(repr=False)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The user's ids of the documents."""
        return tuple(map(self.selected.index.id_of, self.docs.tolist()))


class RankedSearch:
    """An index searched with a ranker.

    Parameters
    ----------
    index : Index
    ranker : a fitted Ranker, a RankerDescription, or the path of a ranker file
    n_candidates : int
        How many documents selection gives to the ranker: as many as it was trained on, usually.
    model : selection's ranking; by default BM25 over the whole document
    match : {"any", "all"}
        Whether a candidate needs any or all of a query's words.
    stop_after : int, optional
        Selection looks only at the first documents in the index's static order, of which about this many match: see
        `rankwell.index.search.selection.search`.
    feature_set : FeatureSet, optional
        The ranker's columns, if it was trained without names.
    own : OwnFeatures, optional
        Where the values of own features come from, as in training.
    log : FeatureLog, optional
        Where the features of queries with an id are logged, as the ranker read them; of a ranker with a first pass,
        those of the documents that it keeps.
    device : {"cpu", "cuda", "auto"}
        Where features are extracted and scored.
    n_jobs : int, optional
        Threads; None is every core. Results do not depend on it.

    Raises
    ------
    DataError
        Names the features that the ranker reads and the index cannot provide.

    Examples
    --------
    >>> import rankwell
    >>> with rankwell.IndexWriter("notes.idx", language="en") as writer:
    ...     writer.add([{"id": "n1", "body": "call the dentist, call the bank", "clicks": 1}])
    ...     writer.add([{"id": "n2", "body": "call home", "clicks": 50}])
    ...     generation = writer.commit()
    >>> with open("clicks.yaml", "w") as file:
    ...     _ = file.write("inputs: [{expression: log1p(static.clicks) + bm25.body}]")
    >>> ranker = rankwell.MadeRanker.from_yaml("clicks.yaml")
    >>> rankwell.RankedSearch(rankwell.Index.open("notes.idx"), ranker).search("call").ids
    ('n2', 'n1')
    """

    def __init__(
        self,
        index: Index,
        ranker: object,
        *,
        n_candidates: int = N_CANDIDATES,
        model: BM25 | BM25F | None = None,
        match: Match = "any",
        stop_after: int | None = None,
        feature_set: FeatureSet | None = None,
        own: OwnFeatures | None = None,
        log: FeatureLog | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        if n_candidates < 1:
            raise ParameterError(f"must be at least 1, got {n_candidates}.", parameter="n_candidates")
        self.index = index
        self.description = _description_of(ranker)
        self.feature_set = feature_set or features_of(self.description)
        self.feature_set.check(index.schema.streams, index.schema.statics)
        self.own = own or NOTHING
        self.own.check(self.feature_set)
        if len(self.feature_set) != self.description.n_features:
            raise DataError(
                f"the ranker reads {self.description.n_features} features, the feature set has {len(self.feature_set)}."
            )
        if log is not None and log.feature_set != self.feature_set:
            raise DataError("the log has rows of another feature set than the ranker's. Start another log.")
        self.n_candidates = n_candidates
        self.model = model
        self.match: Match = match
        self.stop_after = stop_after
        self.device = scoring_device(self.description, device)
        self._log, self._n_jobs = log, n_jobs
        self._ranker = RankingPass(
            index,
            self.description.second_pass,
            self.feature_set,
            all_features=log is not None,
            own=self.own,
            device=self.device,
            n_jobs=n_jobs,
        )
        self._first = first_pass_of(index, self.description, self.feature_set, self.device, n_jobs, self.own)
        self._ranker_in_time = PassInTime(scores_alone=self._ranker.scores_alone)
        self._first_in_time = PassInTime(scores_alone=self._first is not None and self._first.scores_alone)
        # What selection knows is looked up of all candidates of a query at once, sooner than a block could be scored.
        self._known_first_in_time = PassInTime(scores_alone=False)

    def search(
        self, query: str | Query, k: int = 10, *, query_id: str | None = None, deadline: float | None = None
    ) -> RankedResult:
        """The best `k` documents for a query; with an id, its features are logged if there is a log."""
        ids = None if query_id is None else [query_id]
        return self.search_many([query], k, query_ids=ids, deadline=deadline)[0]

    def search_many(
        self,
        queries: Sequence[str | Query],
        k: int = 10,
        *,
        query_ids: Sequence[str | None] | None = None,
        deadline: float | Sequence[float] | None = None,
        stop_after: Sequence[int | None] | None = None,
    ) -> list[RankedResult]:
        """The same for several queries at once, which is faster than one after another.

        Parameters
        ----------
        query_ids : sequence of str, optional
            The ids under which features are logged; those of queries whose id is None are not.
        deadline : float or sequence of float, optional
            A time of `time.monotonic()`, one for all stages, for all queries or for each. If little is left, a ranker
            scores the documents in blocks, the best of the stage before first, and ends when the time is over: the
            others come last, in the order of the stage before. `RankedResult.n_ranked` says so. A ranker that compares
            the documents of a query scores all of them or none.
        stop_after : sequence of int or None, optional
            For each query, in place of the `stop_after` of this search.
        """
        _check_queries(queries, k, query_ids, deadline, stop_after)
        if len(queries) == 0:
            return []
        started = time.perf_counter()
        parsed = [query if isinstance(query, Query) else self.index.parse(query) for query in queries]
        stops = [self.stop_after] * len(queries) if stop_after is None else stop_after
        found = search_many(
            self.index,
            parsed,
            k=self.n_candidates,
            model=self.model,
            match=self.match,
            stop_after=stops,
            n_jobs=self._n_jobs,
        )
        selected = time.perf_counter()
        ranked = self._rank(parsed, found, query_ids, deadline)
        seconds = {"select": selected - started, "rank": time.perf_counter() - selected}
        return [self._result(result, own, k, seconds) for result, own in zip(found, ranked, strict=True)]

    def features(self, query: str | Query, documents: Sequence[str]) -> np.ndarray:
        """The ranker's features of documents, by id, whether selection finds them or not: float32 (n, n_features)."""
        docs = np.array([self.index.find(document) for document in documents], np.int64)
        for document, doc in zip(documents, docs.tolist(), strict=True):
            if doc < 0:
                raise unknown_document(document)
        parsed = query if isinstance(query, Query) else self.index.parse(query)
        found = search(
            self.index, parsed, k=self.n_candidates, model=self.model, match=self.match, stop_after=self.stop_after
        )
        whole = RankingPass(self.index, self.description.second_pass, self.feature_set, all_features=True, own=self.own)
        return whole.rows(whole.hits([parsed], [found], [docs]))

    def score(self, features: np.ndarray) -> np.ndarray:
        """The ranker's scores of rows of features, which are the documents of one query: float64 (n,)."""
        dataset = RankingDataset(features, group=[len(features)])
        return score_description(self.description.second_pass, dataset)

    def explain(self, query: str | Query, *, document: str | int | None = None, k: int = 1) -> list[ExplainedDocument]:
        """What the scores of a query's results consist of.

        Parameters
        ----------
        document : str or int, optional
            The id of the document to explain; by default the best `k` results are.
        k : int
        """
        from rankwell.serving.ranking.explained_search import explain_search

        return explain_search(self, query, document=document, k=k)

    def _rank(
        self,
        queries: Sequence[Query],
        found: Sequence[SearchResult],
        query_ids: Sequence[str | None] | None,
        deadline: float | Sequence[float] | None,
    ) -> list[_RankedCandidates]:
        """Per query: which of its candidates the ranker scored, and the scores of all before that."""
        deadlines = None if deadline is None else np.broadcast_to(np.asarray(deadline), len(queries)).tolist()
        before = [result.scores for result in found]
        kept = [np.arange(len(own)) for own in before]
        if self._first is not None and self.description.first_pass is not None:
            before = self._first_scores(self._first, queries, found, deadlines)
            kept = [best_places(own, self.description.first_pass.keep) for own in before]
        ranked = self._score(queries, found, kept, before, query_ids, deadlines)
        pairs = zip(ranked, before, kept, strict=True)
        return [_RankedCandidates(*own, of_all, len(of_query)) for own, of_all, of_query in pairs]

    def _first_scores(
        self,
        first: RankingPass,
        queries: Sequence[Query],
        found: Sequence[SearchResult],
        deadlines: Sequence[float] | None,
    ) -> list[np.ndarray]:
        """The scores of all candidates after the first pass: those that it had no time for are below, as selected."""
        is_known = first.knows(queries, self.model)

        def score(numbers: Sequence[int], places: Sequence[np.ndarray]) -> np.ndarray:
            asked, own = [queries[number] for number in numbers], [found[number] for number in numbers]
            docs = [result.docs[rows] for result, rows in zip(own, places, strict=True)]
            if is_known:
                return first.score_selected(asked, own, docs, self.model)
            return first.score(first.hits(asked, own, docs))

        in_time = self._known_first_in_time if is_known else self._first_in_time
        selected = [result.scores for result in found]
        ranked = in_time.run(score, [np.arange(len(own)) for own in selected], selected, deadlines)
        return [_over(own, before) for own, before in zip(ranked, selected, strict=True)]

    def _score(
        self,
        queries: Sequence[Query],
        found: Sequence[SearchResult],
        kept: Sequence[np.ndarray],
        before: Sequence[np.ndarray],
        query_ids: Sequence[str | None] | None,
        deadlines: Sequence[float] | None,
    ) -> list[RankedInTime]:
        """The ranker's scores of the kept candidates, which are logged if there is a log."""
        log = None if query_ids is None else self._log
        read: dict[int, np.ndarray] = {}

        def score(numbers: Sequence[int], places: Sequence[np.ndarray]) -> np.ndarray:
            asked, own = [queries[number] for number in numbers], [found[number] for number in numbers]
            hits = self._ranker.hits(asked, own, [result.docs[rows] for result, rows in zip(own, places, strict=True)])
            if log is None:
                return self._ranker.score(hits)
            rows = self._ranker.rows(hits)
            for number, of_query, part in zip(numbers, places, np.split(rows, hits.query_ptr[1:-1]), strict=True):
                whole = np.empty((len(found[number]), rows.shape[1]), np.float32)
                read.setdefault(number, whole)[of_query] = part
            return self._ranker.score_rows(rows, np.diff(hits.query_ptr))

        ranked = self._ranker_in_time.run(score, kept, before, deadlines)
        # What a device fails to score is not logged: it will be when it is scored again.
        if log is not None and query_ids is not None:
            for number, rows in read.items():
                query_id, places = query_ids[number], ranked[number].places
                if query_id is not None:
                    ids = [self.index.id_of(doc) for doc in found[number].docs[places].tolist()]
                    log.append(query_id, ids, rows[places])
        return ranked

    def _result(
        self, found: SearchResult, ranked: _RankedCandidates, k: int, seconds: Mapping[str, float]
    ) -> RankedResult:
        """The best k; equal scores stay in the order of selection."""
        best, scores = best_candidates(ranked.places, ranked.scores, ranked.before, k)
        first_scores, n_ranked = found.scores[best], len(ranked.places)
        return RankedResult(found.docs[best], scores, first_scores, len(found), n_ranked, ranked.n_kept, found, seconds)


class _RankedCandidates(NamedTuple):
    """Candidates of one query.

    places, scores : as of `RankedInTime`; before : the scores of all candidates in the stage before
    n_kept : how many were to be ranked
    """

    places: np.ndarray
    scores: np.ndarray
    before: np.ndarray
    n_kept: int


def _over(ranked: RankedInTime, before: np.ndarray) -> np.ndarray:
    """The scores of all candidates of a query: those without one come last, in the order of `before`, which they have
    if there is no score at all.
    """
    if len(ranked.places) == 0:
        return before
    scores = np.full(len(before), np.nan)
    scores[ranked.places] = ranked.scores
    if len(ranked.places) == len(before):
        return scores
    return rank_below(scores, before, np.array([0, len(before)]))


def first_pass_of(
    index: Index,
    description: RankerDescription,
    feature_set: FeatureSet,
    device: str,
    n_jobs: int | None,
    own: OwnFeatures | None = None,
) -> RankingPass | None:
    """The pass that orders all candidates by the part that a cascade names."""
    if description.first_pass is None:
        return None
    part = description.parts[description.first_pass.part]
    return RankingPass(
        index, part.description, feature_set, places=part.features, own=own, device=device, n_jobs=n_jobs
    )


def best_candidates(kept: np.ndarray, scores: np.ndarray, before: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The best k candidates and their scores; equal scores stay in the order of the candidates.

    kept : which candidates were ranked; scores : theirs; before : the scores of all candidates in the stage before
    """
    # To sort a few of many costs less than to sort all.
    first = best_places(scores, k)
    order = first[np.argsort(-scores[first], kind="stable")]
    best, best_scores = kept[order], scores[order]
    if len(best) < min(k, len(before)):
        # Not enough: the others follow, in the order of the stage before.
        return _with_the_rest(kept, best, best_scores, before, k)
    return best, best_scores


def _with_the_rest(
    kept: np.ndarray, best: np.ndarray, scores: np.ndarray, before: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best k candidates and their scores; those that were not ranked come last, and are all of them if none was."""
    if len(kept) == 0:
        order = np.argsort(-before, kind="stable")[:k]
        return order, before[order]
    ranked = np.full(len(before), np.nan)
    ranked[best] = scores
    ranked = rank_below(ranked, before, np.array([0, len(before)]))
    order = np.argsort(-ranked, kind="stable")[:k]
    return order, ranked[order]


def _check_queries(
    queries: Sequence[str | Query],
    k: int,
    query_ids: Sequence[str | None] | None,
    deadline: float | Sequence[float] | None,
    stop_after: Sequence[int | None] | None,
) -> None:
    if isinstance(queries, str | Query):
        raise ParameterError("search_many takes several queries: pass a list, or use search for one query.")
    if k < 1:
        raise ParameterError(f"must be at least 1, got {k}.", parameter="k")
    if query_ids is not None and len(query_ids) != len(queries):
        raise ParameterError(f"must be one per query, {len(queries)}, got {len(query_ids)}.", parameter="query_ids")
    if stop_after is not None and len(stop_after) != len(queries):
        raise ParameterError(f"must be one per query, {len(queries)}, got {len(stop_after)}.", parameter="stop_after")
    if isinstance(deadline, Sequence) and len(deadline) != len(queries):
        raise ParameterError(
            f"must be one, or one per query, {len(queries)}, got {len(deadline)}.", parameter="deadline"
        )


def features_of(description: RankerDescription) -> FeatureSet:
    """The features that a ranker reads, by the names it was trained with."""
    names = description.feature_names
    if names == default_feature_names(len(names)):
        raise DataError(
            "this ranker's features have no names: it was trained on data without names, or imported without. Train it "
            "on what `rankwell features` writes, import it with --features and that data, or pass feature_set=."
        )
    unknown = []
    for name in names:
        try:
            parse_feature(name)
        except ParameterError:
            unknown.append(name)
    if unknown:
        more = f" and {len(unknown) - _NAMED_IN_ERRORS} more" if len(unknown) > _NAMED_IN_ERRORS else ""
        raise DataError(
            f"the ranker reads {len(unknown)} features that cannot be extracted: "
            f"{', '.join(map(repr, unknown[:_NAMED_IN_ERRORS]))}{more}. docs/features.md lists those that can."
        )
    return FeatureSet(names)


def _description_of(ranker: object) -> RankerDescription:
    if isinstance(ranker, RankerDescription):
        return ranker
    if isinstance(ranker, str | os.PathLike):
        return read_ranker_file(ranker).description
    description = getattr(ranker, "description_", None)
    if not isinstance(description, RankerDescription):
        raise ParameterError(
            f"a fitted ranker, its description or a ranker file is needed, got {type(ranker).__name__}."
        )
    return description
