"""The posting lists of a query on their way through a segment, a window of documents at a time.

A query reads `n_terms` times `n_columns` lists; list l = term · n_columns + column is followed by its *cursor*, the first
block that reaches into the window. Of each list the block last decoded is kept, documents and parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.posting_blocks import (
    BLOCK,
    block_base,
    block_documents,
    block_size,
    find_in_block,
    frequency_in_block,
    seek_block,
)
from rankwell.kernels.cpu.selection_parts import block_parts, posting_part

WINDOW = 4096
_CHUNK_BITS = np.uint64(6)
CHUNK = 64  # documents of a window that are looked at, or not, together
# A list whose blocks span more documents than this on average is bounded by its postings in a window, not its blocks.
SPARSE = 2048
# From this many candidates in a block on, its documents are decoded; fewer are looked up one by one.
RUN = 3


class ListCursors(NamedTuple):
    """Where the lists of a query are; all but the last have one element or row a list.

    numbers : int64, the list's number in the segment, -1 where the segment has none
    cursor, stop : int64, the first block that reaches into the window, and the block after the list's last
    sparse : bool
    decoded, size : int64, the block that lies decoded in `documents` and `parts` (-1: none), and its postings
    place : int64, the first of them that is not before the window (lists that are `sparse`)
    documents : uint32 (n, 128); parts : float64 (n, 128)
    frequencies : uint32 (128,), scratch
    """

    numbers: np.ndarray
    cursor: np.ndarray
    stop: np.ndarray
    sparse: np.ndarray
    decoded: np.ndarray
    size: np.ndarray
    place: np.ndarray
    documents: np.ndarray
    parts: np.ndarray
    frequencies: np.ndarray


@kernel(forceinline=True)
def open_lists(arrays, numbers, n_docs):
    """Cursors at the beginning of lists; numbers : int64 (n,), the lists' numbers."""
    n = len(numbers)
    cursor, stop, sparse = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for i in range(n):
        if numbers[i] >= 0:
            cursor[i], stop[i] = arrays.first_block[numbers[i]], arrays.first_block[numbers[i] + 1]
            sparse[i] = n_docs > SPARSE * (stop[i] - cursor[i])
    return ListCursors(
        numbers,
        cursor,
        stop,
        sparse,
        np.full(n, -1, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.empty((n, BLOCK), np.uint32),
        np.zeros((n, BLOCK), np.float64),
        np.ones(BLOCK, np.uint32),
    )


@kernel(forceinline=True)
def decode(arrays, norms, fielded, lists, i, block):
    """See that `block` lies decoded for list i; returns how many postings it has."""
    if lists.decoded[i] != block:
        lists.size[i] = block_parts(
            arrays, lists.numbers[i], block, norms, fielded, lists.documents[i], lists.frequencies, lists.parts[i]
        )
        lists.decoded[i] = block
        lists.place[i] = 0
    return lists.size[i]


@kernel(forceinline=True)
def bound_in_window(arrays, norms, bounds, fielded, lists, i, start, stop):
    """Move list i's cursor to the window of documents [start, stop); returns its largest part there at most.

    norms : float64 (n_docs,), of the list's column; bounds : float64 (n_blocks,), each block's largest part
    """
    block, end = lists.cursor[i], lists.stop[i]
    while block < end and arrays.last_doc[block] < start:
        block += 1
    lists.cursor[i] = block
    if block == end or block_base(arrays, lists.numbers[i], block) >= stop:
        return 0.0
    bound = 0.0
    if lists.sparse[i]:
        bound = _bound_of_postings(arrays, norms, fielded, lists, i, start, stop)
        if arrays.last_doc[block] >= stop - 1:
            return bound
        block += 1
    while block < end:
        bound = max(bound, bounds[block])
        if arrays.last_doc[block] >= stop - 1:
            break
        block += 1
    return bound


@kernel(forceinline=True)
def _bound_of_postings(arrays, norms, fielded, lists, i, start, stop):
    """The largest part of the postings in the window of the cursor's block."""
    count = decode(arrays, norms, fielded, lists, i, lists.cursor[i])
    documents, parts = lists.documents[i], lists.parts[i]
    j = lists.place[i]
    while j < count and documents[j] < start:
        j += 1
    lists.place[i] = j
    bound = 0.0
    while j < count and documents[j] < stop:
        bound = max(bound, parts[j])
        j += 1
    return bound


@kernel(forceinline=True)
def add_list(arrays, norms, bounds, fielded, lists, i, start, stop, factor, least, totals, touched):
    """totals[d − start] += factor · part for every posting in the window, except in blocks whose largest part is
    `least` or less; touched[chunk] = 1 for each chunk of documents that was added to.
    """
    block, end = lists.cursor[i], lists.stop[i]
    documents, parts = lists.documents[i], lists.parts[i]
    first = np.uint32(start)
    while block < end and block_base(arrays, lists.numbers[i], block) < stop:
        if bounds[block] > least:
            count = np.uint64(decode(arrays, norms, fielded, lists, i, block))
            # Unsigned, as the documents are: no test for counting from the end.
            low = np.uint64(lists.place[i]) if lists.sparse[i] else np.uint64(0)
            if block_base(arrays, lists.numbers[i], block) >= start and arrays.last_doc[block] < stop:
                for j in range(count):
                    place = documents[j] - first
                    totals[place] += factor * parts[j]
                    touched[place >> _CHUNK_BITS] = 1
            else:
                for j in range(low, count):
                    place = documents[j] - first  # far above WINDOW for a document before the window
                    if place < np.uint64(WINDOW):
                        totals[place] += factor * parts[j]
                        touched[place >> _CHUNK_BITS] = 1
                    elif documents[j] >= stop:
                        break
        block += 1


@kernel(forceinline=True)
def look_up_list(arrays, norms, bounds, fielded, lists, i, start, candidates, n, factor, reached, least, slots, shares):
    """shares[c] += factor · part for each candidate that list i has, unless reached[c] + factor · bound is `least` or
    less, with the bound of the block where it would be.

    candidates : int32, ascending, n of them, in the window that begins at `start`; slots : uint8 (WINDOW,), scratch
    """
    number, end = lists.numbers[i], lists.stop[i]
    block, c = lists.cursor[i], 0
    while c < n:
        block = seek_block(arrays.last_doc, block, end, candidates[c])
        if block == end:
            return
        last, most = arrays.last_doc[block], factor * bounds[block]
        run = c + 1
        while run < n and candidates[run] <= last:
            run += 1
        many = run - c >= RUN
        documents, count = lists.documents[i], block_size(arrays, number, block)
        if many:
            _mark_places(arrays, lists, i, block, count, start, slots)
        for candidate in range(c, run):
            if reached[candidate] + most > least:
                doc = candidates[candidate]
                if many:
                    j = np.int64(slots[doc - start])
                    found = j < count and documents[j] == doc
                else:
                    j = find_in_block(arrays, number, block, doc)
                    found = j >= 0
                if found:
                    frequency = frequency_in_block(arrays, block, count, j)
                    shares[candidate] += factor * posting_part(frequency, norms[doc], fielded)
        c = run


@kernel(forceinline=True)
def _mark_places(arrays, lists, i, block, count, start, slots):
    """slots[d − start] = the place in its block of each posting in the window; other slots keep what they had."""
    documents = lists.documents[i]
    if lists.decoded[i] != block:
        block_documents(arrays, lists.numbers[i], block, documents)
        lists.decoded[i] = -1
    first = np.uint32(start)
    for j in range(count):
        place = documents[j] - first
        if place < np.uint64(WINDOW):
            slots[place] = j
