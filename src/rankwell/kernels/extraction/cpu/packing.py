"""Copies of the arrays of several batches of hits into one block, each to its place, on several threads at once.

Every copy is a row of a table that one task may share with another, and a task runs without the interpreter lock from
its first array to its last: threads that took it for each of some hundreds of arrays would wait for each other.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.threads import run_ranges

# The columns of a row: the address of the first number, how many there are, the number of `out` where they begin, what
# is added to each, and its bytes: 4, which are copied as they are, or 8 of an int64.
ADDRESS, SIZE, PLACE, BASE, WIDTH = range(5)
N_COLUMNS = 5
# Numbers that are worth a thread: they take about a quarter of a millisecond.
_LEAST_NUMBERS = 2**19


def copy_arrays(table: np.ndarray, n_numbers: int, out: np.ndarray) -> None:
    """Copy the arrays of a table, which have so many numbers together, to their places.

    Parameters
    ----------
    table : int64 (n_arrays, N_COLUMNS), see above; the arrays must stay in memory
    out : uint32
    """
    run_ranges(
        lambda first, last: copy_numbers(first, last, table, out),
        n_numbers,
        ranges_per_thread=1,
        least_items=_LEAST_NUMBERS,
    )


@intrinsic
def _number_at(typing_context: Any, address: Any, place: Any) -> Any:
    """Number `place` of the uint32 that begin at an address."""
    return types.uint32(types.int64, types.uint64), partial(_load, ir.IntType(32))


@intrinsic
def _wide_number_at(typing_context: Any, address: Any, place: Any) -> Any:
    """Number `place` of the int64 that begin at an address."""
    return types.int64(types.int64, types.uint64), partial(_load, ir.IntType(64))


def _load(number: ir.IntType, context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
    address, place = arguments
    return builder.load(builder.gep(builder.inttoptr(address, number.as_pointer()), [place]))


@kernel(allocates=False)
def note_arrays(rows, totals, lengths, distinct, statics, cell_ptr, positions):
    """Fill the rows of the arrays of one part that grow with the candidates; each begins where that of the part before
    ends.

    rows : int64 (5, N_COLUMNS), of a table; of `cell_ptr`, which is int64, the first number (0) is left out
    totals : int64 (6,), the sizes of each array in the parts before, and their hits; those of this one are added
    """
    for row in range(5):
        rows[row, BASE], rows[row, WIDTH] = 0, 4
    rows[0, ADDRESS], rows[0, SIZE] = lengths.ctypes.data, len(lengths)
    rows[1, ADDRESS], rows[1, SIZE] = distinct.ctypes.data, len(distinct)
    rows[2, ADDRESS], rows[2, SIZE] = statics.ctypes.data, len(statics)
    rows[3, ADDRESS], rows[3, SIZE] = cell_ptr.ctypes.data + 8, len(cell_ptr) - 1
    rows[3, BASE], rows[3, WIDTH] = totals[5], 8
    rows[4, ADDRESS], rows[4, SIZE] = positions.ctypes.data, len(positions)
    for row in range(5):
        rows[row, PLACE] = totals[row]
        totals[row] += rows[row, SIZE]
    totals[5] += cell_ptr[len(cell_ptr) - 1]


@kernel(allocates=False)
def copy_numbers(first, last, table, out):
    """Copy the numbers first, ..., last − 1 of all arrays of a table, counted one array after another."""
    begin = np.int64(0)
    for row in range(len(table)):
        size = table[row, SIZE]
        start, stop = np.uint64(max(first - begin, 0)), np.uint64(max(min(last - begin, size), 0))
        begin += size
        if start < stop:
            address, base, place = table[row, ADDRESS], table[row, BASE], np.uint64(table[row, PLACE])
            if table[row, WIDTH] == 8:
                for i in range(start, stop):
                    out[place + i] = _wide_number_at(address, i) + base
            else:
                for i in range(start, stop):
                    out[place + i] = _number_at(address, i)
