"""Words in the order of the documents to a segment's posting lists, on every core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rankwell.errors import DataError
from rankwell.index.commits.pipelining import in_order
from rankwell.index.segments.sink import SegmentSink, page_array
from rankwell.kernels.postings.encoding import (
    COUNTS_SIZE,
    N_BLOCKS,
    N_IMPACTS,
    N_POSTING_BYTES,
    Blocks,
    Lists,
    encode_terms,
)
from rankwell.kernels.postings.inversion import STREAM_SIZE, Tokens, count_occurrences, place_occurrences
from rankwell.kernels.postings.rules import BLOCK, MOST_OCCURRENCES, PADDING, lists_per_term

# How many occurrences are encoded at a time: a few megabytes of buffers.
PIECE = 2**18
# At most this many lists: those of rare terms in many streams are empty, but each still has its counts.
PIECE_LISTS = 2**17
# Blocks and impacts are numbered with 31 bits.
MOST_BLOCKS = 2**31 - 1
# Tokens are sorted in this many parts in parallel; more would take more memory for counts.
PARTS = 2
# Bytes that `invert` takes for each stream of each term, even for rare ones: the counts of the parts, and the starts.
LIST_COST = 8 * (PARTS + 1)


class Inverted(NamedTuple):
    """The occurrences of each term in each stream, and the counts made at the same time."""

    occurrences: np.ndarray  # int64, document << 32 | position, by list
    starts: np.ndarray  # int64 (n_terms * n_streams + 1,)
    lengths: np.ndarray  # int32 (n_docs * lists_per_term,)
    distinct: np.ndarray  # int32 (n_docs * lists_per_term,)
    n_streams: int
    n_terms: int


def invert(
    batches: Sequence[Tokens], term_of_word: np.ndarray, n_terms: int, n_streams: int, n_docs: int, pool: Executor
) -> Inverted:
    """Sort the occurrences of all words by term and stream.

    The parts are runs of batches that hold whole documents: the result does not depend on the parts.
    """
    n_lists = lists_per_term(n_streams)
    lengths, distinct = (page_array(n_docs * n_lists, np.int32) for _ in range(2))
    parts = _parts(batches)
    counts = page_array(PARTS * n_terms * n_streams, np.int64).reshape(PARTS, n_terms * n_streams)

    def count(part: int) -> None:
        last_seen = np.full(n_terms, -1, dtype=np.int64)
        for batch in parts[part]:
            count_occurrences(
                batches[batch], term_of_word, n_streams, counts[part], last_seen, lengths, distinct, n_lists
            )

    list(pool.map(count, range(PARTS)))
    starts = _starts(counts)
    occurrences = page_array(int(starts[-1]), np.int64)

    def place(part: int) -> None:
        stream_state = np.zeros(STREAM_SIZE, dtype=np.int64)
        for batch in parts[part]:
            place_occurrences(batches[batch], term_of_word, n_streams, counts[part], occurrences, stream_state)

    list(pool.map(place, range(PARTS)))
    return Inverted(occurrences, starts, lengths, distinct, n_streams, n_terms)


def _parts(batches: Sequence[Tokens]) -> list[range]:
    """About equally many batches per part; a document that spans several batches is in one part."""
    bounds = [0]
    for part in range(1, PARTS):
        bound = max(bounds[-1], part * len(batches) // PARTS)
        while 0 < bound < len(batches) and batches[bound].doc_of_field[0] == batches[bound - 1].doc_of_field[-1]:
            bound += 1
        bounds.append(bound)
    return [range(start, stop) for start, stop in pairwise([*bounds, len(batches)])]


def _starts(counts: np.ndarray) -> np.ndarray:
    """Where the occurrences of each list start; `counts`, int64 (PARTS, n), becomes where those of each part do.

    No other array of the size of the lists is made: there may be very many.
    """
    n_lists = counts.shape[1]
    starts = page_array(n_lists + 1, np.int64)
    np.sum(counts, axis=0, out=starts[1:])
    np.cumsum(starts, out=starts)
    for first in range(0, n_lists, PIECE):
        piece = counts[:, first : first + PIECE]
        ends = starts[first : first + piece.shape[1]] + np.cumsum(piece, axis=0)
        np.subtract(ends, piece, out=piece)
    return starts


def write_postings(inverted: Inverted, sink: SegmentSink, pool: Executor, n_workers: int) -> None:
    """Encode all lists and append them to the sink."""
    appender = PostingAppender(sink)
    encoded = in_order(lambda terms: encode_piece(inverted, *terms), _pieces(inverted), pool, n_workers)
    for blocks, lists in encoded:
        appender.append_blocks(blocks)
        appender.append_lists(lists)
    appender.finish()


def encode_piece(inverted: Inverted, first: int, last: int) -> tuple[Blocks, Lists]:
    """The lists of terms [first, last), encoded."""
    n_lists = lists_per_term(inverted.n_streams)
    lists = new_lists((last - first) * n_lists)
    bounds = inverted.starts[first * inverted.n_streams : last * inverted.n_streams + 1 : inverted.n_streams]
    largest, total = int(np.diff(bounds).max()), int(bounds[-1] - bounds[0])
    blocks = new_blocks(total if n_lists == 1 else 2 * total, total, len(lists.doc_freq))
    docs, frequencies = (page_array(2 * largest, np.int32) for _ in range(2))
    gaps = page_array(largest, np.int32)
    encode_terms(
        *(inverted.occurrences, inverted.starts, first, last, inverted.n_streams, inverted.lengths, n_lists),
        *(docs, frequencies, gaps, blocks, lists),
    )
    return blocks, lists


class PostingAppender:
    """Appends encoded pieces to a sink, their offsets counted on from the pieces before."""

    def __init__(self, sink: SegmentSink) -> None:
        self.sink = sink
        self._written = np.zeros(COUNTS_SIZE, dtype=np.int64)
        self._first_block = 0
        sink.append("blocks.first_impact", np.zeros(1, dtype=np.int64))

    def append_blocks(self, blocks: Blocks) -> None:
        """Append the blocks that `blocks` holds."""
        counts, before = blocks.counts, self._written
        n_blocks, n_impacts = int(counts[N_BLOCKS]), int(counts[N_IMPACTS])
        append = self.sink.append
        append("blocks.last_doc", blocks.last_doc[:n_blocks])
        append("blocks.data", blocks.data[:n_blocks] + before[N_POSTING_BYTES])
        append("blocks.widths", blocks.widths[:n_blocks])
        append("blocks.first_impact", blocks.impact_end[:n_blocks] + before[N_IMPACTS])
        append("impacts.frequency", blocks.frequency[:n_impacts])
        append("impacts.length", blocks.length[:n_impacts])
        append("postings", blocks.postings[: counts[N_POSTING_BYTES]])
        self._written = before + counts

    def append_lists(self, lists: Lists) -> None:
        """Append the next lists, whose blocks were or will be appended in the same order."""
        ends = self._first_block + np.cumsum(lists.n_blocks)
        self.sink.append("lists.first_block", ends - lists.n_blocks)
        self.sink.append("lists.doc_freq", lists.doc_freq)
        self.sink.append("lists.occurrences", np.minimum(lists.occurrences, MOST_OCCURRENCES))
        self._first_block = int(ends[-1]) if len(ends) else self._first_block

    def finish(self) -> None:
        if max(self._first_block, int(self._written[N_IMPACTS])) > MOST_BLOCKS:
            raise DataError(
                f"a segment has room for {MOST_BLOCKS:,} blocks of postings and as many impacts; this one would have "
                f"{self._first_block:,} and {int(self._written[N_IMPACTS]):,}. Leave the index in several segments."
            )
        self.sink.append("postings", np.zeros(PADDING, dtype=np.uint8))
        self.sink.append("lists.first_block", np.array([self._first_block], dtype=np.int64))


def new_blocks(n_postings: int, n_positions: int, n_lists: int) -> Blocks:
    """Room for the blocks of at most this many postings and positions in this many lists, for any widths."""
    n_blocks = n_postings // BLOCK + n_lists
    return Blocks(
        counts=np.zeros(COUNTS_SIZE, dtype=np.int64),
        last_doc=page_array(n_blocks, np.int32),
        data=page_array(n_blocks, np.int64),
        widths=page_array(n_blocks, np.uint16),
        impact_end=page_array(n_blocks, np.int64),
        frequency=page_array(n_postings, np.int32),
        length=page_array(n_postings, np.int32),
        postings=page_array(8 * n_postings + 4 * n_positions, np.uint8),
    )


def new_lists(n_lists: int) -> Lists:
    return Lists(page_array(n_lists, np.int64), page_array(n_lists, np.int32), page_array(n_lists, np.int64))


def _pieces(inverted: Inverted) -> Iterator[tuple[int, int]]:
    """Runs of terms with at most `PIECE` occurrences and `PIECE_LISTS` lists, or one term that has more."""
    most_terms = max(1, PIECE_LISTS // lists_per_term(inverted.n_streams))
    bounds = inverted.starts[:: inverted.n_streams] if inverted.n_streams else inverted.starts
    first = 0
    while first < inverted.n_terms:
        last = int(np.searchsorted(bounds, bounds[first] + PIECE, side="right")) - 1
        last = min(max(last, first + 1), first + most_terms)
        yield first, last
        first = last
