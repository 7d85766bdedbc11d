"""The documents of a leaf by the side of its cut, each side in the order that the documents had."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inner_kernel
from rankwell.kernels.cpu.vectors import prefetch_near
from rankwell.kernels.trees.cpu.histograms import U
from rankwell.kernels.trees.cpu.workspace import SET
from rankwell.kernels.trees.slabs import MOST_WORDS

_WORDS = U(MOST_WORDS)
_BYTE = U(255)
# How many documents ahead their lines are fetched.
_AHEAD = 48


@inner_kernel
def mark_sides(divisor, n_codes, size, has_missing, code, missing_left, goes_left):
    """goes_left[value] = 1 if a document whose column has this value goes left, else 0; int64 (256,) at least."""
    for value in range(size):
        own = (value // divisor) % n_codes
        if own == 0 and has_missing != 0:
            goes_left[value] = missing_left
        else:
            goes_left[value] = own <= code


@inner_kernel
def mark_set(divisor, n_codes, size, whole, leaf, goes_left):
    """As `mark_sides`, for a cut with a set of codes on the left, whole[SET:, leaf]."""
    for value in range(size):
        own = (value // divisor) % n_codes
        goes_left[value] = (whole[SET + (own >> 6), leaf] >> (own & 63)) & 1


@inner_kernel
def part_rows(slab, word, shift, goes_left, rows, start, end, right):
    """Move the documents of rows[start:end] that go left to the front of it, the others to right[start:]; stable.

    slab : uint64 (n_docs · 8,); word, shift : where in a document's line the column is. Returns how many went left.
    """
    at, n_right = U(start), U(start)
    ahead = U(end - _AHEAD) if end - start > _AHEAD else U(start)
    for place in range(U(start), U(end)):
        if place < ahead:
            prefetch_near(slab, U(rows[place + U(_AHEAD)]) * _WORDS)
        row = rows[place]
        left = U(goes_left[(slab[U(row) * _WORDS + U(word)] >> U(shift)) & _BYTE])
        rows[at] = row
        right[n_right] = row
        at += left
        n_right += U(1) - left
    return np.int64(at) - start


@inner_kernel
def join_parts(rows, right, start, end, sides, first_side, n_parts):
    """After `part_rows` of `n_parts` equal parts of rows[start:end]: all left documents first. Returns their number.

    sides : int64, from `first_side` on the number of left documents by part
    """
    at = start
    for part in range(n_parts):
        first = start + (end - start) * part // n_parts
        if at != first:
            for k in range(sides[first_side + part]):
                rows[at + k] = rows[first + k]
        at += sides[first_side + part]
    total = at - start
    for part in range(n_parts):
        first = start + (end - start) * part // n_parts
        last = start + (end - start) * (part + 1) // n_parts
        n_right = last - first - sides[first_side + part]
        for k in range(n_right):
            rows[at + k] = right[first + k]
        at += n_right
    return total
