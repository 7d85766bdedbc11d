"""Hits of made-up documents, with what the statistics of a real collection would be of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankwell.features.hits import Hits, cell_bases

FIVE_STREAMS = ("body", "anchor", "title", "url")


def hits_of_documents(
    documents: Sequence[dict[str, Sequence[int]]],
    queries: Sequence[Sequence[int]],
    *,
    streams: Sequence[str] = FIVE_STREAMS,
    candidates: Sequence[Sequence[int]] | None = None,
    statics: dict[str, Sequence[float]] | None = None,
    phrases: Sequence[Sequence[tuple[int, ...]]] | None = None,
) -> Hits:
    """The hits of queries (words as integers) in documents (streams of such words); every document is a candidate.

    A word below 0 is a gap, in documents and queries: it has a place but is not indexed, as a stop word.
    phrases : for each query those that are terms of it, each once
    """
    asked, queries = queries, [[word for word in query if word >= 0] for query in queries]
    n_streams, n_docs = len(streams), len(documents)
    candidates = [range(n_docs)] * len(queries) if candidates is None else candidates
    texts = [[np.asarray(document.get(stream, ()), dtype=np.int64) for stream in streams] for document in documents]
    words = [list(dict.fromkeys(query)) for query in queries]
    terms = [[*own, *more] for own, more in zip(words, phrases or [()] * len(queries), strict=True)]
    counts = lambda of, sizes: np.concatenate(([0], np.cumsum([of(size) for size in sizes]))).astype(np.int64)  # noqa: E731
    chosen = [doc for docs in candidates for doc in docs]
    cells = [
        places_of(term, text)
        for query, docs in zip(terms, candidates, strict=True)
        for doc in docs
        for term in query
        for text in texts[doc]
    ]
    query_ptr, term_ptr = counts(len, candidates), counts(len, terms)
    statics = statics or {}
    whole = [np.concatenate([*document, np.empty(0, np.int64)]) for document in texts]
    columns = [[*document, together] for document, together in zip(texts, whole, strict=True)]
    flat_terms = [term for query in terms for term in query]
    # Of each term in each document: how often each stream has it, and the whole document.
    found = {
        term: np.array([[len(places_of(term, text)) for text in document] for document in texts]) for term in flat_terms
    }
    found = {
        term: np.concatenate((own, own.sum(axis=1, keepdims=True)), axis=1) for term, own in found.items() if n_docs
    }
    return Hits(
        streams=tuple(streams),
        static_names=tuple(statics),
        n_docs=n_docs,
        stream_tokens=np.array([sum((d[s] >= 0).sum() for d in columns) for s in range(n_streams + 1)], np.int64),
        query_ptr=query_ptr,
        term_ptr=term_ptr,
        query_frequency=np.array(
            [list(q).count(t) if isinstance(t, int) else 1 for q, own in zip(queries, terms, strict=True) for t in own],
            np.int32,
        ),
        word_ptr=counts(len, queries),
        word_places=np.concatenate([np.flatnonzero(np.asarray(q) >= 0) for q in asked] or [np.empty(0)]).astype(
            np.int32
        ),
        words=np.array([own.index(w) for q, own in zip(queries, terms, strict=True) for w in q], np.int32),
        doc_freq=np.array(
            [(found[t][:, s] > 0).sum() if n_docs else 0 for t in flat_terms for s in range(n_streams + 1)], np.int64
        ),
        occurrences=np.array(
            [found[t][:, s].sum() if n_docs else 0 for t in flat_terms for s in range(n_streams + 1)], np.int64
        ),
        lengths=np.array([(text >= 0).sum() for doc in chosen for text in texts[doc]], np.int32),
        distinct=np.array([len(np.unique(text[text >= 0])) for doc in chosen for text in columns[doc]], np.int32),
        statics=np.array([column[doc] for doc in chosen for column in statics.values()], np.float32),
        cell_base=cell_bases(query_ptr, term_ptr, n_streams),
        cell_ptr=counts(len, cells),
        positions=np.concatenate([*cells, np.empty(0, np.int64)]).astype(np.int32),
    ).check()


def places_of(term: int | tuple[int, ...], text: np.ndarray) -> np.ndarray:
    """Where a word is, or the first word of a phrase."""
    if not isinstance(term, tuple):
        return np.flatnonzero(text == term)
    starts = range(len(text) - len(term) + 1)
    return np.array([p for p in starts if all(w < 0 or text[p + i] == w for i, w in enumerate(term))], np.int64)


def phrase_hits(seed: int) -> Hits:
    """Queries with phrases: of words they have, one with a gap, one that no document has, and none."""
    rng = np.random.default_rng(seed)
    documents = random_documents(rng, 25, longest=60, vocabulary=5, gaps=0.2)
    queries = [[1, 2, 3], [1, 2], [0, 0, 4], [3], [2, 1, 4, 0, 3], list(range(5)) * 3]
    phrases = [[(1, 2)], [(1, 2), (2, 1)], [(0, 0, 4)], [], [(2, -1, 4), (0, 3)], [(0, 1), (1, 2), (2, 3), (3, 4)]]
    return hits_of_documents(documents, queries, phrases=phrases)


def random_documents(
    rng: np.random.Generator,
    n_docs: int,
    *,
    streams: Sequence[str] = FIVE_STREAMS,
    vocabulary: int = 12,
    longest: int = 30,
    gaps: float = 0.1,
) -> list[dict[str, np.ndarray]]:
    """Documents of few words, so that queries hit often; some streams are absent and some empty."""
    documents = []
    for _ in range(n_docs):
        document = {}
        for number, stream in enumerate(streams):
            if rng.random() < 0.15:
                continue
            length = int(rng.integers(0, max(2, longest // (1 + 2 * number))))
            words = rng.integers(0, vocabulary, length)
            document[stream] = np.where(rng.random(length) < gaps, -1, words)
        documents.append(document)
    return documents


def scattered_hits(seed: int) -> Hits:
    """Hits drawn cell by cell, so that different terms occur at the same place."""
    rng = np.random.default_rng(seed)
    documents = random_documents(rng, 12, longest=40)
    hits = hits_of_documents(documents, [[1, 2, 3], [4, 5], [6], [1, 2, 1, 3]])
    cells = [np.sort(rng.permutation(8)[: rng.integers(0, 5)]) for _ in range(len(hits.cell_ptr) - 1)]
    return replace(
        hits,
        cell_ptr=np.concatenate(([0], np.cumsum([len(cell) for cell in cells]))).astype(np.int64),
        positions=np.concatenate(cells).astype(np.int32),
        lengths=np.maximum(hits.lengths, 8),
        distinct=np.maximum(hits.distinct, 8),
    ).check()


def random_hits(seed: int, *, n_docs: int = 20, longest: int = 30, streams: Sequence[str] = FIVE_STREAMS) -> Hits:
    """A batch with the awkward queries: empty, one word, repeated words, words that no document has."""
    rng = np.random.default_rng(seed)
    documents = random_documents(rng, n_docs, streams=streams, longest=longest)
    queries = [
        rng.integers(0, 12, 4).tolist(),
        [3],
        [],
        [5, 5],
        [1, 2, 1, -1, 2, 3],
        [99, 4],
        [98, 99],
        rng.integers(0, 14, 9).tolist(),
    ]
    candidates = [np.sort(rng.permutation(n_docs)[: rng.integers(0, n_docs + 1)]).tolist() for _ in queries]
    candidates[0] = list(range(n_docs))
    statics = {"rank": rng.normal(size=n_docs).tolist(), "age": [float("nan")] * n_docs}
    return hits_of_documents(documents, queries, streams=streams, candidates=candidates, statics=statics)


def join_hits(parts: Sequence[Hits]) -> Hits:
    """The hits of several batches in one collection, whose statistics are those of the first, as one batch."""
    joined = {}
    for name, array in parts[0].arrays().items():
        own = [getattr(part, name) for part in parts]
        if name in ("query_ptr", "term_ptr", "word_ptr", "cell_base", "cell_ptr"):
            joined[name] = np.concatenate(([0], np.cumsum(np.concatenate(list(map(np.diff, own)))))).astype(np.int64)
        else:
            joined[name] = array if name == "stream_tokens" else np.concatenate(own)
    return replace(parts[0], **joined)
