"""Reads the posting lists of a query in a segment, one window of documents at a time.

A query reads some lists, numbered term by term. Row i of `lists` (int64) holds the position of list i, and the block
last decoded is kept: documents (uint32) and parts (float64), from element 128·i on.

Here and in `windows`, functions take plain arrays, not tuples of them. Of the segment these are `last_doc`, `data`,
`widths` and `postings` (see `PostingArrays`), of the model `norms` and `bounds` (see `ScoringArrays`).
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inlined_kernel, inner_kernel
from rankwell.kernels.postings.blocks import load_documents, load_frequency, seek_block
from rankwell.kernels.postings.packing import find_number
from rankwell.kernels.postings.rules import BLOCK
from rankwell.kernels.selection.parts import block_parts, posting_part

WINDOW = 4096
CHUNK = 64  # documents of a window that are read or skipped together
_CHUNK_BITS = np.uint64(6)
# A list whose blocks span more documents than this on average is bounded by its postings in a window, not its blocks.
SPARSE = 2048

# The fields of a list: its first block and the one after its last, its postings, the first block that reaches into the
# window, whether it is sparse, the block that is decoded (-1: none), how many postings that has, which of them is the
# first that is not before the window (sparse lists), the row of `norms` that the list is scored with, how many blocks
# reach into the window, and the block whose documents are decoded (-1: none), with its parts or without.
FIRST, STOP, POSTINGS, CURSOR, IS_SPARSE, DECODED, SIZE, PLACE, ROW, REACH, HELD = range(11)
FIELDS = 11


@inner_kernel(for_any_constant=True)
def open_list(number, row, first_block, doc_freq, n_docs, lists, i):
    """Set list i to its beginning; number : its number in the segment, -1 for none; row : of `norms`"""
    for one in range(FIELDS):
        lists[i, one] = 0
    lists[i, DECODED], lists[i, HELD], lists[i, ROW] = -1, -1, row
    if number >= 0:
        first, stop = np.int64(first_block[number]), np.int64(first_block[number + 1])
        lists[i, FIRST], lists[i, CURSOR], lists[i, STOP] = first, first, stop
        lists[i, POSTINGS] = doc_freq[number]
        lists[i, IS_SPARSE] = n_docs > SPARSE * (stop - first)


@inlined_kernel
def base_of(last_doc, lists, i, block):
    """The first document that may be in a block."""
    return np.int64(0) if block == lists[i, FIRST] else np.int64(last_doc[block - 1]) + 1


@inlined_kernel
def size_of(lists, i, block):
    """How many postings a block has."""
    return min(BLOCK, lists[i, POSTINGS] - BLOCK * (block - lists[i, FIRST]))


@inner_kernel(for_any_constant=True)
def decode(last_doc, data, widths, postings, norms, column, fielded, lists, documents, parts, frequencies, i, block):
    """Decode `block` of list i if it is not decoded."""
    if lists[i, DECODED] != block:
        lists[i, DECODED], lists[i, SIZE], lists[i, PLACE] = block, size_of(lists, i, block), 0
        lists[i, HELD] = block
        block_parts(
            postings, data[block], widths[block], base_of(last_doc, lists, i, block), lists[i, SIZE], norms, column,
            fielded, documents, frequencies, parts, i * BLOCK,
        )  # fmt: skip


@inlined_kernel
def bound_in_window(
    last_doc, data, widths, postings, norms, bounds, column, fielded, lists, documents, parts, frequencies, i, start,
    stop,
):  # fmt: skip
    """Move list i's cursor to the window of documents [start, stop); returns an upper bound of its parts there."""
    block, end = lists[i, CURSOR], lists[i, STOP]
    while block < end and last_doc[block] < start:
        block += 1
    lists[i, CURSOR], lists[i, REACH] = block, 0
    if block == end or base_of(last_doc, lists, i, block) >= stop:
        return 0.0
    bound, first = 0.0, block
    if lists[i, IS_SPARSE]:
        decode(last_doc, data, widths, postings, norms, column, fielded, lists, documents, parts, frequencies, i, block)
        bound = _bound_of_postings(lists, documents, parts, i, start, stop)
        block += 1
    # A block whose predecessor ends before the window's last document reaches into the window, or is beyond a gap.
    while block < end and (block == first or last_doc[block - 1] < stop - 1):
        bound = max(bound, bounds[block])
        block += 1
    lists[i, REACH] = block - first
    return bound


@inlined_kernel
def _bound_of_postings(lists, documents, parts, i, start, stop):
    """The largest part of the decoded block's postings in the window."""
    j, end = i * BLOCK + lists[i, PLACE], i * BLOCK + lists[i, SIZE]
    while j < end and documents[j] < start:
        j += 1
    lists[i, PLACE] = j - i * BLOCK
    bound = 0.0
    while j < end and documents[j] < stop:
        bound = max(bound, parts[j])
        j += 1
    return bound


@inlined_kernel
def add_list(
    last_doc, data, widths, postings, norms, bounds, column, fielded, lists, documents, parts, frequencies, i, start,
    stop, factor, least, totals, touched,
):  # fmt: skip
    """totals[d − start] += factor · part for every posting in the window, except in blocks whose largest part is
    `least` or less; touched[chunk] = 1 for each chunk of documents that was added to.
    """
    block, end, first = lists[i, CURSOR], lists[i, STOP], np.uint32(start)
    base = base_of(last_doc, lists, i, block)
    while block < end and base < stop:
        last = np.int64(last_doc[block])
        if bounds[block] > least:
            decode(
                last_doc, data, widths, postings, norms, column, fielded, lists, documents, parts, frequencies, i, block
            )
            # Unsigned, like the documents: no check for negative indices is needed.
            low, high = np.uint64(i * BLOCK), np.uint64(i * BLOCK + lists[i, SIZE])
            if base >= start and last < stop:
                for j in range(low, high):
                    place = documents[j] - first
                    totals[place] += factor * parts[j]
                    touched[place >> _CHUNK_BITS] = 1
            else:
                if lists[i, IS_SPARSE]:
                    low += np.uint64(lists[i, PLACE])
                for j in range(low, high):
                    place = documents[j] - first  # far above the window's size if the document is before it
                    if place < np.uint64(stop - start):
                        totals[place] += factor * parts[j]
                        touched[place >> _CHUNK_BITS] = 1
                    elif documents[j] >= stop:
                        break
        base = last + 1
        block += 1


@inlined_kernel
def look_up_list(
    last_doc, data, widths, postings, norms, bounds, column, fielded, lists, documents, i, candidates, n, factor,
    reached, least, shares,
):  # fmt: skip
    """shares[c] += factor · part for each candidate that list i has, unless reached[c] + factor · bound is `least` or
    less, with the bound of the block where it would be.

    candidates : int32, ascending, n of them
    """
    block, c = lists[i, CURSOR], 0
    while c < n:
        block = seek_block(last_doc, block, lists[i, STOP], candidates[c])
        if block == lists[i, STOP]:
            return
        base, size, last = base_of(last_doc, lists, i, block), size_of(lists, i, block), last_doc[block]
        most = factor * bounds[block]
        while c < n and candidates[c] <= last:
            doc = np.int64(candidates[c])
            if doc >= base and reached[c] + most > least:
                if lists[i, HELD] != block:
                    lists[i, HELD], lists[i, DECODED] = block, -1
                    load_documents(postings, data[block], widths[block], base, size, documents, i * BLOCK)
                j = find_number(documents, i * BLOCK, np.uint32(doc))
                # Whether it is there is unpredictable, so this is written without a branch.
                frequency = load_frequency(postings, data[block], widths[block], size, min(j, size - 1))
                shares[c] += np.float64(j < size) * (factor * posting_part(frequency, norms[column, doc], fielded))
            c += 1
