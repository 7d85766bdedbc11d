"""The per-document data of several segments, joined: ids, lengths, statics, stored fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from rankwell.index.segments.columns import keyword_column
from rankwell.index.segments.keyword_columns import merge_columns, write_columns
from rankwell.index.segments.segment import Segment
from rankwell.index.segments.sink import SegmentSink, page_array
from rankwell.index.segments.stored_fields import StoredFields, decode_stored
from rankwell.index.segments.structure import forged

DOCUMENTS_AT_A_TIME = 2**16
STORED_BYTES_AT_A_TIME = 2**22


class DocumentMerge:
    """New numbers for the live documents of some segments, and their arrays.

    Attributes
    ----------
    n_docs, n_statics, n_keywords : int
    bases : list of int
        The new number of each segment's first live document.
    live : for each segment bool [n_docs], or None where nothing is deleted
    lengths : int32 (n_docs * n_columns,), of the merged documents
    """

    def __init__(self, segments: Sequence[Segment], live: Sequence[np.ndarray | None], n_columns: int) -> None:
        self.segments = segments
        self.live = [None if alive is None or alive.all() else np.asarray(alive, dtype=bool) for alive in live]
        sizes = [
            segment.n_docs if alive is None else int(np.count_nonzero(alive))
            for segment, alive in zip(segments, self.live, strict=True)
        ]
        self.bases = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
        self.n_docs = self.bases.pop()
        self.n_statics = max((segment.n_statics for segment in segments), default=0)
        self.n_keywords = max((segment.n_keywords for segment in segments), default=0)
        self.vector_words = max((segment.vector_words for segment in segments), default=0)
        self.n_columns = n_columns
        self.lengths = self._by_column("documents.lengths")

    def new_numbers(self, number: int) -> np.ndarray:
        """For each document of segment `number` its new number, -1 for a deleted one, int32."""
        alive = self.live[number]
        if alive is None:
            return np.arange(self.bases[number], self.bases[number] + self.segments[number].n_docs, dtype=np.int32)
        numbers = self.bases[number] + np.cumsum(alive) - 1
        return np.where(alive, numbers, -1).astype(np.int32)

    def tokens(self) -> list[int]:
        """The indexed words of each list column."""
        totals: list[int] = self.lengths.reshape(self.n_docs, self.n_columns).sum(axis=0, dtype=np.int64).tolist()
        return totals

    def write(self, sink: SegmentSink) -> None:
        """Append every array of the documents."""
        sink.append("documents.lengths", self.lengths)
        sink.append("documents.distinct", self._by_column("documents.distinct"))
        self._write_ids(sink)
        self._write_hashes(sink)
        for number, start, stop in self._parts():
            sink.append("documents.statics", self._statics(number, start, stop))
            sink.append("documents.vectors", self._vectors(number, start, stop))
        self._write_stored(sink)
        self._write_keywords(sink)
        for segment in self.segments:
            segment.release()

    def _parts(self) -> Iterator[tuple[int, int, int]]:
        """Runs of documents: the segment's number, the first document, and one past the last."""
        for number, segment in enumerate(self.segments):
            for start in range(0, segment.n_docs, DOCUMENTS_AT_A_TIME):
                yield number, start, min(start + DOCUMENTS_AT_A_TIME, segment.n_docs)

    def _alive(self, number: int, start: int, stop: int) -> np.ndarray | slice:
        """An index into rows [start, stop) of a segment's documents that selects the live ones."""
        alive = self.live[number]
        return slice(None) if alive is None else alive[start:stop]

    def _by_column(self, name: str) -> np.ndarray:
        """An array that has a number for each list column of a document, int32 (n_docs * n_columns,).

        Streams that a segment does not have are empty there; the whole document is always the last column.
        """
        merged = page_array(self.n_docs * self.n_columns, np.int32).reshape(self.n_docs, self.n_columns)
        row = 0
        for number, start, stop in self._parts():
            segment = self.segments[number]
            width = segment.lists_per_term
            part = rows(segment, name, start * width, stop * width).reshape(-1, width)
            part = part[self._alive(number, start, stop)]
            merged[row : row + len(part), : segment.n_streams] = part[:, : segment.n_streams]
            merged[row : row + len(part), -1] = part[:, -1]
            row += len(part)
        return merged.ravel()

    def _statics(self, number: int, start: int, stop: int) -> np.ndarray:
        width = self.segments[number].n_statics
        part = rows(self.segments[number], "documents.statics", start * width, stop * width)
        table = np.full((stop - start, self.n_statics), np.nan)
        table[:, :width] = part.reshape(stop - start, width)
        return table[self._alive(number, start, stop)].ravel()

    def _vectors(self, number: int, start: int, stop: int) -> np.ndarray:
        """All segments of an index have the same vectors."""
        width = self.vector_words
        part = rows(self.segments[number], "documents.vectors", start * width, stop * width)
        return part.reshape(stop - start, width)[self._alive(number, start, stop)].ravel()

    def _write_ids(self, sink: SegmentSink) -> None:
        end = 0
        sink.append("documents.ids.offsets", np.zeros(1, dtype=np.int64))
        for number, start, stop in self._parts():
            segment = self.segments[number]
            offsets = rows(segment, "documents.ids.offsets", start, stop + 1)
            text = rows(segment, "documents.ids.text", int(offsets[0]), int(offsets[-1]))
            sizes = np.diff(offsets)
            alive = self.live[number]
            if alive is not None:
                text = text[np.repeat(alive[start:stop], sizes)]
                sizes = sizes[alive[start:stop]]
            ends = end + np.cumsum(sizes)
            sink.append("documents.ids.text", text)
            sink.append("documents.ids.offsets", ends)
            end = int(ends[-1]) if len(ends) else end

    def _write_hashes(self, sink: SegmentSink) -> None:
        """Hashes are spread evenly, so equal ranges of them hold about equally many documents."""
        n_ranges = self.n_docs // DOCUMENTS_AT_A_TIME + 1
        bounds = [np.uint64(number * 2**64 // n_ranges) for number in range(1, n_ranges)]
        hashes = [segment["documents.id_hashes"] for segment in self.segments]
        cuts = [[0, *np.searchsorted(of_segment, bounds).tolist(), len(of_segment)] for of_segment in hashes]
        new_numbers = [self.new_numbers(number) for number in range(len(self.segments))]
        for part in range(n_ranges):
            chosen = [of_segment[cut[part] : cut[part + 1]] for of_segment, cut in zip(hashes, cuts, strict=True)]
            docs = [
                numbers[segment["documents.id_order"][cut[part] : cut[part + 1]]]
                for segment, numbers, cut in zip(self.segments, new_numbers, cuts, strict=True)
            ]
            all_hashes = np.concatenate([np.empty(0, dtype=np.uint64), *chosen])
            all_docs = np.concatenate([np.empty(0, dtype=np.int32), *docs])
            order = np.argsort(all_hashes, kind="stable")
            order = order[all_docs[order] >= 0]
            sink.append("documents.id_hashes", all_hashes[order])
            sink.append("documents.id_order", all_docs[order])

    def _write_keywords(self, sink: SegmentSink) -> None:
        numbers = [self.new_numbers(number) for number in range(len(self.segments))] if self.n_keywords else []
        fields = (
            merge_columns([keyword_column(segment, field) for segment in self.segments], numbers)
            for field in range(self.n_keywords)
        )
        write_columns(fields, sink)

    def _write_stored(self, sink: SegmentSink) -> None:
        stored = StoredFields()
        for segment, alive in zip(self.segments, self.live, strict=True):
            offsets, first_docs = segment["stored.offsets"].tolist(), segment["stored.first_doc"].tolist()
            for (start, stop), (first, last) in zip(pairwise(offsets), pairwise(first_docs), strict=True):
                block = rows(segment, "stored.data", start, stop)
                if alive is None:
                    stored.add_block(block.tobytes(), last - first)
                else:
                    lines = decode_stored(block)
                    if len(lines) != last - first:
                        raise forged(segment, f"the stored fields of documents {first:,} to {last - 1:,} are damaged")
                    for line, is_live in zip(lines, alive[first:last], strict=True):
                        if is_live:
                            stored.add(line)
                if stored.n_bytes > STORED_BYTES_AT_A_TIME:
                    _append_all(sink, stored.take())
                    segment.release()
        _append_all(sink, stored.finish())


def rows(segment: Segment, name: str, start: int, stop: int) -> np.ndarray:
    """Elements [start, stop) of a segment's array, checked."""
    segment.verify_rows(name, start, stop)
    return segment.unverified(name)[start:stop]


def _append_all(sink: SegmentSink, pieces: Iterable[tuple[str, np.ndarray]]) -> None:
    for name, values in pieces:
        sink.append(name, values)
