"""Postings to blocks of bytes; `kernels/postings/reference.py` defines the format."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.rules import BLOCK

# What has been written so far, slots of an int64 array.
N_BLOCKS, N_IMPACTS, N_POSTING_BYTES, N_POSITION_BYTES = 0, 1, 2, 3
COUNTS_SIZE = 4


class Blocks(NamedTuple):
    """Where blocks are written; `counts` says how full the other arrays are."""

    counts: np.ndarray  # int64 (COUNTS_SIZE,)
    last_doc: np.ndarray  # int32
    data: np.ndarray  # int64
    positions_start: np.ndarray  # int64
    widths: np.ndarray  # uint8
    impact_end: np.ndarray  # int64: after the block's last impact
    frequency: np.ndarray  # int32
    length: np.ndarray  # int32
    postings: np.ndarray  # uint8
    positions: np.ndarray  # uint8


class Lists(NamedTuple):
    """What is known about each list."""

    n_blocks: np.ndarray  # int64
    doc_freq: np.ndarray  # int32
    occurrences: np.ndarray  # int64


@kernel(for_any_constant=True)
def width_code(largest):
    """0, 1 or 2: values up to `largest` fit in 1, 2 or 4 bytes."""
    return 0 if largest < 256 else 1 if largest < 65536 else 2


@kernel(for_any_constant=True)
def put_values(values, start, stop, subtracted, code, target, place):
    """Write values[start:stop] - subtracted with the width of `code`; returns the place after them."""
    if code == 0:
        for i in range(start, stop):
            target[place] = values[i] - subtracted
            place += 1
    elif code == 1:
        for i in range(start, stop):
            value = values[i] - subtracted
            target[place] = value & 255
            target[place + 1] = value >> 8
            place += 2
    else:
        for i in range(start, stop):
            value = values[i] - subtracted
            target[place] = value & 255
            target[place + 1] = value >> 8 & 255
            target[place + 2] = value >> 16 & 255
            target[place + 3] = value >> 24 & 255
            place += 4
    return place


@kernel
def add_impact(frequencies, lengths, start, stop, frequency, length):
    """Add a pair to the frontier frequencies, lengths [start:stop], both ascending; returns its new end."""
    place = start
    while place < stop and frequencies[place] < frequency:
        place += 1
    # The first pair with at least this frequency has the least length of all such pairs.
    if place < stop and lengths[place] <= length:
        return stop
    first = place
    while first > start and lengths[first - 1] >= length:
        first -= 1
    behind = place + 1 if place < stop and frequencies[place] == frequency else place
    # [first, behind) is dominated and replaced by the pair.
    moved = first + 1 - behind
    if moved > 0:
        for i in range(stop - 1, behind - 1, -1):
            frequencies[i + 1] = frequencies[i]
            lengths[i + 1] = lengths[i]
    elif moved < 0:
        for i in range(behind, stop):
            frequencies[i + moved] = frequencies[i]
            lengths[i + moved] = lengths[i]
    frequencies[first] = frequency
    lengths[first] = length
    return stop + moved


@kernel(for_any_constant=True)
def encode_block(blocks, docs, frequencies, start, stop, base, gaps, gap_start, gap_stop, lengths, n_lists, column):
    """Append one block.

    Parameters
    ----------
    docs, frequencies : int32; the block's postings are [start, stop), at most BLOCK
    base : documents are written less this
    gaps : int32: [gap_start, gap_stop) are the differences of the positions
    lengths : int32 (n_docs * n_lists,); `column` is the one that impacts use
    """
    counts = blocks.counts
    number, n_impacts = counts[N_BLOCKS], counts[N_IMPACTS]
    largest_frequency = 0
    first_impact = n_impacts
    for i in range(start, stop):
        largest_frequency = max(largest_frequency, frequencies[i])
        length = lengths[np.int64(docs[i]) * n_lists + column]
        # Most pairs are dominated by the first one, and a call takes longer than this check.
        if (
            n_impacts == first_impact
            or frequencies[i] > blocks.frequency[first_impact]
            or length < blocks.length[first_impact]
        ):
            n_impacts = add_impact(blocks.frequency, blocks.length, first_impact, n_impacts, frequencies[i], length)
    largest_gap = 0
    for i in range(gap_start, gap_stop):
        largest_gap = max(largest_gap, gaps[i])
    codes = width_code(docs[stop - 1] - base), width_code(largest_frequency - 1), width_code(largest_gap)
    blocks.last_doc[number] = docs[stop - 1]
    blocks.data[number] = counts[N_POSTING_BYTES]
    blocks.positions_start[number] = counts[N_POSITION_BYTES]
    blocks.widths[number] = codes[0] | codes[1] << 2 | codes[2] << 4
    blocks.impact_end[number] = n_impacts
    place = put_values(docs, start, stop, base, codes[0], blocks.postings, counts[N_POSTING_BYTES])
    counts[N_POSTING_BYTES] = put_values(frequencies, start, stop, 1, codes[1], blocks.postings, place)
    counts[N_POSITION_BYTES] = put_values(
        gaps, gap_start, gap_stop, 0, codes[2], blocks.positions, counts[N_POSITION_BYTES]
    )
    counts[N_BLOCKS] = number + 1
    counts[N_IMPACTS] = n_impacts


@kernel(for_any_constant=True)
def encode_list(blocks, docs, frequencies, start, stop, gaps, gap_start, lengths, n_lists, column, has_positions):
    """Append all blocks of a list, postings [start, stop), gaps from `gap_start`; returns how many blocks."""
    base = 0
    n_blocks = 0
    while start < stop:
        block_stop = min(start + BLOCK, stop)
        gap_stop = gap_start
        if has_positions:
            for i in range(start, block_stop):
                gap_stop += frequencies[i]
        encode_block(
            blocks, docs, frequencies, start, block_stop, base, gaps, gap_start, gap_stop, lengths, n_lists, column
        )
        base = docs[block_stop - 1] + 1
        start = block_stop
        gap_start = gap_stop
        n_blocks += 1
    return n_blocks


@kernel(for_any_constant=True)
def group_occurrences(occurrences, start, stop, docs, frequencies, n_postings, gaps):
    """Postings of sorted occurrences [start, stop): appended after `n_postings`; returns their new number.

    gaps : int32, at least stop - start: the differences of the positions
    """
    doc_before = np.int64(-1)
    position_before = 0
    for i in range(start, stop):
        doc, position = occurrences[i] >> 32, occurrences[i] & 0xFFFFFFFF
        if doc != doc_before:
            docs[n_postings] = doc
            frequencies[n_postings] = 0
            n_postings += 1
            doc_before = doc
            position_before = 0
        frequencies[n_postings - 1] += 1
        gaps[i - start] = position - position_before
        position_before = position
    return n_postings


@kernel(for_any_constant=True)
def join_streams(docs, frequencies, heads, ends, n_streams, place):
    """The postings of the whole document from those of its streams, written from `place`; returns their end.

    heads, ends : int64 (n_streams,): the streams' postings in docs and frequencies; heads are advanced
    """
    while True:
        doc = np.int64(2**31)
        for stream in range(n_streams):
            if heads[stream] < ends[stream]:
                doc = min(doc, np.int64(docs[heads[stream]]))
        if doc == 2**31:
            return place
        frequency = 0
        for stream in range(n_streams):
            if heads[stream] < ends[stream] and docs[heads[stream]] == doc:
                frequency += frequencies[heads[stream]]
                heads[stream] += 1
        docs[place] = doc
        frequencies[place] = frequency
        place += 1


@kernel
def encode_terms(
    occurrences, starts, first_term, last_term, n_streams, lengths, n_lists, docs, frequencies, gaps, blocks, lists
):
    """Encode the lists of terms [first_term, last_term).

    Parameters
    ----------
    occurrences : int64, sorted by term, stream, document and position
    starts : int64 (n_terms * n_streams + 1,)
    docs, frequencies : int32, room for twice the occurrences of the largest term; gaps : int32, room for them once
    lists : one entry for each list of these terms
    """
    heads, ends = np.empty(n_streams, np.int64), np.empty(n_streams, np.int64)
    number = 0
    for term in range(first_term, last_term):
        n_postings = 0
        for stream in range(n_streams):
            start, stop = starts[term * n_streams + stream], starts[term * n_streams + stream + 1]
            heads[stream] = n_postings
            n_postings = group_occurrences(occurrences, start, stop, docs, frequencies, n_postings, gaps)
            ends[stream] = n_postings
            lists.n_blocks[number] = encode_list(
                blocks, docs, frequencies, heads[stream], n_postings, gaps, 0, lengths, n_lists, stream, True
            )
            lists.doc_freq[number] = n_postings - heads[stream]
            lists.occurrences[number] = stop - start
            number += 1
        if n_streams > 1:
            end = join_streams(docs, frequencies, heads, ends, n_streams, n_postings)
            lists.n_blocks[number] = encode_list(
                blocks, docs, frequencies, n_postings, end, gaps, 0, lengths, n_lists, n_streams, False
            )
            lists.doc_freq[number] = end - n_postings
            lists.occurrences[number] = starts[(term + 1) * n_streams] - starts[term * n_streams]
            number += 1
