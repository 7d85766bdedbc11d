"""Hits of synthetic queries, as in web search: four streams, four words, a thousand candidates per query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankwell.features.hits import Hits, cell_bases

STREAMS = ("body", "anchor", "title", "url")
N_DOCS = 400_000
# Of each stream: its mean length, the share of a candidate's terms that occur in it, and their mean frequency there.
_MEAN_LENGTH = np.array([400, 25, 9, 6])
_COVERED = np.array([0.75, 0.35, 0.3, 0.15])
_MEAN_FREQUENCY = np.array([4.0, 2.0, 1.1, 1.05])

_BY_PART = ("query_frequency", "words", "word_places", "doc_freq", "occurrences")
_BY_PART += ("lengths", "distinct", "statics", "positions")
_OFFSETS = ("query_ptr", "term_ptr", "word_ptr", "cell_ptr")


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


class HitsJoiner:
    """Joins the hits of several queries to one batch, as a node gathers those of the queries that it ranks together.

    A batch is written into memory that is used again for the next one: fresh memory of some megabytes takes longer to
    get than to fill.
    """

    def __init__(self) -> None:
        self._room: dict[str, np.ndarray] = {}

    def join(self, parts: Sequence[Hits]) -> Hits:
        """The hits of all parts, valid until the next call."""
        if len(parts) == 1:
            return parts[0]
        joined = {name: self._concatenated(name, [getattr(part, name) for part in parts]) for name in _BY_PART}
        joined |= {name: self._offsets(name, [getattr(part, name) for part in parts]) for name in _OFFSETS}
        joined["cell_base"] = cell_bases(joined["query_ptr"], joined["term_ptr"], parts[0].n_streams)
        return replace(parts[0], **joined)

    def _concatenated(self, name: str, arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(arrays, out=self._memory(name, sum(map(len, arrays)), arrays[0].dtype))

    def _offsets(self, name: str, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Offsets of all parts, each from where the one before ends."""
        joined = self._memory(name, sum(map(len, arrays)) - len(arrays) + 1, np.dtype(np.int64))
        joined[0], end, base = 0, 1, 0
        for array in arrays:
            np.add(array[1:], base, out=joined[end : end + len(array) - 1])
            end, base = end + len(array) - 1, base + int(array[-1])
        return joined

    def _memory(self, name: str, size: int, dtype: np.dtype) -> np.ndarray:
        if name not in self._room or len(self._room[name]) < size:
            self._room[name] = np.empty(size + size // 4, dtype)
        return self._room[name][:size]
