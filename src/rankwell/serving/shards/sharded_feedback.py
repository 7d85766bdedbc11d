"""Relevance models of a sharded collection: made from the first documents of all shards, as one index makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from rankwell.features.feedback import ModelSettings, model_of_documents, model_settings, weighed_terms
from rankwell.index.query.query import Query
from rankwell.index.segments.document_counts import DocumentCounts
from rankwell.serving.ranking.ranker_passes import RankerPasses
from rankwell.serving.shards import messages
from rankwell.serving.shards.candidates import Candidates
from rankwell.serving.shards.rounds import UnansweredError
from rankwell.serving.shards.sharded_search import ShardedSearch
from rankwell.serving.shards.statistics import MissingCountError

# Of this many times as many terms as a relevance model has, the counts are asked for at once: common ones are left out.
_TERMS_AHEAD = 4


async def relevance_models(
    search: ShardedSearch, query: Query, candidates: Candidates, passes: RankerPasses
) -> list[messages.Model] | None:
    """The models that a ranker's feedback features read; the shards get to know their terms.

    None if no shard has told in time what they are made of.
    """
    wanted = model_settings(passes.feature_set)
    if not wanted:
        return []
    n_docs = min(max(one.documents for one in wanted), len(candidates))
    try:
        words = await _words(search, candidates, n_docs)
        models = []
        for settings in wanted:
            weights = await _model(search, query, words[: settings.documents], candidates.score, settings)
            models.append(messages.Model(*settings, list(weights.items())))
        await search.know_also([term for model in models for term, _ in model.weights])
    except UnansweredError:
        return None
    return models


async def _words(search: ShardedSearch, candidates: Candidates, n_docs: int) -> list[dict[bytes, int]]:
    """The terms of the first candidates; none of those whose shard is missing. Raises UnansweredError."""
    places = {shard: np.flatnonzero(candidates.shard[:n_docs] == shard) for shard in search.rounds.present}
    places = {shard: own for shard, own in places.items() if len(own)}
    found = await search.words({shard: candidates.doc[own].tolist() for shard, own in places.items()})
    if places and not found:
        raise search.rounds.unanswered()
    words: list[dict[bytes, int]] = [{} for _ in range(n_docs)]
    for shard, documents in found.items():
        for place, document in zip(places[shard].tolist(), documents, strict=True):
            words[place] = document
    return words


async def _model(
    search: ShardedSearch,
    query: Query,
    words: Sequence[Mapping[bytes, int]],
    scores: np.ndarray,
    settings: ModelSettings,
) -> dict[bytes, float]:
    """A relevance model; terms are counted over all shards, the weightiest first, as far as it needs them."""
    counted, own, collection = _document_counts(words), scores[: len(words)], search.collection
    terms = weighed_terms(counted, own)
    while True:
        try:
            model = model_of_documents(collection.index, query, counted, own, settings)
            # Terms that it does not have were weighed too.
            search.note_counts(term for document in words for term in document)
            return model
        except MissingCountError as error:
            ahead = [error.term, *islice(terms, _TERMS_AHEAD * settings.terms)]
            await search.know(ahead, "terms")
            collection.question(search.asked, ahead)


def _document_counts(words: Sequence[Mapping[bytes, int]]) -> DocumentCounts:
    """The terms of documents, numbered in the order of their bytes."""
    terms = sorted({term for document in words for term in document})
    number_of = {term: number for number, term in enumerate(terms)}
    entries = [(doc, number_of[term], count) for doc, document in enumerate(words) for term, count in document.items()]
    doc, number, frequency = np.array(entries, np.int64).reshape(-1, 3).T
    return DocumentCounts(
        np.ascontiguousarray(doc), np.ascontiguousarray(number), np.ascontiguousarray(frequency),
        terms.__getitem__, is_ordered=True,
    )  # fmt: skip
