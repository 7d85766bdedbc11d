"""Packing: the hits of a batch for the device, as one block of bytes (`declarations.py`).

A batch comes in parts: the hits of some of its queries each. What grows with the candidates is copied from every part
straight to its place; what there is for each query, term or word is little, and is joined first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from rankwell.errors import DataError
from rankwell.kernels.extraction.contract import MOST_CUDA_CANDIDATES, MOST_CUDA_HITS
from rankwell.kernels.extraction.declarations import CANDIDATE_ARRAYS, HEADER_BYTES, QUERY_ARRAYS
from rankwell.kernels.extraction.rules import HitArrays, HitQueries

_ALIGNMENT = 16
_QUERIES = attrgetter(*HitQueries._fields)
_OFFSETS = ("query_ptr", "term_ptr", "word_ptr", "cell_base")
# Only `cell_ptr` is copied as other numbers than it has in a part.
_GROWN = CANDIDATE_ARRAYS | {"cell_ptr": np.int64}
_CELL_PTR = list(_GROWN).index("cell_ptr")
# Its first number belongs to no part.
_FIRST_NUMBERS = [int(name == "cell_ptr") for name in _GROWN]


def join_queries(parts: Sequence[HitArrays]) -> HitQueries:
    """The queries of all parts, which are of one collection: one part after another."""
    if len(parts) == 1:
        return HitQueries._make(_QUERIES(parts[0]))
    joined = {"stream_tokens": parts[0].stream_tokens}
    for name in HitQueries._fields[1:]:
        arrays = [getattr(part, name) for part in parts]
        joined[name] = _joined_offsets(arrays) if name in _OFFSETS else np.concatenate(arrays)
    return HitQueries(**joined)


def pack(
    parts: Sequence[HitArrays],
    queries: HitQueries,
    weights: Sequence[np.ndarray],
    room: Callable[[int], np.ndarray],
) -> np.ndarray:
    """The hits of all parts and the weights of their terms as one block.

    Parameters
    ----------
    queries : what `join_queries` made of the parts
    weights : the arrays of `rankwell.kernels.extraction.cpu.features.TermWeights`, float64
    room : callable
        Returns an array of the given number of bytes, uint8, to write to.

    Returns
    -------
    uint8 (n_bytes,), the array from `room`
    """
    from rankwell.kernels.extraction.cpu.packing import N_COLUMNS, PLACE, copy_arrays, note_arrays

    # These keep the arrays in memory until they are copied.
    grown = [[np.ascontiguousarray(getattr(part, name), dtype) for name, dtype in _GROWN.items()] for part in parts]
    table, totals = np.empty((len(parts), len(_GROWN), N_COLUMNS), np.int64), np.zeros(len(_GROWN) + 1, np.int64)
    for rows, arrays in zip(table, grown, strict=True):
        note_arrays(rows, totals, *arrays)
    *sizes, n_hits = totals.tolist()
    n_candidates = int(queries.query_ptr[-1])
    if n_candidates > MOST_CUDA_CANDIDATES or n_hits > MOST_CUDA_HITS:
        raise DataError(
            f"a batch for a CUDA device may have {MOST_CUDA_CANDIDATES} candidates and {MOST_CUDA_HITS} hits, got "
            f"{n_candidates} and {n_hits}: pass fewer queries at a time."
        )
    small = [np.asarray(getattr(queries, name), dtype) for name, dtype in QUERY_ARRAYS.items()]
    n_bytes = [array.nbytes for array in small]
    n_bytes += [4 * (size + first) for size, first in zip(sizes, _FIRST_NUMBERS, strict=True)]
    n_bytes += [array.nbytes for array in weights]
    *starts, end = itertools.accumulate((-(-size // _ALIGNMENT) * _ALIGNMENT for size in n_bytes), initial=HEADER_BYTES)
    packed = room(end)
    of_weights = len(small) + len(_GROWN)
    header = np.array([n_candidates, len(queries.query_ptr) - 1, *starts], np.int64)
    for array, start in zip((header, *small, *weights), (0, *starts[: len(small)], *starts[of_weights:]), strict=True):
        packed[start : start + array.nbytes].view(array.dtype)[:] = array
    numbers, firsts = packed.view(np.uint32), [start // 4 for start in starts[len(small) : of_weights]]
    numbers[firsts[_CELL_PTR]] = 0
    table[:, :, PLACE] += [first + more for first, more in zip(firsts, _FIRST_NUMBERS, strict=True)]
    copy_arrays(table.reshape(-1, N_COLUMNS), sum(sizes), numbers)
    return packed


def _joined_offsets(pointers: Sequence[np.ndarray]) -> np.ndarray:
    """Offsets of all parts, each from where the one before ends."""
    ends = np.array([pointer[-1] for pointer in pointers], np.int64)
    joined = np.concatenate([np.zeros(1, np.int64), *(pointer[1:] for pointer in pointers)])
    joined[1:] += np.repeat(np.cumsum(ends) - ends, [len(pointer) - 1 for pointer in pointers])
    return joined
