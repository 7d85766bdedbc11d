"""Postings to blocks of bytes; `kernels/postings/reference.py` defines the format."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.packing import put_numbers, put_run, width_of
from rankwell.kernels.postings.rules import BLOCK

# What has been written so far, slots of an int64 array.
N_BLOCKS, N_IMPACTS, N_POSTING_BYTES = 0, 1, 2
COUNTS_SIZE = 3


class Blocks(NamedTuple):
    """Where blocks are written; `counts` says how full the other arrays are."""

    counts: np.ndarray  # int64 (COUNTS_SIZE,)
    last_doc: np.ndarray  # int32
    data: np.ndarray  # int64
    widths: np.ndarray  # uint16
    impact_end: np.ndarray  # int64: after the block's last impact
    frequency: np.ndarray  # int32
    length: np.ndarray  # int32
    postings: np.ndarray  # uint8


class Lists(NamedTuple):
    """What is known about each list."""

    n_blocks: np.ndarray  # int64
    doc_freq: np.ndarray  # int32
    occurrences: np.ndarray  # int64


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
def encode_block(
    blocks, docs, frequencies, start, stop, base, gaps, gap_start, gap_stop, has_impacts, lengths, n_lists, column
):
    """Append one block.

    Parameters
    ----------
    docs, frequencies : int32; the block's postings are [start, stop), at most BLOCK
    base : the first document that the block may have
    gaps : int32: [gap_start, gap_stop) are the differences of the positions
    has_impacts : bool, whether the list has other blocks
    lengths : int32 (n_docs * n_lists,); `column` is the one that impacts use
    """
    counts = blocks.counts
    number, count = counts[N_BLOCKS], stop - start
    if has_impacts:
        counts[N_IMPACTS] = find_impacts(blocks, docs, frequencies, start, stop, lengths, n_lists, column)
    run = np.empty(BLOCK, np.int32)
    for j in range(count):
        run[j] = docs[start + j] - base
        base = docs[start + j] + 1
    document_width, place = width_of(run, 0, count), counts[N_POSTING_BYTES]
    blocks.data[number] = place
    place = put_run(run, 0, count, document_width, blocks.postings, place)
    for j in range(count):
        run[j] = frequencies[start + j] - 1
    frequency_width = width_of(run, 0, count)
    place = put_run(run, 0, count, frequency_width, blocks.postings, place)
    n_gaps = gap_stop - gap_start
    position_width = width_of(gaps, gap_start, n_gaps)
    counts[N_POSTING_BYTES] = put_numbers(gaps, gap_start, n_gaps, position_width, blocks.postings, place)
    blocks.last_doc[number] = docs[stop - 1]
    blocks.widths[number] = document_width | frequency_width << 5 | position_width << 10
    blocks.impact_end[number] = counts[N_IMPACTS]
    counts[N_BLOCKS] = number + 1


@kernel
def find_impacts(blocks, docs, frequencies, start, stop, lengths, n_lists, column):
    """Append the frontier of (frequency, length) of the postings [start, stop); returns how many impacts there are."""
    first_impact = n_impacts = blocks.counts[N_IMPACTS]
    for i in range(start, stop):
        length = lengths[np.int64(docs[i]) * n_lists + column]
        # Most pairs are dominated by the first one, and a call takes longer than this check.
        if (
            n_impacts == first_impact
            or frequencies[i] > blocks.frequency[first_impact]
            or length < blocks.length[first_impact]
        ):
            n_impacts = add_impact(blocks.frequency, blocks.length, first_impact, n_impacts, frequencies[i], length)
    return n_impacts


@kernel(for_any_constant=True)
def encode_list(blocks, docs, frequencies, start, stop, gaps, gap_start, lengths, n_lists, column, has_positions):
    """Append all blocks of a list, postings [start, stop), gaps from `gap_start`; returns how many blocks."""
    base = 0
    n_blocks = 0
    has_impacts = stop - start > BLOCK
    while start < stop:
        block_stop = min(start + BLOCK, stop)
        gap_stop = gap_start
        if has_positions:
            for i in range(start, block_stop):
                gap_stop += frequencies[i]
        encode_block(
            blocks, docs, frequencies, start, block_stop, base, gaps, gap_start, gap_stop, has_impacts, lengths,
            n_lists, column,
        )  # fmt: skip
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
