"""A segment with its documents in another order.

Lists are decoded, sorted and encoded again a few at a time, so memory does not grow with the text: it is a few
megabytes, the occurrences of the most frequent term, and for each document its lengths (4 bytes per list), its id and
its new number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankwell.errors import DataError
from rankwell.index.segments.columns import keyword_column
from rankwell.index.segments.document_ids import encode_ids
from rankwell.index.segments.encoding import PIECE, PIECE_LISTS, Inverted, PostingAppender, encode_piece
from rankwell.index.segments.keyword_columns import KeywordColumn, column_of, write_columns
from rankwell.index.segments.posting_arrays import posting_arrays
from rankwell.index.segments.segment import ARRAYS, Segment
from rankwell.index.segments.sink import SegmentSink, page_array
from rankwell.index.segments.stored_fields import StoredFields, decode_stored
from rankwell.kernels.postings.rules import MOST_OCCURRENCES

# Decoded stored fields that are kept while their documents are sought in the new order.
_STORED_BYTES = 2**27
_STORED_BYTES_AT_A_TIME = 2**22
_RECORDS_AT_A_TIME = 2**13


def reorder_segment(segment: Segment, order: np.ndarray, sink: SegmentSink) -> dict[str, Any]:
    """Write a segment of the same documents, the i-th of them document order[i], and return its meta data.

    segment : one that this process wrote, or that was checked; order : int64 (n_docs,), a permutation
    """
    for name, dtype in ARRAYS.items():
        sink.append(name, np.empty(0, dtype=dtype))
    n_docs = segment.n_docs
    by_column = {
        name: segment[name].reshape(n_docs, -1)[order].ravel() if n_docs else segment[name]
        for name in ("documents.lengths", "documents.distinct", "documents.statics", "documents.vectors")
    }
    for name, values in by_column.items():
        sink.append(name, values)
    for name, values in encode_ids([segment.id_of(doc).encode() for doc in order.tolist()]).items():
        sink.append(name, values)
    _write_stored(segment, order, sink)
    write_columns((_reordered_column(segment, field, order) for field in range(segment.n_keywords)), sink)
    if segment.forward_streams:
        _write_forward(segment, order, sink)
    for name in ("terms.text", "terms.offsets"):
        sink.append(name, segment[name])
    _write_lists(segment, order, by_column["documents.lengths"], by_column["documents.distinct"], sink)
    sink.finish(segment.meta)
    return segment.meta


def _write_lists(
    segment: Segment, order: np.ndarray, lengths: np.ndarray, distinct: np.ndarray, sink: SegmentSink
) -> None:
    from rankwell.kernels.postings.reordering import place_lists

    new_number = np.empty(segment.n_docs, np.int32)
    new_number[order] = np.arange(segment.n_docs, dtype=np.int32)
    n_streams, width = segment.n_streams, segment.lists_per_term
    counts = segment["lists.occurrences"].reshape(segment.n_terms, width)[:, :n_streams]
    if counts.max(initial=0) == MOST_OCCURRENCES:
        raise DataError(
            f"{segment.name} cannot be sorted: a term has {MOST_OCCURRENCES:,} occurrences or more. Build the index "
            f"without a static order."
        )
    arrays = posting_arrays(segment)
    for name in ("lists.first_block", "lists.doc_freq", "blocks.last_doc", "blocks.data", "blocks.widths", "postings"):
        _ = segment[name]
    appender = PostingAppender(sink)
    for first, last in _pieces(counts.sum(axis=1), width):
        numbers = (np.arange(first, last)[:, None] * width + np.arange(n_streams)).ravel().astype(np.int64)
        starts = np.concatenate(([0], np.cumsum(counts[first:last].ravel(), dtype=np.int64)))
        occurrences = page_array(int(starts[-1]), np.int64)
        place_lists(arrays, numbers, new_number, starts, occurrences)
        piece = Inverted(occurrences, starts, lengths, distinct, n_streams, last - first)
        blocks, lists = encode_piece(piece, 0, last - first)
        appender.append_blocks(blocks)
        appender.append_lists(lists)
        segment.release()
    appender.finish()


def _pieces(occurrences: np.ndarray, width: int) -> Iterator[tuple[int, int]]:
    """Runs of terms with at most `PIECE` occurrences and `PIECE_LISTS` lists, or one term that has more."""
    ends = np.cumsum(occurrences)
    most_terms, first = max(1, PIECE_LISTS // width), 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + PIECE, side="right"))
        last = min(max(last, first + 1), first + most_terms)
        yield first, last
        first = last


def _write_stored(segment: Segment, order: np.ndarray, sink: SegmentSink) -> None:
    stored, lines = StoredFields(), _StoredLines(segment)
    for doc in order.tolist():
        stored.add(lines.of(doc))
        if stored.n_bytes > _STORED_BYTES_AT_A_TIME:
            for name, values in stored.take():
                sink.append(name, values)
    for name, values in stored.finish():
        sink.append(name, values)


class _StoredLines:
    """Stored fields in any order; the blocks decoded last are kept.

    Documents that are sought come from a few runs that each ascend (those of the segments that were merged), or the
    whole segment is small enough to be kept.
    """

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._first_docs, self._offsets = segment["stored.first_doc"], segment["stored.offsets"]
        self._blocks: OrderedDict[int, list[bytes]] = OrderedDict()
        self._n_bytes = 0

    def of(self, doc: int) -> bytes:
        """The line of JSON of a document."""
        block = int(np.searchsorted(self._first_docs, doc, side="right")) - 1
        lines = self._blocks.get(block)
        if lines is None:
            start, stop = self._offsets[block : block + 2].tolist()
            self._segment.verify_rows("stored.data", start, stop)
            lines = self._blocks[block] = decode_stored(self._segment.unverified("stored.data")[start:stop])
            self._n_bytes += sum(map(len, lines))
            while self._n_bytes > _STORED_BYTES and len(self._blocks) > 1:
                self._n_bytes -= sum(map(len, self._blocks.popitem(last=False)[1]))
        else:
            self._blocks.move_to_end(block)
        return lines[doc - int(self._first_docs[block])]


def _reordered_column(segment: Segment, field: int, order: np.ndarray) -> KeywordColumn:
    column = keyword_column(segment, field)
    assert column is not None
    starts = np.arange(segment.n_docs + 1) if column.entry_ptr is None else column.entry_ptr
    sizes = np.diff(starts)[order]
    entries = column.entries[_ranges(starts[:-1][order], sizes)]
    docs = np.repeat(np.arange(segment.n_docs), sizes)
    return column_of(column.values, docs[entries >= 0], entries[entries >= 0], segment.n_docs)


def _write_forward(segment: Segment, order: np.ndarray, sink: SegmentSink) -> None:
    data, offsets = segment["forward.data"], segment["forward.offsets"]
    sizes = np.diff(offsets)[order]
    for start in range(0, len(order), _RECORDS_AT_A_TIME):
        part = slice(start, start + _RECORDS_AT_A_TIME)
        sink.append("forward.data", data[_ranges(offsets[:-1][order[part]], sizes[part])])
        segment.release()
    sink.append("forward.offsets", np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))))


def _ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The numbers of the ranges [start, start + size), one after another."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - sizes), sizes)
