"""Hits of given documents from posting lists: each list is read once, forwards, from candidate to candidate.

Two passes over a segment. The first finds each candidate's posting and stores its frequency and where its positions
are; then the cells' places are known, and the second decodes the positions into them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inlined_kernel, kernel
from rankwell.kernels.postings.blocks import (
    PostingArrays,
    block_base,
    block_size,
    load_value,
    seek_block,
)
from rankwell.kernels.threads import run_ranges

# Lookups of a candidate in a list, and candidates whose positions are decoded, that are worth a thread: they take about
# a fifth of a millisecond.
_LEAST_LOOKUPS = 2**14
_LEAST_DECODED = 2**11


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

    frequency : int32 (cells,), 0 if there is no posting; place : int64 (cells,), the byte in the segment's positions
    width : uint8 (cells,), the code of the bytes per value
    """

    frequency: np.ndarray
    place: np.ndarray
    width: np.ndarray


@inlined_kernel
def _sum_of_frequencies(postings, place, code, start, stop):
    """The frequencies of postings start:stop of a block, added up."""
    total = np.int64(stop - start)
    if code == 0:
        for j in range(place + start, place + stop):
            total += postings[j]
    else:
        for j in range(start, stop):
            total += load_value(postings, place, code, j)
    return total


@inlined_kernel
def _first_not_below(postings, place, code, low, high, wanted):
    """The first place in low:high of an ascending run whose value is `wanted` or more; high - 1 must be one."""
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        if load_value(postings, place, code, middle) < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inlined_kernel
def _find_in_list(arrays, position_starts, list_number, docs, numbers, first_cell, cell_step, cells):
    """The task of one list: store where the hits of each candidate are."""
    block, stop = arrays.first_block[list_number], arrays.first_block[list_number + 1]
    current, count, base, reached, before = np.int64(-1), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(len(docs)):
        block = seek_block(arrays.last_doc, block, stop, docs[i])
        if block >= stop:
            return
        if block != current:
            current, reached, before = block, np.int64(0), np.int64(0)
            count, base = block_size(arrays, list_number, block), block_base(arrays, list_number, block)
        wanted, widths = docs[i] - base, arrays.widths[block]
        if wanted < 0:
            continue
        place = arrays.data[block]
        frequencies = place + (count << (widths & 3))
        found = _first_not_below(arrays.postings, place, widths & 3, reached, count, wanted)
        before += _sum_of_frequencies(arrays.postings, frequencies, widths >> 2 & 3, reached, found)
        reached = found
        if load_value(arrays.postings, place, widths & 3, found) == wanted:
            cell = first_cell + numbers[i] * cell_step
            cells.frequency[cell] = load_value(arrays.postings, frequencies, widths >> 2 & 3, found) + 1
            cells.width[cell] = widths >> 4 & 3
            cells.place[cell] = position_starts[block] + (before << (widths >> 4 & 3))


def find_hits(
    arrays: PostingArrays, position_starts: np.ndarray, tasks: ListTasks, candidates: Candidates, cells: CellSources
) -> None:
    """Store in `cells` where the hits of a segment's candidates are; position_starts : its ``blocks.positions``"""
    n_tasks = len(tasks.list_number)
    lookups = int(np.diff(candidates.query_ptr)[tasks.query].sum())
    run_ranges(
        lambda first, last: find_in_lists(first, last, arrays, position_starts, tasks, candidates, cells),
        n_tasks,
        least_items=-(-n_tasks * _LEAST_LOOKUPS // max(1, lookups)),
    )


@kernel
def find_in_lists(first, last, arrays, position_starts, tasks, candidates, cells):
    """The tasks first, ..., last − 1 of `find_hits`."""
    for number in range(first, last):
        query = tasks.query[number]
        start, stop = candidates.query_ptr[query], candidates.query_ptr[query + 1]
        _find_in_list(
            arrays,
            position_starts,
            tasks.list_number[number],
            candidates.doc[start:stop],
            candidates.number[start:stop],
            tasks.first_cell[number],
            tasks.cell_step[number],
            cells,
        )


def decode_hits(
    positions: np.ndarray,
    cells: CellSources,
    first_cell: np.ndarray,
    n_cells: np.ndarray,
    cell_ptr: np.ndarray,
    out: np.ndarray,
) -> None:
    """Decode the positions of a segment's candidates to the places in `cell_ptr`.

    positions : a segment's ``positions``; first_cell, n_cells : int64 (candidates of the segment,)
    out : int32 (hits,)
    """
    run_ranges(
        lambda first, last: decode_cells(positions, *cells, first_cell[first:last], n_cells[first:last], cell_ptr, out),
        len(first_cell),
        least_items=_LEAST_DECODED,
    )


@kernel
def decode_cells(positions, frequencies, places, widths, first_cell, n_cells, cell_ptr, out):
    """As `decode_hits`, one candidate after another; frequencies, places, widths : of CellSources"""
    for i in range(len(first_cell)):
        for cell in range(first_cell[i], first_cell[i] + n_cells[i]):
            start, position = cell_ptr[cell], 0
            for hit in range(frequencies[cell]):
                position += np.int64(load_value(positions, places[cell], widths[cell], hit))
                out[start + hit] = position
