"""The terms and posting lists of several segments, joined through windows of fixed size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rankwell.index.commits.pipelining import one_ahead
from rankwell.index.merging.document_merging import DocumentMerge, rows
from rankwell.index.segments.encoding import PostingAppender, new_blocks, new_lists
from rankwell.index.segments.segment import Segment
from rankwell.index.segments.sink import SegmentSink, page_array
from rankwell.kernels.postings.encoding import N_BLOCKS, Blocks, Lists
from rankwell.kernels.postings.merging import (
    DONE,
    NEEDS_BLOCK,
    NEEDS_GAPS,
    NEXT_BLOCK,
    SEGMENT,
    STATE_SIZE,
    Documents,
    Pending,
    SourceLists,
    Windows,
    align_terms,
    merge_lists,
)
from rankwell.kernels.postings.rules import BLOCK, PADDING, lists_per_term

TERMS_AT_A_TIME = 4096
# Fewer terms if there are many streams, with a list for each.
LISTS_AT_A_TIME = 2**17
WINDOW_BLOCKS = 512
# Room for a window at first; it grows if a block has more positions.
WINDOW_BYTES = WINDOW_BLOCKS * BLOCK * 16
OUTPUT_POSTINGS = 2**18
# Mapped files count as memory of this process once they are read: it is released after this many windows.
WINDOWS_BEFORE_RELEASE = 32


class MergedTerms(NamedTuple):
    """A group of terms of the output."""

    text: np.ndarray  # uint8, one term after another
    sizes: np.ndarray  # int64
    lists: Lists


class ListMerge:
    """Joins the lists of some segments, term by term.

    Parameters
    ----------
    documents : DocumentMerge
        The documents' new numbers and lengths.
    n_streams : int
        Of the output.
    """

    def __init__(self, segments: Sequence[Segment], documents: DocumentMerge, n_streams: int) -> None:
        self.segments = segments
        self.n_streams = n_streams
        self.n_columns = lists_per_term(n_streams)
        self._documents = _documents_of(documents)
        self._windows = BlockWindows(segments)
        self._pending = _pending(16 * BLOCK)
        self._position_room = OUTPUT_POSTINGS
        self._blocks = new_blocks(OUTPUT_POSTINGS, self._position_room, 0)
        self._columns = np.array([self._columns_of(segment) for segment in segments], dtype=np.int64)
        self._numbers: list[np.ndarray] | None = None

    def number_terms(self) -> list[np.ndarray]:
        """For each segment the new numbers of its terms, int32, -1 for those that are dropped; `write` fills them."""
        self._numbers = [page_array(segment.n_terms, np.int32) for segment in self.segments]
        return self._numbers

    def write(self, sink: SegmentSink) -> int:
        """Append all terms and lists to the sink; returns how many terms there are.

        The next lists are joined while these are written.
        """
        appender = PostingAppender(sink)
        sink.append("terms.offsets", np.zeros(1, dtype=np.int64))
        n_terms = end = 0
        for piece in one_ahead(self._pieces()):
            if isinstance(piece, Blocks):
                appender.append_blocks(piece)
            else:
                ends = end + np.cumsum(piece.sizes)
                sink.append("terms.text", piece.text)
                sink.append("terms.offsets", ends)
                appender.append_lists(piece.lists)
                n_terms += len(ends)
                end = int(ends[-1]) if len(ends) else end
        appender.finish()
        return n_terms

    def _pieces(self) -> Iterator[Blocks | MergedTerms]:
        """Yield blocks as they become full, and groups of terms as they are done."""
        n_terms = 0
        for text, offsets, sources in self._term_groups():
            lists = new_lists(len(sources.term) * self.n_columns)
            yield from self._merge(sources, lists)
            # A term whose documents are all deleted is dropped: its lists are empty and have no block.
            kept = np.asarray(lists.doc_freq.reshape(-1, self.n_columns).any(axis=1))
            sizes = np.diff(offsets)
            if self._numbers is not None:
                self._number(sources.term, kept, n_terms)
            n_terms += int(np.count_nonzero(kept))
            kept_lists = Lists(*(column.reshape(-1, self.n_columns)[kept].ravel() for column in lists))
            yield MergedTerms(text[np.repeat(kept, sizes)], sizes[kept], kept_lists)
        yield self._blocks

    def _number(self, terms: np.ndarray, kept: np.ndarray, first: int) -> None:
        """Number the terms of a group that are kept from `first` on; terms as `SourceLists` has them."""
        new = np.where(kept, first - 1 + np.cumsum(kept), -1)
        for column, (start, numbers) in enumerate(zip(self._group_starts, self._numbers or (), strict=True)):
            here = terms[:, column] >= 0
            numbers[start + terms[here, column]] = new[here]

    def _merge(self, sources: SourceLists, lists: Lists) -> Iterator[Blocks]:
        """Join the lists of one group of terms."""
        state = np.zeros(STATE_SIZE, dtype=np.int64)
        state[NEXT_BLOCK] = -1
        while True:
            windows = self._windows.windows
            reason = merge_lists(
                *(windows, sources, self._documents, self.n_streams, self._pending, self._blocks, lists, state)
            )
            if reason == DONE:
                return
            if reason == NEEDS_BLOCK:
                self._windows.load(int(state[SEGMENT]), int(state[NEXT_BLOCK]))
            elif reason == NEEDS_GAPS:
                self._pending = _more_gaps(self._pending)
            else:
                yield self._blocks
                # Nothing has been encoded if one block needs more room for its positions than there is.
                is_empty = self._blocks.counts[N_BLOCKS] == 0
                self._position_room *= 2 if is_empty else 1
                self._blocks = new_blocks(OUTPUT_POSTINGS, self._position_room, 0)

    def _term_groups(self) -> Iterator[tuple[np.ndarray, np.ndarray, SourceLists]]:
        """Runs of terms in their order: text, offsets and where each segment has their lists."""
        most_terms = max(1, min(TERMS_AT_A_TIME, LISTS_AT_A_TIME // self.n_columns))
        starts = [0] * len(self.segments)
        while any(start < segment.n_terms for start, segment in zip(starts, self.segments, strict=True)):
            stops = [
                min(start + most_terms, segment.n_terms) for start, segment in zip(starts, self.segments, strict=True)
            ]
            text, offsets, sources = self._align(starts, stops)
            self._group_starts = starts
            starts = [start + int(taken) for start, taken in zip(starts, self._cursors, strict=True)]
            yield text, offsets, sources

    def _align(self, starts: list[int], stops: list[int]) -> tuple[np.ndarray, np.ndarray, SourceLists]:
        """Merge the terms [start, stop) of each segment as far as that is possible without the following ones."""
        texts, offsets, window_ptr, n_bytes = [], [], [0], 0
        for segment, start, stop in zip(self.segments, starts, stops, strict=True):
            of_segment = rows(segment, "terms.offsets", start, stop + 1)
            texts.append(rows(segment, "terms.text", int(of_segment[0]), int(of_segment[-1])))
            offsets.append(of_segment - of_segment[0] + n_bytes)
            n_bytes += len(texts[-1])
            window_ptr.append(window_ptr[-1] + len(of_segment))
        text, all_offsets = np.concatenate(texts), np.concatenate(offsets)
        has_more = np.array([stop < one.n_terms for stop, one in zip(stops, self.segments, strict=True)], np.uint8)
        room = sum(stops) - sum(starts)
        terms, source = np.empty((room, len(starts)), dtype=np.int64), np.empty(room, dtype=np.int64)
        self._cursors = np.zeros(len(starts), dtype=np.int64)
        n_terms = align_terms(
            *(text, all_offsets, np.array(window_ptr, dtype=np.int64), has_more, self._cursors, terms, source)
        )
        source = source[:n_terms]
        merged_text, merged_offsets = _gather(text, all_offsets[source], all_offsets[source + 1])
        return merged_text, merged_offsets, self._source_lists(terms[:n_terms], starts)

    def _source_lists(self, terms: np.ndarray, starts: list[int]) -> SourceLists:
        doc_freq, first_block, list_starts, n_lists = [], [], [], 0
        for segment, start, taken in zip(self.segments, starts, self._cursors.tolist(), strict=True):
            first, last = start * segment.lists_per_term, (start + taken) * segment.lists_per_term
            doc_freq.append(rows(segment, "lists.doc_freq", first, last))
            first_block.append(rows(segment, "lists.first_block", first, last + 1))
            list_starts.append(n_lists)
            n_lists += last - first
        return SourceLists(
            term=terms,
            column=self._columns,
            n_columns=np.array([segment.lists_per_term for segment in self.segments], dtype=np.int64),
            start=np.array(list_starts, dtype=np.int64),
            doc_freq=np.concatenate(doc_freq),
            first_block=np.concatenate(first_block),
        )

    def _columns_of(self, segment: Segment) -> list[int]:
        """The segment's list for each list of the output, -1 for streams it does not have."""
        columns = [stream if stream < segment.n_streams else -1 for stream in range(self.n_columns)]
        columns[-1] = segment.lists_per_term - 1
        return columns


class BlockWindows:
    """A run of blocks of each segment, in memory."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = segments
        self._n_loaded = 0
        self._allocate(WINDOW_BYTES)

    def load(self, number: int, block: int) -> None:
        """Make the window of segment `number` hold `block`, the one before it, and some after it."""
        segment = self.segments[number]
        n_blocks = len(segment.unverified("blocks.last_doc"))
        first = max(block - 1, 0)
        last = min(first + WINDOW_BLOCKS, n_blocks)
        starts = _starts(segment, first, last)
        needed = int(starts[block + 1 - first] - starts[0])
        if needed > self._room:
            self._allocate(2 * needed)
        last = first + int(np.searchsorted(starts, starts[0] + self._room, side="right")) - 1
        n_loaded = last - first
        windows, place = self.windows, number * WINDOW_BLOCKS
        target = slice(place, place + n_loaded)
        windows.first[number], windows.last[number] = first, last
        windows.last_doc[target] = rows(segment, "blocks.last_doc", first, last)
        windows.widths[target] = rows(segment, "blocks.widths", first, last)
        begin, end, room = int(starts[0]), int(starts[n_loaded]), number * self._room
        windows.data[target] = starts[:n_loaded] - begin + room
        windows.postings[room : room + end - begin] = rows(segment, "postings", begin, end)
        self._n_loaded += 1
        if self._n_loaded % WINDOWS_BEFORE_RELEASE == 0:
            for one in self.segments:
                one.release()

    def _allocate(self, room: int) -> None:
        """Empty windows, with this many bytes for the blocks of each segment."""
        self._room = room
        n_segments = len(self.segments)
        n_blocks = n_segments * WINDOW_BLOCKS
        self.windows = Windows(
            first=np.zeros(n_segments, dtype=np.int64),
            last=np.zeros(n_segments, dtype=np.int64),
            place=np.arange(n_segments, dtype=np.int64) * WINDOW_BLOCKS,
            last_doc=page_array(n_blocks, np.int32),
            data=page_array(n_blocks, np.int64),
            widths=page_array(n_blocks, np.uint16),
            postings=page_array(n_segments * room + PADDING, np.uint8),
        )


def _documents_of(merge: DocumentMerge) -> Documents:
    bases, new_numbers, n_mapped = list(merge.bases), [np.empty(0, dtype=np.int32)], 0
    for number, alive in enumerate(merge.live):
        if alive is not None:
            bases[number] = n_mapped
            new_numbers.append(merge.new_numbers(number))
            n_mapped += len(new_numbers[-1])
    return Documents(
        base=np.array(bases, dtype=np.int64),
        is_mapped=np.array([alive is not None for alive in merge.live], dtype=np.uint8),
        new_number=np.concatenate(new_numbers),
        lengths=merge.lengths,
    )


def _pending(n_gaps: int) -> Pending:
    return Pending(
        np.empty(2 * BLOCK, dtype=np.int32), np.empty(2 * BLOCK, dtype=np.int32), np.empty(n_gaps, dtype=np.int32)
    )


def _more_gaps(pending: Pending) -> Pending:
    larger = page_array(2 * len(pending.gaps), np.int32)
    larger[: len(pending.gaps)] = pending.gaps
    return pending._replace(gaps=larger)


def _starts(segment: Segment, first: int, last: int) -> np.ndarray:
    """Where blocks [first, last) start in the postings, and where the last one ends, int64."""
    if last < len(segment.unverified("blocks.data")):
        return rows(segment, "blocks.data", first, last + 1)
    return np.append(rows(segment, "blocks.data", first, last), len(segment.unverified("postings")) - PADDING)


def _gather(text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The strings text[starts[i] : stops[i]] one after another, and their offsets."""
    sizes = stops - starts
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
    return text[places], offsets
