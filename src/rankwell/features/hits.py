"""Hits: where a query's terms occur in its candidates, the only input of feature extraction.

Vocabulary. A batch has Q queries, T distinct terms and W words in all, N candidates, S streams (title, body, ...) and H
hits. The *whole document* is column S of what is counted by stream: all streams together. A *cell* is one candidate's
one term in one stream; its hits are the places (0, 1, ...) where the term occurs there, and its width is the term
frequency. Everything is flat, so that the same arrays can be copied to a device as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from rankwell.errors import DataError
from rankwell.kernels.extraction.rules import HitArrays

WHOLE = "whole"
"""The name of the whole document among the streams."""

_FOR_KERNELS = attrgetter(*HitArrays._fields)


@dataclass(frozen=True, eq=False)
class Hits:
    """The hits of a batch of queries in their candidates.

    streams : S names; static_names : names of the static features
    n_docs : documents of the collection
    stream_tokens : int64 (S + 1,), words of the collection by stream
    query_ptr : int64 (Q + 1,), candidates of query q are query_ptr[q]:query_ptr[q + 1]
    term_ptr : int64 (Q + 1,), distinct terms of each query: its words in the order of their first occurrence, then its
        phrases, whose hits are where their first words are
    query_frequency : int32 (T,), how often a term occurs in its query
    word_ptr : int64 (Q + 1,); words : int32 (W,), the query's words in order, as numbers of its own terms; terms after
        the last one that is a word are phrases
    word_places : int32 (W,), ascending: their places in the query; a stop word leaves a gap, as in a document
    doc_freq, occurrences : int64 (T · (S + 1),), term-major: documents with the term, and how often it occurs in them
    lengths : int32 (N · S,), candidate-major: words of a candidate's stream
    distinct : int32 (N · (S + 1),), candidate-major: how many different terms are among them
    statics : float32 (N · n_statics,), candidate-major, NaN if a document does not have it
    cell_base : int64 (Q + 1,); the cell of query q, candidate c, term t and stream s, counted within the query, is
        cell_base[q] + (c · n_terms(q) + t) · S + s
    cell_ptr : int64 (cells + 1,), hits of each cell
    positions : int32 (H,), ascending within a cell
    """

    streams: tuple[str, ...]
    static_names: tuple[str, ...]
    n_docs: int
    stream_tokens: np.ndarray
    query_ptr: np.ndarray
    term_ptr: np.ndarray
    query_frequency: np.ndarray
    word_ptr: np.ndarray
    words: np.ndarray
    word_places: np.ndarray
    doc_freq: np.ndarray
    occurrences: np.ndarray
    lengths: np.ndarray
    distinct: np.ndarray
    statics: np.ndarray
    cell_base: np.ndarray
    cell_ptr: np.ndarray
    positions: np.ndarray

    @property
    def n_queries(self) -> int:
        return len(self.query_ptr) - 1

    @property
    def n_candidates(self) -> int:
        return int(self.query_ptr[-1])

    @property
    def n_terms(self) -> int:
        return int(self.term_ptr[-1])

    @property
    def n_streams(self) -> int:
        return len(self.streams)

    @property
    def n_hits(self) -> int:
        return len(self.positions)

    @property
    def has_places(self) -> bool:
        """Whether positions were read: without them there are only frequencies (`collect_hits(places=False)`)."""
        return len(self.positions) == self.cell_ptr[-1]

    def for_kernels(self) -> HitArrays:
        """The arrays as kernels take them."""
        return HitArrays._make(_FOR_KERNELS(self))

    def arrays(self) -> dict[str, np.ndarray]:
        """Every array by its name, in the order of the fields."""
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}

    def cell(self, query: int, candidate: int, term: int, stream: int) -> np.ndarray:
        """The places of a term in a stream; candidate and term are counted within the query."""
        n_terms = int(self.term_ptr[query + 1] - self.term_ptr[query])
        place = int(self.cell_base[query]) + (candidate * n_terms + term) * self.n_streams + stream
        return self.positions[self.cell_ptr[place] : self.cell_ptr[place + 1]]

    def check(self) -> Hits:
        """Refuse arrays that do not fit together; returns the hits themselves.

        Hits from `collect_hits` always fit: this is for hits from elsewhere.
        """
        _check_pointers(self)
        _check_shapes(self)
        _check_values(self)
        return self


def check_streams(streams: Sequence[str]) -> None:
    """Refuse an index without streams, and a stream that has the name of the whole document."""
    if not streams:
        raise DataError("this index has no streams: no text was added to it, so there is nothing to extract.")
    if WHOLE in streams:
        raise DataError(
            f"the index has a stream called {WHOLE!r}, which is the name of all streams together. Build it "
            "again with another name for this field."
        )
    if len(set(streams)) != len(streams):
        raise DataError(f"streams must have different names, got {', '.join(streams)}.")


_DTYPES = {
    "query_frequency": np.int32,
    "words": np.int32,
    "word_places": np.int32,
    "lengths": np.int32,
    "distinct": np.int32,
    "positions": np.int32,
    "statics": np.float32,
}


def cell_bases(query_ptr: np.ndarray, term_ptr: np.ndarray, n_streams: int) -> np.ndarray:
    """The first cell of each query: int64 (Q + 1,)."""
    sizes = np.diff(query_ptr) * np.diff(term_ptr) * n_streams
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))


def _check_pointers(hits: Hits) -> None:
    for name, array in hits.arrays().items():
        wanted = _DTYPES.get(name, np.int64)
        if array.ndim != 1 or array.dtype != wanted or not array.flags.c_contiguous:
            raise DataError(
                f"hits: {name} must be a flat array of {np.dtype(wanted)}, got {array.dtype} of shape {array.shape}."
            )
    for name in ("query_ptr", "term_ptr", "word_ptr", "cell_ptr"):
        pointer = getattr(hits, name)
        if len(pointer) == 0 or pointer[0] != 0 or (np.diff(pointer) < 0).any():
            raise DataError(f"hits: {name} must begin with 0 and not decrease.")
    for name in ("term_ptr", "word_ptr", "cell_base"):
        if len(getattr(hits, name)) != len(hits.query_ptr):
            raise DataError(
                f"hits: {name} must have one number per query and one more, {len(hits.query_ptr)}, "
                f"got {len(getattr(hits, name))}."
            )


def _check_shapes(hits: Hits) -> None:
    check_streams(hits.streams)
    expected = cell_bases(hits.query_ptr, hits.term_ptr, hits.n_streams)
    if not np.array_equal(hits.cell_base, expected):
        raise DataError("hits: cell_base must count one cell per candidate, term and stream of each query.")
    columns = hits.n_streams + 1
    lengths = {
        "stream_tokens": columns,
        "query_frequency": hits.n_terms,
        "words": int(hits.word_ptr[-1]),
        "word_places": int(hits.word_ptr[-1]),
        "doc_freq": hits.n_terms * columns,
        "occurrences": hits.n_terms * columns,
        "lengths": hits.n_candidates * hits.n_streams,
        "distinct": hits.n_candidates * columns,
        "statics": hits.n_candidates * len(hits.static_names),
        "cell_ptr": int(expected[-1]) + 1,
        "positions": int(hits.cell_ptr[-1]),
    }
    for name, length in lengths.items():
        if len(getattr(hits, name)) != length:
            raise DataError(f"hits: {name} must have {length} numbers, got {len(getattr(hits, name))}.")


def _check_values(hits: Hits) -> None:
    for name in ("stream_tokens", "query_frequency", "words", "doc_freq", "occurrences", "lengths", "distinct"):
        if (getattr(hits, name) < 0).any():
            raise DataError(f"hits: {name} must not be negative, got {getattr(hits, name).min()}.")
    n_terms_of_words = np.repeat(np.diff(hits.term_ptr), np.diff(hits.word_ptr))
    if (hits.words >= n_terms_of_words).any():
        raise DataError("hits: words must be numbers of the query's own terms.")
    if not _ascend(hits.word_places, hits.word_ptr):
        raise DataError("hits: word_places must be 0 or more and ascend within a query.")
    if not _ascend(hits.positions, hits.cell_ptr):
        raise DataError("hits: positions must be 0 or more and ascend within a cell.")


def _ascend(values: np.ndarray, pointer: np.ndarray) -> bool:
    """Whether values are 0 or more and rise strictly within each of the stretches that `pointer` cuts."""
    rises = np.diff(values) > 0
    starts = pointer[1:-1]
    rises[starts[(starts > 0) & (starts < len(values))] - 1] = True
    return bool(rises.all()) and values.min(initial=0) >= 0
