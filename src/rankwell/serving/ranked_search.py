"""Ranked search, the whole way: selection, hits, features, the ranker's scores, results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rankwell.data.candidates import N_CANDIDATES
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, ParameterError
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet
from rankwell.features.feedback import with_feedback
from rankwell.features.hit_reading import collect_hits
from rankwell.features.hits import Hits
from rankwell.features.names import parse_feature
from rankwell.index.bm25 import BM25, BM25F
from rankwell.index.query import Query
from rankwell.index.query_tree import Match
from rankwell.index.reader import Index
from rankwell.index.selection import SearchResult, search
from rankwell.scoring.description import RankerDescription, default_feature_names
from rankwell.scoring.ranker_file import read_ranker_file
from rankwell.scoring.scorer import kept_scorer, score_description, scoring_device
from rankwell.serving.feature_log import FeatureLog

if TYPE_CHECKING:
    from rankwell.features.cuda_extraction import CudaFeatureExtractor
    from rankwell.serving.explained_search import ExplainedDocument

_NAMED_IN_ERRORS = 8


@dataclass(frozen=True, eq=False)
class RankedResult:
    """The best documents of one query, best first.

    docs : int64 (k,), numbers in the index; ids : their ids; scores : float64 (k,), the ranker's
    first_scores : float64 (k,), their scores in the first pass; n_candidates : how many were ranked
    """

    docs: np.ndarray
    ids: tuple[str, ...]
    scores: np.ndarray
    first_scores: np.ndarray
    n_candidates: int


class RankedSearch:
    """An index searched with a ranker.

    Parameters
    ----------
    index : Index
    ranker : a fitted Ranker, a RankerDescription, or the path of a ranker file
    n_candidates : int
        How many documents the first pass gives to the ranker: as many as it was trained on, usually.
    model : the first pass's ranking; by default BM25 over the whole document
    match : {"any", "all"}
        Whether a candidate needs any or all of a query's words.
    feature_set : FeatureSet, optional
        The ranker's columns, if it was trained without names.
    log : FeatureLog, optional
        Where the features of queries with an id are logged, as the ranker read them.
    device : {"cpu", "cuda", "auto"}
        Where features are extracted and scored.
    n_jobs : int, optional
        Threads; None is every core. Results do not depend on it.

    Raises
    ------
    DataError
        Names the features that the ranker reads and the index cannot provide.
    """

    def __init__(
        self,
        index: Index,
        ranker: object,
        *,
        n_candidates: int = N_CANDIDATES,
        model: BM25 | BM25F | None = None,
        match: Match = "any",
        feature_set: FeatureSet | None = None,
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
        if len(self.feature_set) != self.description.n_features:
            raise DataError(
                f"the ranker reads {self.description.n_features} features, the feature set has {len(self.feature_set)}."
            )
        if log is not None and log.feature_set != self.feature_set:
            raise DataError("the log has rows of another feature set than the ranker's. Start another log.")
        self.n_candidates = n_candidates
        self.model = model
        self.match: Match = match
        self.device = scoring_device(self.description, device)
        self._log, self._n_jobs = log, n_jobs
        self._scored = self.description
        if self.device == "cuda" and self.description.feature_names != self.feature_set.names:
            # Features come by the set's names on the device; a ranker trained without names does not know them.
            self._scored = replace(self.description, feature_names=self.feature_set.names)

    def search(self, query: str | Query, k: int = 10, *, query_id: str | None = None) -> RankedResult:
        """The best `k` documents for a query; with an id, its features are logged if there is a log."""
        return self.search_many([query], k, query_ids=None if query_id is None else [query_id])[0]

    def search_many(
        self, queries: Sequence[str | Query], k: int = 10, *, query_ids: Sequence[str] | None = None
    ) -> list[RankedResult]:
        """The same for several queries at once, which is faster than one after another."""
        _check_queries(queries, k, query_ids)
        if len(queries) == 0:
            return []
        parsed = [query if isinstance(query, Query) else self.index.parse(query) for query in queries]
        found = [search(self.index, query, k=self.n_candidates, model=self.model, match=self.match) for query in parsed]
        docs = [result.docs for result in found]
        hits = collect_hits(self.index, parsed, docs, n_jobs=self._n_jobs)
        hits = with_feedback(hits, self.feature_set, self.index, found, docs, n_jobs=self._n_jobs)
        if self._log is not None and query_ids is not None:
            rows = extract(hits, self.feature_set, device=self.device, n_jobs=self._n_jobs)
            self._write_log(self._log, query_ids, found, rows)
            scores = self._score_rows(rows, hits)
        else:
            scores = self._score(hits)
        parts = np.split(scores, hits.query_ptr[1:-1])
        return [self._result(result, own, k) for result, own in zip(found, parts, strict=True)]

    def explain(self, query: str | Query, *, document: str | int | None = None, k: int = 1) -> list[ExplainedDocument]:
        """What the scores of a query's results consist of.

        Parameters
        ----------
        document : str or int, optional
            The id of the document to explain; by default the best `k` results are.
        k : int
        """
        from rankwell.serving.explained_search import explain_search

        return explain_search(self, query, document=document, k=k)

    def _score(self, hits: Hits) -> np.ndarray:
        """The scores of candidates, float64 (n_candidates,); on a device, the features stay there."""
        if self.device == "cuda":
            return self._cuda.score(hits, kept_scorer(self._scored, "cuda"))
        return self._score_rows(extract(hits, self.feature_set, n_jobs=self._n_jobs), hits)

    def _score_rows(self, rows: np.ndarray, hits: Hits) -> np.ndarray:
        dataset = RankingDataset(rows, group=np.diff(hits.query_ptr))
        return score_description(self._scored, dataset, n_jobs=self._n_jobs, device=self.device)

    @cached_property
    def _cuda(self) -> CudaFeatureExtractor:
        from rankwell.features.cuda_extraction import CudaFeatureExtractor

        return CudaFeatureExtractor(self.feature_set)

    def _write_log(
        self, log: FeatureLog, query_ids: Sequence[str], found: Sequence[SearchResult], rows: np.ndarray
    ) -> None:
        start = 0
        for query_id, result in zip(query_ids, found, strict=True):
            log.append(query_id, result.ids, rows[start : start + len(result)])
            start += len(result)

    def _result(self, found: SearchResult, scores: np.ndarray, k: int) -> RankedResult:
        """The best k; equal scores stay in the order of the first pass."""
        best = np.argsort(-scores, kind="stable")[:k]
        ids = tuple(self.index.id_of(doc) for doc in found.docs[best].tolist())
        return RankedResult(found.docs[best], ids, scores[best], found.scores[best], len(found))


def _check_queries(queries: Sequence[str | Query], k: int, query_ids: Sequence[str] | None) -> None:
    if isinstance(queries, str | Query):
        raise ParameterError("search_many takes several queries: pass a list, or use search for one query.")
    if k < 1:
        raise ParameterError(f"must be at least 1, got {k}.", parameter="k")
    if query_ids is not None and len(query_ids) != len(queries):
        raise ParameterError(f"must be one per query, {len(queries)}, got {len(query_ids)}.", parameter="query_ids")


def features_of(description: RankerDescription) -> FeatureSet:
    """The features that a ranker reads, by the names it was trained with."""
    names = description.feature_names
    if names == default_feature_names(len(names)):
        raise DataError(
            "this ranker's features have no names: it was trained on data without names. Pass feature_set=, "
            "or train it on what `rankwell features` writes."
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
