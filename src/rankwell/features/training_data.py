"""Training data: features of candidates with their judgments, extracted from an index or read from a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

import numpy as np

from rankwell.data.candidates import N_CANDIDATES, Candidates
from rankwell.data.dataset import RankingDataset
from rankwell.data.trec_run import TrecRun
from rankwell.errors import DataError, Parameter, ParameterError, QueryError
from rankwell.features.absent_candidates import AbsentCandidates
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet
from rankwell.features.feedback import with_feedback
from rankwell.features.hit_reading import collect_hits
from rankwell.features.hits import WHOLE
from rankwell.features.names import feature_name
from rankwell.features.own_features import NOTHING, OwnFeatures, with_own
from rankwell.features.qrels import Qrels
from rankwell.features.queries import QueryText
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.selection import search

SOURCES = ("top", "judged+top", "judged")
# Queries whose hits are in memory at the same time.
_BATCH = 32


@dataclass(frozen=True, eq=False)
class JudgedFeatures:
    """A dataset with document ids as comments, and counts of what was left out.

    absent_documents : judged documents that the index (or the log) lacks
    unjudged_queries : queries without judgments, left out
    unasked_queries : judged queries that are not among the queries, left out
    """

    dataset: RankingDataset
    absent_documents: int
    unjudged_queries: int
    unasked_queries: int


class ServedQuery(Protocol):
    """A query that was answered: the ids of its documents, and float32 (n_docs, n_features) as the ranker read them."""

    @property
    def query_id(self) -> str: ...
    @property
    def document_ids(self) -> tuple[str, ...]: ...
    @property
    def features(self) -> np.ndarray: ...


class ServedQueries(Protocol):
    """Queries that were answered, in the order of time: a feature log (`FeatureLogReader`)."""

    @property
    def feature_set(self) -> FeatureSet: ...
    def __iter__(self) -> Iterator[ServedQuery]: ...


def judged_features(
    index: Index,
    queries: Sequence[QueryText],
    qrels: Qrels,
    feature_set: FeatureSet,
    *,
    source: str = "top",
    n_candidates: int = N_CANDIDATES,
    model: BM25 | BM25F | None = None,
    stop_after: int | None = None,
    run: TrecRun | None = None,
    own: OwnFeatures | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JudgedFeatures:
    """The features of judged queries' candidates; a candidate without a judgment has label 0.

    A query's rows are in the order of the index's documents, which does not depend on their relevance.

    Parameters
    ----------
    source : {"top", "judged+top", "judged"}
        Which documents are candidates: the first pass's best, those judged, or both. Only "top" gives what a ranker is
        served: with judged documents from outside the first pass, where mostly relevant ones are judged, a ranker
        learns "matches little = relevant" and fails in serving, while measuring on such data flatters. The dataset
        counts such rows (``dataset.candidates``), and training and `rankwell evaluate` warn of them.
    n_candidates : int
        How many the first pass gives.
    model : the first pass's ranking; by default BM25 over the whole document
    stop_after : int, optional
        The first pass looks only at the first documents in the index's static order, of which about this many match,
        as in serving: see `rankwell.index.search.selection.search`.
    run : scores by query and document, optional
        Another system's run as the first pass: its best `n_candidates` documents are candidates, in place of the
        index's, but for those that the index lacks, which a warning names. Features from the first pass's documents
        still read the index's.
    own : OwnFeatures, optional
        Where the values of the set's own features come from. One that no row has a value of is warned of.
    progress : called with the number of queries done and the total
    """
    if source not in SOURCES:
        raise ParameterError(f"must be one of {', '.join(SOURCES)}, got {source!r}.", parameter="source")
    if n_candidates < 1:
        raise ParameterError(f"must be at least 1, got {n_candidates}.", parameter="n_candidates")
    feature_set.check(index.schema.streams, index.schema.statics)
    (own or NOTHING).check(feature_set)
    asked = [query for query in queries if query.id in qrels]
    rows = _Rows(feature_set)
    absent = outside = 0
    absent_of_run = AbsentCandidates()
    counted: Counter[str] = Counter()
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        found = [
            search(index, _parsed(index, query), k=n_candidates, model=model, stop_after=stop_after) for query in batch
        ]
        documents = []
        for query, result in zip(batch, found, strict=True):
            judged = np.array([index.find(name) for name in qrels[query.id]], np.int64)
            absent += int((judged < 0).sum())
            best = result.docs
            if run is not None:
                names = _best_of_run(run.get(query.id, {}), n_candidates)
                best = absent_of_run.numbers(index, query.id, names)
            documents.append(_candidates(best, judged[judged >= 0], source))
            outside += int((~np.isin(documents[-1], best)).sum())
        hits = collect_hits(index, [result.query for result in found], documents, n_jobs=n_jobs)
        hits = with_feedback(hits, feature_set, index, found, documents, n_jobs=n_jobs)
        asked_for = [result.query for result in found]
        hits = with_own(hits, feature_set, index, asked_for, documents, own, counted=counted)
        features = extract(hits, feature_set, n_jobs=n_jobs)
        ids = [[index.id_of(doc) for doc in docs.tolist()] for docs in documents]
        rows.add(batch, ids, features, qrels)
        if progress is not None:
            progress(start + len(batch), len(asked))
    absent_of_run.warn()
    (own or NOTHING).warn_of_absent(feature_set, counted)
    known = {query.id for query in queries}
    dataset = rows.dataset()
    first_pass = _first_pass(model, feature_set) if run is None else None
    dataset.candidates = Candidates(source, n_candidates, outside, first_pass)
    return JudgedFeatures(dataset, absent, len(queries) - len(asked), sum(name not in known for name in qrels))


def _parsed(index: Index, query: QueryText) -> Query:
    try:
        return index.parse(query.text)
    except QueryError as cause:
        remedy = ("Or read the queries as prose (", Parameter("operators", False), ").")
        raise DataError(f"query {query.id!r}: ", *cause.pieces, " ", remedy) from cause


def logged_features(log: ServedQueries, qrels: Qrels) -> JudgedFeatures:
    """The logged features of judged queries; if a query was logged several times, the last ones."""
    last = {logged.query_id: logged for logged in log}
    rows = _Rows(log.feature_set)
    absent = 0
    for logged in last.values():
        if logged.query_id in qrels:
            absent += len(set(qrels[logged.query_id]) - set(logged.document_ids))
            rows.add([QueryText(logged.query_id, "")], [list(logged.document_ids)], logged.features, qrels)
    asked = sum(name in qrels for name in last)
    return JudgedFeatures(rows.dataset(), absent, len(last) - asked, len(qrels) - asked)


def _first_pass(model: BM25 | BM25F | None, feature_set: FeatureSet) -> str | None:
    """The feature that is the first pass's score, if the set has it."""
    model = model or BM25()
    if isinstance(model, BM25F):
        return None
    name = feature_name("bm25", model.stream or WHOLE, {"k1": model.k1, "b": model.b})
    return name if name in feature_set.names else None


def _best_of_run(scores: Mapping[str, float], n_candidates: int) -> list[str]:
    return sorted(scores, key=lambda name: -scores[name])[:n_candidates]


def _candidates(best: np.ndarray, judged: np.ndarray, source: str) -> np.ndarray:
    if source == "judged":
        return np.unique(judged)
    return np.unique(best if source == "top" else np.concatenate((judged, best)))


@dataclass(eq=False)
class _Rows:
    """Collects rows, query by query."""

    feature_set: FeatureSet
    query_ids: list[str] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    document_ids: list[str] = field(default_factory=list)
    features: list[np.ndarray] = field(default_factory=list)

    def add(self, queries: Sequence[QueryText], ids: Sequence[list[str]], features: np.ndarray, qrels: Qrels) -> None:
        self._refuse_infinite(queries, ids, features)
        for query, own in zip(queries, ids, strict=True):
            self.query_ids += [query.id] * len(own)
            self.labels += [qrels[query.id].get(name, 0.0) for name in own]
            self.document_ids += own
        self.features.append(features)

    def _refuse_infinite(self, queries: Sequence[QueryText], ids: Sequence[list[str]], features: np.ndarray) -> None:
        found = np.argwhere(np.isinf(features))
        if not len(found):
            return
        row, column = found[0].tolist()
        places = ((query.id, name) for query, own in zip(queries, ids, strict=True) for name in own)
        query_id, document = next(islice(places, row, None))
        raise DataError(
            f"{self.feature_set.names[column]} must be finite in float32 or missing: of document {document!r} for "
            f"query {query_id!r} it is {features[row, column]}. Scale down the values or vectors that it is made of."
        )

    def dataset(self) -> RankingDataset:
        if not self.labels:
            raise DataError(
                "no candidate of a judged query was found. Check that queries and judgments have the same ids."
            )
        ids = np.array(self.query_ids)
        numbers = all(name.isascii() and name.isdigit() and str(int(name)) == name for name in set(self.query_ids))
        return RankingDataset(
            np.concatenate(self.features),
            self.labels,
            qid=ids.astype(np.int64) if numbers else ids,
            comments=self.document_ids,
            feature_names=self.feature_set.names,
        )
