"""The forward index of a segment: how often documents have terms, and where.

Optional: `Schema(forward=…)`. Every function takes numbers of the segment's documents and terms, checks the records
that it reads, and raises FileFormatError if one is not as a writer makes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.index.segments.segment import Segment
from rankwell.index.segments.structure import forged
from rankwell.kernels.postings import forward
from rankwell.kernels.postings.rules import MOST_OCCURRENCES


class TermCounts(NamedTuple):
    """The different terms of some documents and how often each has them; those of document i from term_ptr[i] on."""

    term_ptr: np.ndarray  # int64 (n_docs + 1,)
    terms: np.ndarray  # int32, ascending within a document
    counts: np.ndarray  # int32


class FoundTerms(NamedTuple):
    """Where one stream of a document has some terms: places among the terms asked for, and positions, ascending."""

    places: np.ndarray  # int32
    positions: np.ndarray  # int32


def has_every_stream(segment: Segment) -> bool:
    """Whether the forward index has all words of the segment."""
    return len(segment.forward_streams) == segment.n_streams


def term_counts(segment: Segment, docs: np.ndarray) -> TermCounts:
    """The terms of documents, all streams together. docs : int64"""
    sizes = _record_sizes(segment, docs)
    n_bytes = int(sizes.sum())
    term_ptr = np.empty(len(docs) + 1, np.int64)
    terms, counts = np.empty(n_bytes, np.int32), np.zeros(n_bytes, np.int32)
    data, offsets = segment.unverified("forward.data"), segment["forward.offsets"]
    numbers = np.arange(int(sizes.max(initial=0)), dtype=np.int32)
    wrong = forward.read_counts(
        data, offsets, docs, segment.n_terms, segment.n_streams, numbers, term_ptr, terms, counts
    )
    if wrong >= 0:
        raise _wrong(segment, int(docs[wrong]))
    return TermCounts(term_ptr, terms[: term_ptr[-1]], counts[: term_ptr[-1]])


def count_terms(segment: Segment, docs: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """How often documents have terms: int32 (n_docs, n_terms, n_streams). docs : int64; terms : int32, ascending"""
    sizes = _record_sizes(segment, docs)
    counts = np.zeros((len(docs), len(terms), segment.n_streams), np.int32)
    room = np.empty((2, int(sizes.max(initial=0))), np.int32)
    data, offsets = segment.unverified("forward.data"), segment["forward.offsets"]
    wrong = forward.count_terms(
        data, offsets, docs, segment.n_terms, segment.n_streams, terms, room[0], room[1], counts.reshape(-1)
    )
    if wrong >= 0:
        raise _wrong(segment, int(docs[wrong]))
    return counts


def find_terms(segment: Segment, doc: int, terms: np.ndarray) -> dict[int, FoundTerms]:
    """Where a document has terms, by the numbers of the streams that have any. terms : int32, ascending"""
    segment.verify_records(np.array([doc], np.int64))
    start, stop = segment["forward.offsets"][doc : doc + 2].tolist()
    n_bytes = stop - start
    room, bounds = np.empty((18, n_bytes), np.int32), np.zeros(2 * segment.n_streams, np.int64)
    places, positions = room[2:10].reshape(-1), room[10:].reshape(-1)
    data, sizes = segment.unverified("forward.data"), (segment.n_terms, segment.n_streams)
    if forward.find_terms(data, start, stop, *sizes, terms, room[0], room[1], bounds, places, positions) < 0:
        raise _wrong(segment, doc)
    ends = bounds.tolist()
    return {
        stream: FoundTerms(places[first:last], positions[first:last])
        for stream, (first, last) in enumerate(zip(ends[::2], ends[1::2], strict=True))
        if first < last
    }


def record_bytes(segment: Segment, docs: np.ndarray) -> int:
    """How many bytes of the forward index documents have: what it costs to read them."""
    offsets = segment["forward.offsets"]
    return int((offsets[docs + 1] - offsets[docs]).sum())


def forward_problems(segment: Segment) -> list[str]:
    """What is wrong with the forward index: a record, or that it does not have the words of the posting lists."""
    if not segment.forward_streams:
        return ["there are records of a forward index without streams"] if len(segment["forward.data"]) else []
    offsets, n_streams = segment["forward.offsets"], segment.n_streams
    lengths = np.zeros(segment.n_docs * n_streams, np.int64)
    occurrences = np.zeros(segment.n_terms * n_streams, np.int64)
    room = np.empty((4, 8 * int(np.diff(offsets).max(initial=0))), np.int32)
    wrong = forward.count_all(segment["forward.data"], offsets, segment.n_terms, n_streams, room, lengths, occurrences)
    if wrong >= 0:
        return [f"the forward index of document {wrong:,} is wrong"]
    streams = list(segment.forward_streams)
    problems = []
    for name, counted, what in (
        ("documents.lengths", lengths, "document"),
        ("lists.occurrences", occurrences, "term"),
    ):
        noted = segment[name].reshape(-1, segment.lists_per_term)[:, streams]
        counted = np.minimum(counted, MOST_OCCURRENCES)
        differs = np.argwhere(noted != counted.reshape(-1, n_streams)[:, streams])
        if len(differs):
            number, column = differs[0].tolist()
            problems.append(
                f"the forward index has {counted.reshape(-1, n_streams)[number, streams[column]]:,} words of {what} "
                f"{number:,} in stream {streams[column]}, {name} says {noted[number, column]:,}"
            )
    return problems


def _record_sizes(segment: Segment, docs: np.ndarray) -> np.ndarray:
    segment.verify_records(docs)
    offsets = segment["forward.offsets"]
    sizes: np.ndarray = offsets[docs + 1] - offsets[docs]
    return sizes


def _wrong(segment: Segment, doc: int) -> Exception:
    return forged(segment, f"the forward index of document {doc:,} is wrong")
