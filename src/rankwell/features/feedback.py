"""Pseudo-relevance feedback: features of every candidate from the first pass's first documents.

The relevance model of Lavrenko and Croft (2001), mixed with the query as Abdul-Jaleel et al. (2004) do (RM3). Of the
first `documents` that the first pass found, with their scores s(d),

    r(t)  ∝  Σ over d of s(d) · tf(t, d) / len(d),    over the `terms` terms that have the most of it, summing to 1,
    w(t)  =  original · qtf(t) / Σ qtf + (1 − original) · r(t),

and a candidate's value is BM25 with w for qtf. Terms that more than a tenth of all documents have say little about
any subject and are not terms of the model. Documents are read from the forward index, where the index has one; else
from the stored fields and cut as they were for the index, and of a very long text only the beginning.

The values are computed here, on the host, for training and serving alike, and are passed with the hits as statics are:
no kernel computes them, so every device has the same values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rankwell.errors import DataError
from rankwell.features.feature_set import FeatureSet
from rankwell.features.hit_reading import count_hits
from rankwell.features.hits import WHOLE, Hits
from rankwell.features.names import Feature
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.search.selection import SearchResult
from rankwell.index.segments.document_counts import DocumentCounts, document_counts
from rankwell.index.statistics import Statistics

# A term of the model is in at most this share of the documents.
MOST_DOCUMENTS = 0.1


class ModelSettings(NamedTuple):
    """How a relevance model is made: from so many documents, of so many terms; `original` is the query's share."""

    documents: int
    terms: int
    original: float


RelevanceModel = Mapping[bytes, float]
"""The weight w of each term, those of the query first."""


def with_feedback(
    hits: Hits,
    feature_set: FeatureSet,
    index: Index,
    found: Sequence[SearchResult],
    candidates: Sequence[np.ndarray],
    *,
    models: Mapping[ModelSettings, Sequence[RelevanceModel]] | None = None,
    n_jobs: int | None = None,
) -> Hits:
    """The hits, and the values of the set's feedback features as further statics; the same hits if it has none.

    Parameters
    ----------
    hits : of `candidates`
    found : for each query, what the first pass found, best first
    candidates : for each query, int64 (n,), numbers of documents
    models : the relevance models of the queries, for each of `model_settings`; by default they are made of `found`
    """
    if not feature_set.feedback:
        return hits
    names = tuple(feature.name for feature in feature_set.feedback)
    taken = next((name for name in names if name in hits.static_names), None)
    if taken is not None:
        raise DataError(
            f"the index has a static called {taken!r}, which is a feature's name. Build the index with another name."
        )
    values = np.empty((hits.n_candidates, len(names)), np.float32)
    for settings, numbers in model_settings(feature_set).items():
        own = models[settings] if models else [relevance_model(index, result, settings) for result in found]
        queries = [Query(tuple(model), (1,) * len(model), (), ()) for model in own]
        frequencies = count_hits(index, queries, candidates, n_jobs=n_jobs)
        for number in numbers:
            values[:, number] = _values(feature_set.feedback[number], hits, index, own, frequencies)
    statics = np.concatenate((hits.statics.reshape(hits.n_candidates, len(hits.static_names)), values), axis=1)
    return replace(hits, static_names=(*hits.static_names, *names), statics=statics.reshape(-1))


def model_settings(feature_set: FeatureSet) -> dict[ModelSettings, list[int]]:
    """The different relevance models that the set's feedback features read, each with the numbers of those."""
    by_settings: dict[ModelSettings, list[int]] = {}
    for number, feature in enumerate(feature_set.feedback):
        settings = feature.settings
        key = ModelSettings(int(settings["documents"]), int(settings["terms"]), settings["original"])
        by_settings.setdefault(key, []).append(number)
    return by_settings


def relevance_model(index: Index, found: SearchResult, settings: ModelSettings) -> dict[bytes, float]:
    """The relevance model of a query: the formulas at the head of this file."""
    counted = document_counts(index, found.docs[: settings.documents])
    return model_of_documents(index, found.query, counted, found.scores[: settings.documents], settings)


def model_of_documents(
    index: Index, query: Query, counted: DocumentCounts, scores: np.ndarray, settings: ModelSettings
) -> dict[bytes, float]:
    """The relevance model of a query from the terms of documents, and what each of them scored."""
    original = settings.original
    weights = {
        term: original * qtf / sum(query.frequencies) for term, qtf in zip(query.terms, query.frequencies, strict=True)
    }
    chosen = _most_said(index, counted, scores, settings.terms)
    total = sum(chosen.values())
    for term, said in chosen.items():
        weights[term] = weights.get(term, 0.0) + (1.0 - original) * said / total
    return weights


def weighed_terms(counted: DocumentCounts, scores: np.ndarray) -> Iterator[bytes]:
    """The terms of documents, those with the largest Σ s(d) · tf / len first; equal ones by bytes."""
    if len(counted.doc):
        numbers, said = _weighed(counted, scores)
        for term, _ in _by_weight(said, numbers, counted):
            yield term


def _most_said(index: Index, counted: DocumentCounts, scores: np.ndarray, n_terms: int) -> dict[bytes, float]:
    """The terms with the largest Σ s(d) · tf / len, without those that too many documents have; equal ones by bytes."""
    if not len(counted.doc):
        return {}
    numbers, said = _weighed(counted, scores)
    statistics = Statistics.of(index)
    most = MOST_DOCUMENTS * statistics.n_docs
    # Most common terms need not be looked up singly.
    few = counted.least_docs(numbers) <= most
    numbers, said = numbers[few], said[few]
    chosen: dict[bytes, float] = {}
    for one, weight in _by_weight(said, numbers, counted):
        if len(chosen) == n_terms or weight <= 0.0:
            break
        if one not in index.analysis.common_terms and statistics.term(one).doc_freq[-1] <= most:
            chosen[one] = weight
    return chosen


def _weighed(counted: DocumentCounts, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The terms' numbers, ascending, and Σ s(d) · tf / len of each."""
    from rankwell.kernels.extraction.cpu.feedback import weigh_terms

    numbers, order, scratch = np.empty((3, len(counted.doc)), np.int64)
    weights, lengths = np.empty(len(numbers)), np.zeros(len(scores), np.int64)
    scores = np.ascontiguousarray(scores, np.float64)
    arrays = (counted.doc, counted.number, counted.frequency)
    n_terms = weigh_terms(*arrays, scores, lengths, order, scratch, numbers, weights)
    return numbers[:n_terms], weights[:n_terms]


def _by_weight(weights: np.ndarray, numbers: np.ndarray, counted: DocumentCounts) -> Iterator[tuple[bytes, float]]:
    """Terms by falling weight, equal ones by their bytes; few of them are asked for."""
    order = np.argsort(-weights, kind="stable")
    if counted.is_ordered:
        for place in order.tolist():
            yield counted.term(int(numbers[place])), float(weights[place])
        return
    if len(order) == 0:
        return
    ordered = weights[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)) + 1, len(ordered))
    start = 0
    for end in ends.tolist():
        weight = float(ordered[start])
        for term in sorted(counted.term(number) for number in numbers[order[start:end]].tolist()):
            yield term, weight
        start = end


def _values(
    feature: Feature,
    hits: Hits,
    index: Index,
    models: Sequence[RelevanceModel],
    frequencies: Sequence[np.ndarray],
) -> np.ndarray:
    """One feature of every candidate: float64 (n_candidates,)."""
    from rankwell.kernels.extraction.cpu.feedback import add_bm25

    statistics, k1, b = Statistics.of(index), feature.settings["k1"], feature.settings["b"]
    column = -1 if feature.stream == WHOLE else hits.streams.index(feature.stream)
    lengths = hits.lengths.reshape(-1, hits.n_streams)
    length = lengths.sum(axis=1) if column < 0 else lengths[:, column]
    relative = length * (hits.n_docs / max(int(hits.stream_tokens[column]), 1))
    saturation = k1 * (1.0 - b + b * relative)
    values = np.zeros(hits.n_candidates)
    first, last = (0, hits.n_streams) if column < 0 else (column, column + 1)
    for query, (model, own) in enumerate(zip(models, frequencies, strict=True)):
        rows = slice(int(hits.query_ptr[query]), int(hits.query_ptr[query + 1]))
        doc_freq = [int(statistics.term(term).doc_freq[column]) for term in model]
        weights = [
            weight * math.log(1.0 + (hits.n_docs - df + 0.5) / (df + 0.5))
            for df, weight in zip(doc_freq, model.values(), strict=True)
        ]
        add_bm25(own, first, last, np.array(weights, np.float64), k1, saturation[rows], values[rows])
    return values
