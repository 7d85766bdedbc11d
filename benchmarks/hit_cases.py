"""Hits of synthetic queries, as in web search: four streams, four words, a thousand candidates per query."""

from __future__ import annotations

import numpy as np

from rankwell.features.hits import Hits, cell_bases

STREAMS = ("body", "anchor", "title", "url")
N_DOCS = 400_000
# Of each stream: its mean length, the share of a candidate's terms that occur in it, and their mean frequency there.
_MEAN_LENGTH = np.array([400, 25, 9, 6])
_COVERED = np.array([0.75, 0.35, 0.3, 0.15])
_MEAN_FREQUENCY = np.array([4.0, 2.0, 1.1, 1.05])


def web_hits(n_queries: int, *, n_candidates: int = 1000, n_words: int = 4, seed: int = 0) -> Hits:
    """Hits of queries of `n_words` different words each."""
    rng = np.random.default_rng(seed)
    n_streams, n_rows = len(STREAMS), n_queries * n_candidates
    lengths = 1 + (rng.lognormal(sigma=0.8, size=(n_rows, n_streams)) * _MEAN_LENGTH).astype(np.int32)
    shape = (n_rows, n_words, n_streams)
    frequency = (rng.random(shape) < _COVERED) * rng.geometric(1 / _MEAN_FREQUENCY, shape)
    frequency = np.minimum(frequency, lengths[:, None, :])
    cell_ptr = np.concatenate(([0], np.cumsum(frequency.ravel()))).astype(np.int64)
    doc_freq = np.sort(rng.integers(20, N_DOCS // 10, (n_queries * n_words, n_streams + 1)), axis=1)
    distinct = np.ceil(lengths**0.9).astype(np.int32)
    query_ptr = np.arange(n_queries + 1) * n_candidates
    term_ptr = np.arange(n_queries + 1) * n_words
    return Hits(
        streams=STREAMS,
        static_names=(),
        n_docs=N_DOCS,
        stream_tokens=np.append(_MEAN_LENGTH, _MEAN_LENGTH.sum()).astype(np.int64) * N_DOCS,
        query_ptr=query_ptr,
        term_ptr=term_ptr,
        query_frequency=np.ones(n_queries * n_words, np.int32),
        word_ptr=term_ptr,
        words=np.tile(np.arange(n_words, dtype=np.int32), n_queries),
        word_places=np.tile(np.arange(n_words, dtype=np.int32), n_queries),
        doc_freq=doc_freq.ravel(),
        occurrences=3 * doc_freq.ravel(),
        lengths=lengths.ravel(),
        distinct=np.column_stack((distinct, distinct.sum(axis=1, dtype=np.int32))).ravel(),
        statics=np.empty(0, np.float32),
        cell_base=cell_bases(query_ptr, term_ptr, n_streams),
        cell_ptr=cell_ptr,
        positions=_ascending(rng, frequency, lengths, cell_ptr),
    ).check()


def _ascending(
    rng: np.random.Generator, frequency: np.ndarray, lengths: np.ndarray, cell_ptr: np.ndarray
) -> np.ndarray:
    """Places of every cell: gaps of at least 1, spread over the stream."""
    widths = frequency.ravel()
    gap = np.repeat(
        np.maximum(1, np.broadcast_to(lengths[:, None, :], frequency.shape).ravel() // (widths + 1)), widths
    )
    steps = np.cumsum(1 + (rng.random(len(gap)) * (2 * gap - 1)).astype(np.int64))
    before = np.concatenate(([0], steps))[cell_ptr[:-1]]
    return (steps - np.repeat(before, widths) - 1).astype(np.int32)
