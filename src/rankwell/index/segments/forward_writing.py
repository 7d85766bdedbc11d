"""The forward index of a segment: written from the documents' words, or joined from the segments of a merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rankwell.index.segments.segment import Segment
from rankwell.index.segments.sink import SegmentSink, page_array
from rankwell.index.segments.structure import forged
from rankwell.kernels.postings.forward import LONGEST_NUMBER, encode_documents, place_words, renumber_documents
from rankwell.kernels.postings.inversion import STREAM_SIZE, Tokens

# Bytes of records that a merge renumbers at a time; a longer record is alone.
_BYTES_AT_A_TIME = 2**22
# The most bytes of a record: of a word (its term, its place, its jump), and of a stream or the document's counts.
_WORD_BYTES, _HEAD_BYTES = 5 * LONGEST_NUMBER, 3 * LONGEST_NUMBER


def write_forward(
    batches: Sequence[Tokens],
    term_of_word: np.ndarray,
    n_terms: int,
    n_docs: int,
    n_streams: int,
    forward: Sequence[int],
    sink: SegmentSink,
) -> None:
    """Append the records of all documents, with the words of the streams `forward`; nothing if there are none."""
    if not forward:
        return
    is_kept = np.zeros(n_streams, np.uint8)
    is_kept[list(forward)] = 1
    encoder = _Encoder(n_terms, sink)
    state = np.zeros(STREAM_SIZE, np.int64)
    # The words of a document that may go on in the next batch.
    waiting: list[np.ndarray] = []
    for batch in batches:
        words = np.empty((4, len(batch.words)), np.int32)
        n_words = place_words(batch, term_of_word, is_kept, state, *words)
        words = words[:, :n_words]
        n_whole = int(np.searchsorted(words[0], batch.doc_of_field[-1])) if len(batch.doc_of_field) else 0
        if n_whole or (waiting and len(batch.doc_of_field) and waiting[0][0, 0] < batch.doc_of_field[-1]):
            encoder.add(np.concatenate([*waiting, words[:, :n_whole]], axis=1))
            waiting.clear()
        if n_words > n_whole:
            waiting.append(words[:, n_whole:])
    if waiting:
        encoder.add(np.concatenate(waiting, axis=1))
    encoder.finish(n_docs)


class _Encoder:
    """Appends the records of whole documents, in their order."""

    def __init__(self, n_terms: int, sink: SegmentSink) -> None:
        self._sink = sink
        self._local = np.full(n_terms, -1, np.int32)
        self._n_docs, self._end = 0, 0
        sink.append("forward.offsets", np.zeros(1, np.int64))

    def add(self, words: np.ndarray) -> None:
        """Add words: documents ascending, streams, terms and positions, int32 (4, n)."""
        docs, streams, terms, positions = words
        if not len(docs):
            return
        first, stop = self._n_docs, int(docs[-1]) + 1
        word_ptr = np.searchsorted(docs, np.arange(first, stop + 1)).astype(np.int64)
        sizes = np.diff(word_ptr)
        n_parts = 1 + np.count_nonzero((np.diff(streams) != 0) | (np.diff(docs) != 0))
        room = np.empty((4, int(sizes.max())), np.int32)
        out = page_array(_WORD_BYTES * len(docs) + _HEAD_BYTES * (len(sizes) + int(n_parts)), np.uint8)
        ends = np.empty(len(sizes), np.int64)
        encode_documents(word_ptr, streams, terms, positions, self._local, *room, out, ends)
        self._append(out[: ends[-1]], ends)

    def finish(self, n_docs: int) -> None:
        """The documents after the last one that has words are empty."""
        self._append(np.empty(0, np.uint8), np.zeros(n_docs - self._n_docs, np.int64))

    def _append(self, data: np.ndarray, ends: np.ndarray) -> None:
        self._sink.append("forward.data", data)
        self._sink.append("forward.offsets", self._end + ends)
        self._n_docs += len(ends)
        self._end += len(data)


def merged_streams(segments: Sequence[Segment]) -> list[int]:
    """The streams that the forward index of a merged segment has: those that it has in all segments."""
    streams = sorted({stream for segment in segments for stream in segment.forward_streams})
    return [
        stream
        for stream in streams
        if all(stream >= segment.n_streams or stream in segment.forward_streams for segment in segments)
    ]


def merge_forward(
    segments: Sequence[Segment], live: Sequence[np.ndarray | None], numbers: Sequence[np.ndarray], sink: SegmentSink
) -> None:
    """Append the records of all live documents.

    live : for each segment bool [n_docs], or None where nothing is deleted
    numbers : for each segment the new numbers of its terms, int32, -1 for those that are dropped
    """
    end = 0
    sink.append("forward.offsets", np.zeros(1, np.int64))
    for segment, alive, new_number in zip(segments, live, numbers, strict=True):
        is_live = np.ones(segment.n_docs, np.uint8) if alive is None else alive.astype(np.uint8)
        if not segment.forward_streams:
            # It has none of the merged segment's streams: all its records are empty.
            sink.append("forward.offsets", np.full(int(np.count_nonzero(is_live)), end, np.int64))
            continue
        offsets = segment["forward.offsets"]
        for first, last in _runs(offsets):
            start, stop = int(offsets[first]), int(offsets[last])
            segment.verify_rows("forward.data", start, stop)
            bounds, chosen = offsets[first : last + 1], is_live[first:last]
            ends = np.empty(int(np.count_nonzero(chosen)), np.int64)
            out = page_array(LONGEST_NUMBER * (stop - start), np.uint8)
            terms = np.empty(int(np.diff(bounds).max()), np.int32)
            data = segment.unverified("forward.data")[start:stop]
            wrong = renumber_documents(data, bounds, start, chosen, segment.n_terms, new_number, terms, out, ends)
            if wrong >= 0:
                raise forged(segment, f"the forward index of document {first + int(wrong):,} is wrong")
            sink.append("forward.data", out[: ends[-1] if len(ends) else 0])
            sink.append("forward.offsets", end + ends)
            end += int(ends[-1]) if len(ends) else 0
        segment.release()


def _runs(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Runs of documents [first, last) whose records together are not too long."""
    first, n_docs = 0, len(offsets) - 1
    while first < n_docs:
        last = int(np.searchsorted(offsets, offsets[first] + _BYTES_AT_A_TIME, side="right")) - 1
        last = min(max(last, first + 1), n_docs)
        yield first, last
        first = last
