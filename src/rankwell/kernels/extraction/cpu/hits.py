"""Hits of given documents from posting lists: each list is read once, forwards, from candidate to candidate.

Two passes over a segment. The first finds each candidate's posting and stores its frequency and where its positions
are; then the cells' places are known (`cell_offsets`), and the second decodes the positions into them.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inlined_kernel, kernel
from rankwell.kernels.postings.blocks import (
    PostingArrays,
    block_documents,
    block_frequencies,
    blocks_of,
    position_place,
    position_width,
    seek_block,
)
from rankwell.kernels.postings.packing import load_at_bit
from rankwell.kernels.postings.rules import BLOCK
from rankwell.kernels.threads import run_ranges

# Lookups of a candidate in a list, and candidates whose positions are decoded, that are worth a thread: they take about
# a fifth of a millisecond.
_LEAST_LOOKUPS = 2**14
_LEAST_DECODED = 2**11
# Cells whose memory a thread keeps, 13 bytes each.
_MOST_KEPT = 2**20
# Cells whose hits are counted at a time, and how many such blocks are worth a thread.
_COUNTED_CELLS = 2**16
_LEAST_BLOCKS = 2


class ListTasks(NamedTuple):
    """Posting lists to look candidates up in, one per (query, term, stream).

    list_number, query, first_cell : int64 (n_tasks,), first_cell is the cell of the query's candidate 0
    cell_step : int64 (n_tasks,), cells from one candidate of the query to the next
    """

    list_number: np.ndarray
    query: np.ndarray
    first_cell: np.ndarray
    cell_step: np.ndarray


class Candidates(NamedTuple):
    """The candidates in one segment, by query, ascending by document.

    query_ptr : int64 (Q + 1,); doc : int32 (n,), numbered in the segment; number : int64 (n,), counted in the query
    """

    query_ptr: np.ndarray
    doc: np.ndarray
    number: np.ndarray


class CellSources(NamedTuple):
    """Where the hits of each cell come from.

    frequency : int32 (cells,), 0 if there is no posting; place : int64 (cells,), the bit of the segment's postings
    where its positions begin; width : uint8 (cells,), bits per position
    """

    frequency: np.ndarray
    place: np.ndarray
    width: np.ndarray


_rooms = threading.local()


def make_cells(n_cells: int) -> CellSources:
    """Cells without hits."""
    return CellSources(np.zeros(n_cells, np.int32), np.empty(n_cells, np.int64), np.empty(n_cells, np.uint8))


def cells_for_now(n_cells: int) -> CellSources:
    """Cells without hits, in memory of this thread that its next call uses again: fresh memory of some megabytes takes
    about as long to get as to fill.
    """
    if n_cells > _MOST_KEPT:
        return make_cells(n_cells)
    room: CellSources | None = getattr(_rooms, "room", None)
    if room is None or len(room.frequency) < n_cells:
        room = _rooms.room = make_cells(min(2 * n_cells, _MOST_KEPT))
    cells = CellSources(*(array[:n_cells] for array in room))
    cells.frequency.fill(0)
    return cells


@inlined_kernel
def _find_in_list(arrays, list_number, docs, numbers, first_cell, cell_step, cells, documents, frequencies):
    """The task of one list: store where the hits of each candidate are; documents, frequencies : uint32 (128,), scratch

    A block's frequencies are decoded if it has a candidate: they say where that one's positions are.
    """
    block, stop = blocks_of(arrays, list_number)
    current, count, reached, before = np.int64(-1), np.int64(0), np.int64(0), np.int64(-1)
    for i in range(len(docs)):
        block = seek_block(arrays.last_doc, block, stop, docs[i])
        if block >= stop:
            return
        if block != current:
            current, reached, before = block, np.int64(0), np.int64(-1)
            count = block_documents(arrays, list_number, block, documents, 0)
        # Without a branch, so that several documents are compared at once. The block's last one is this one or later.
        place, wanted = np.int64(0), np.uint32(docs[i])
        for j in range(np.uint64(count)):
            place += documents[j] < wanted
        if documents[place] != wanted:
            continue
        if before < 0:
            block_frequencies(arrays, block, count, frequencies)
            reached, before = np.int64(0), np.int64(0)
        for j in range(reached, place):
            before += frequencies[j]
        reached = place
        widths, cell = arrays.widths[block], first_cell + numbers[i] * cell_step
        cells.frequency[cell] = frequencies[place]
        cells.width[cell] = position_width(widths)
        cells.place[cell] = 8 * position_place(arrays.data[block], widths, count) + before * position_width(widths)


def find_hits(arrays: PostingArrays, tasks: ListTasks, candidates: Candidates, cells: CellSources) -> None:
    """Store in `cells` where the hits of a segment's candidates are."""
    n_tasks = len(tasks.list_number)
    lookups = int(np.diff(candidates.query_ptr)[tasks.query].sum())
    run_ranges(
        lambda first, last: find_in_lists(first, last, arrays, tasks, candidates, cells),
        n_tasks,
        least_items=-(-n_tasks * _LEAST_LOOKUPS // max(1, lookups)),
    )


@kernel
def find_in_lists(first, last, arrays, tasks, candidates, cells):
    """The tasks first, ..., last − 1 of `find_hits`."""
    documents, frequencies = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
    for number in range(first, last):
        query = tasks.query[number]
        start, stop = candidates.query_ptr[query], candidates.query_ptr[query + 1]
        _find_in_list(
            arrays,
            tasks.list_number[number],
            candidates.doc[start:stop],
            candidates.number[start:stop],
            tasks.first_cell[number],
            tasks.cell_step[number],
            cells,
            documents,
            frequencies,
        )


def cell_offsets(frequency: np.ndarray) -> np.ndarray:
    """Where the hits of each cell begin, and where those of the last one end: int64 (cells + 1,)."""
    n_cells = len(frequency)
    n_blocks = -(-n_cells // _COUNTED_CELLS)
    counts, cell_ptr = np.zeros(n_blocks + 1, np.int64), np.empty(n_cells + 1, np.int64)
    run_ranges(
        lambda first, last: count_blocks(first, last, frequency, counts), n_blocks - 1, least_items=_LEAST_BLOCKS
    )
    before = np.cumsum(counts) - counts
    run_ranges(
        lambda first, last: fill_blocks(first, last, frequency, before, cell_ptr), n_blocks, least_items=_LEAST_BLOCKS
    )
    cell_ptr[0] = 0
    return cell_ptr


@kernel(allocates=False)
def count_blocks(first, last, frequency, counts):
    """The hits in each of the blocks first, ..., last − 1 of cells."""
    for block in range(first, last):
        total = np.int64(0)
        for cell in range(block * _COUNTED_CELLS, min((block + 1) * _COUNTED_CELLS, len(frequency))):
            total += frequency[cell]
        counts[block] = total


@kernel(allocates=False)
def fill_blocks(first, last, frequency, before, cell_ptr):
    """The ends of the cells in some blocks; before : int64, the hits before each block"""
    for block in range(first, last):
        end = before[block]
        for cell in range(block * _COUNTED_CELLS, min((block + 1) * _COUNTED_CELLS, len(frequency))):
            end += frequency[cell]
            cell_ptr[cell + 1] = end


def decode_hits(
    postings: np.ndarray,
    cells: CellSources,
    first_cell: np.ndarray,
    n_cells: np.ndarray,
    cell_ptr: np.ndarray,
    out: np.ndarray,
) -> None:
    """Decode the positions of a segment's candidates to the places in `cell_ptr`.

    postings : a segment's ``postings``; first_cell, n_cells : int64 (candidates of the segment,)
    out : int32 (hits,)
    """
    run_ranges(
        lambda first, last: decode_cells(postings, *cells, first_cell[first:last], n_cells[first:last], cell_ptr, out),
        len(first_cell),
        least_items=_LEAST_DECODED,
    )


@kernel
def decode_cells(postings, frequencies, places, widths, first_cell, n_cells, cell_ptr, out):
    """As `decode_hits`, one candidate after another; frequencies, places, widths : of CellSources"""
    for i in range(len(first_cell)):
        for cell in range(first_cell[i], first_cell[i] + n_cells[i]):
            start, position, width = cell_ptr[cell], np.int64(0), np.int64(widths[cell])
            for hit in range(frequencies[cell]):
                position += load_at_bit(postings, places[cell] + hit * width, width)
                out[start + hit] = position
