"""Posting lists of several segments joined into one list each, a block at a time.

Lists are joined in the order of the output: term after term, list after list, segment after segment. Only a window of
each segment's blocks is in memory; the kernel returns when it needs another one, when the output is full, or when the
positions of a block need more room, and continues where it stopped when it is called again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.blocks import load_documents, load_frequencies, position_place, position_width
from rankwell.kernels.postings.encoding import N_BLOCKS, N_IMPACTS, N_POSTING_BYTES, encode_block
from rankwell.kernels.postings.packing import load_at_bit
from rankwell.kernels.postings.rules import BLOCK

# Why the kernel returned.
DONE, NEEDS_BLOCK, OUTPUT_FULL, NEEDS_GAPS = 0, 1, 2, 3

# The state, slots of an int64 array.
TERM, COLUMN, SEGMENT, NEXT_BLOCK = 0, 1, 2, 3  # NEXT_BLOCK: -1 for the first block of the list
N_PENDING, N_GAPS, BASE = 4, 5, 6  # postings and gaps that wait for their block, and the base of its documents
LIST_BLOCKS, LIST_DOCS, LIST_OCCURRENCES = 7, 8, 9  # what the list has so far
STATE_SIZE = 10

# Between two checks of the remaining room, at most this many blocks are written.
BLOCKS_AT_ONCE = 2


class Windows(NamedTuple):
    """Blocks of each segment; block b of segment k is entry place[k] + b - first[k]."""

    first: np.ndarray  # int64 (n_segments,)
    last: np.ndarray  # int64: after the last block of the window
    place: np.ndarray  # int64
    last_doc: np.ndarray  # int32
    data: np.ndarray  # int64: where it starts in `postings`
    widths: np.ndarray  # uint16
    postings: np.ndarray  # uint8


class SourceLists(NamedTuple):
    """The lists of some terms in each segment."""

    term: np.ndarray  # int64 (n_terms, n_segments): the term's number among the segment's terms here, or -1
    column: np.ndarray  # int64 (n_segments, n_columns): the segment's list for a list of the output, or -1
    n_columns: np.ndarray  # int64 (n_segments,): lists per term of the segment
    start: np.ndarray  # int64 (n_segments,): where the segment's lists start in doc_freq
    doc_freq: np.ndarray  # int32
    first_block: np.ndarray  # int32, one more entry per segment: it starts at start[k] + k


class Documents(NamedTuple):
    """The new numbers of the segments' documents."""

    base: np.ndarray  # int64 (n_segments,): the first document's new number, or its place in new_number
    is_mapped: np.ndarray  # uint8 (n_segments,): whether some are deleted
    new_number: np.ndarray  # int32: for segments with deletions, -1 for a deleted document
    lengths: np.ndarray  # int32 (n_docs * n_columns,), of the output


class Pending(NamedTuple):
    """Postings that wait for their block to be full."""

    docs: np.ndarray  # int32 (2 * BLOCK,)
    frequencies: np.ndarray  # int32 (2 * BLOCK,)
    gaps: np.ndarray  # int32


@kernel
def take_block(windows, entry, n_postings, base, segment, documents, has_positions, pending, scratch, state):
    """Add the postings of one block that are not deleted to those that wait.

    scratch : int32 (2, BLOCK): the first row is for the documents, the second one has the frequencies
    """
    docs, frequencies = scratch[0], scratch[1]
    place, widths = windows.data[entry], windows.widths[entry]
    load_documents(windows.postings, place, widths, base, n_postings, docs, 0)
    width, bit = position_width(widths), 8 * position_place(place, widths, n_postings)
    n_pending, n_gaps = state[N_PENDING], state[N_GAPS]
    is_mapped = documents.is_mapped[segment]
    for j in range(n_postings):
        doc = documents.base[segment] + docs[j]
        if is_mapped:
            doc = np.int64(documents.new_number[doc])
        if doc >= 0:
            pending.docs[n_pending] = doc
            pending.frequencies[n_pending] = frequencies[j]
            n_pending += 1
            state[LIST_OCCURRENCES] += frequencies[j]
            if has_positions:
                # Gaps count within a posting, so they stay what they are.
                for i in range(frequencies[j]):
                    pending.gaps[n_gaps] = load_at_bit(windows.postings, bit + i * width, width)
                    n_gaps += 1
        bit += frequencies[j] * width
    state[LIST_DOCS] += n_pending - state[N_PENDING]
    state[N_PENDING], state[N_GAPS] = n_pending, n_gaps


@kernel
def write_block(blocks, pending, has_positions, documents, n_columns, column, state):
    """Encode the first postings that wait, up to a full block, and move the others up."""
    stop = min(state[N_PENDING], BLOCK)
    has_impacts = state[LIST_BLOCKS] > 0 or state[N_PENDING] > BLOCK
    n_gaps = 0
    if has_positions:
        for j in range(stop):
            n_gaps += pending.frequencies[j]
    docs, frequencies, gaps = pending.docs, pending.frequencies, pending.gaps
    encode_block(
        blocks, docs, frequencies, 0, stop, state[BASE], gaps, 0, n_gaps, has_impacts, documents.lengths, n_columns,
        column,
    )  # fmt: skip
    state[BASE] = docs[stop - 1] + 1
    state[LIST_BLOCKS] += 1
    for j in range(stop, state[N_PENDING]):
        docs[j - stop] = docs[j]
        frequencies[j - stop] = frequencies[j]
    for j in range(n_gaps, state[N_GAPS]):
        gaps[j - n_gaps] = gaps[j]
    state[N_PENDING] -= stop
    state[N_GAPS] -= n_gaps


@kernel
def lacks_room(blocks, n_gaps):
    """Whether the output may not hold the next `BLOCKS_AT_ONCE` blocks, with this many gaps."""
    counts = blocks.counts
    return (
        counts[N_BLOCKS] + BLOCKS_AT_ONCE > len(blocks.last_doc)
        or counts[N_IMPACTS] + BLOCKS_AT_ONCE * BLOCK > len(blocks.frequency)
        or counts[N_POSTING_BYTES] + BLOCKS_AT_ONCE * BLOCK * 8 + 4 * n_gaps > len(blocks.postings)
    )


@kernel
def take_list(windows, sources, documents, has_positions, n_columns, pending, scratch, blocks, state):
    """Add one segment's list of the state's term and column; returns why it stopped."""
    term, column, segment = state[TERM], state[COLUMN], state[SEGMENT]
    source = sources.column[segment, column]
    if sources.term[term, segment] < 0 or source < 0:
        return DONE
    number = sources.start[segment] + sources.term[term, segment] * sources.n_columns[segment] + source
    first, stop = np.int64(sources.first_block[number + segment]), np.int64(sources.first_block[number + segment + 1])
    if state[NEXT_BLOCK] < 0:
        state[NEXT_BLOCK] = first
    while state[NEXT_BLOCK] < stop:
        block = state[NEXT_BLOCK]
        # The base of its documents is in the block before it.
        if max(block - 1, first) < windows.first[segment] or block >= windows.last[segment]:
            return NEEDS_BLOCK
        entry = windows.place[segment] + block - windows.first[segment]
        n_postings = min(BLOCK, sources.doc_freq[number] - BLOCK * (block - first))
        load_frequencies(windows.postings, windows.data[entry], windows.widths[entry], n_postings, scratch[1], 0)
        n_gaps = state[N_GAPS]
        if has_positions:
            for j in range(n_postings):
                n_gaps += scratch[1, j]
        if n_gaps > len(pending.gaps):
            return NEEDS_GAPS
        if lacks_room(blocks, n_gaps):
            return OUTPUT_FULL
        base = np.int64(windows.last_doc[entry - 1]) + 1 if block > first else np.int64(0)
        take_block(windows, entry, n_postings, base, segment, documents, has_positions, pending, scratch, state)
        state[NEXT_BLOCK] += 1
        # Not a full block that may be the last one: only lists of several blocks have impacts.
        if state[N_PENDING] > BLOCK:
            write_block(blocks, pending, has_positions, documents, n_columns, column, state)
    state[NEXT_BLOCK] = -1
    return DONE


@kernel
def merge_lists(windows, sources, documents, n_streams, pending, blocks, lists, state):
    """Join the lists of all terms of `sources`; returns why it stopped."""
    n_terms, n_segments = sources.term.shape
    n_columns = sources.column.shape[1]
    scratch = np.empty((2, BLOCK), np.int32)
    while state[TERM] < n_terms:
        while state[COLUMN] < n_columns:
            column = state[COLUMN]
            has_positions = column < n_streams
            while state[SEGMENT] < n_segments:
                reason = take_list(
                    windows, sources, documents, has_positions, n_columns, pending, scratch, blocks, state
                )
                if reason != DONE:
                    return reason
                state[SEGMENT] += 1
            if state[N_PENDING] > 0:
                write_block(blocks, pending, has_positions, documents, n_columns, column, state)
            number = state[TERM] * n_columns + column
            lists.n_blocks[number] = state[LIST_BLOCKS]
            lists.doc_freq[number] = state[LIST_DOCS]
            lists.occurrences[number] = state[LIST_OCCURRENCES]
            state[SEGMENT] = state[BASE] = 0
            state[LIST_BLOCKS] = state[LIST_DOCS] = state[LIST_OCCURRENCES] = 0
            state[COLUMN] += 1
        state[COLUMN] = 0
        state[TERM] += 1
    return DONE


@kernel
def compare_terms(text, offsets, one, other):
    """Negative, 0 or positive: the term at `one` comes before the one at `other`, is the same, or comes after it."""
    length = offsets[one + 1] - offsets[one]
    other_length = offsets[other + 1] - offsets[other]
    for i in range(min(length, other_length)):
        difference = np.int64(text[offsets[one] + i]) - np.int64(text[offsets[other] + i])
        if difference != 0:
            return difference
    return length - other_length


@kernel
def align_terms(text, offsets, window_ptr, has_more, cursors, term_of_segment, source):
    """Merge sorted terms of several segments until a window is exhausted whose segment has more.

    Parameters
    ----------
    text : uint8; offsets : int64; term i of segment k is text[offsets[p] : offsets[p + 1]], p = window_ptr[k] + i
    window_ptr : int64 (n_segments + 1,): offsets of each segment, one more than it has terms here
    has_more : uint8 (n_segments,)
    cursors : int64 (n_segments,), zeros at first: how many terms of each window were taken
    term_of_segment : int64 (room, n_segments): the number of each merged term in each window, or -1
    source : int64 (room,): where in `offsets` each merged term is

    Returns
    -------
    How many merged terms there are.
    """
    n_segments = len(cursors)
    n_terms = 0
    while True:
        least = np.int64(-1)
        for segment in range(n_segments):
            here = window_ptr[segment] + cursors[segment]
            if here == window_ptr[segment + 1] - 1:
                if has_more[segment]:
                    return n_terms
                continue
            if least < 0 or compare_terms(text, offsets, here, least) < 0:
                least = here
        if least < 0:
            return n_terms
        for segment in range(n_segments):
            here = window_ptr[segment] + cursors[segment]
            term_of_segment[n_terms, segment] = -1
            if here < window_ptr[segment + 1] - 1 and compare_terms(text, offsets, here, least) == 0:
                term_of_segment[n_terms, segment] = cursors[segment]
                cursors[segment] += 1
        source[n_terms] = least
        n_terms += 1
