"""The documents of a leaf by the side of its cut, each side in the order that the documents had.

A document's side is a byte of its line in a slab, of which the rest is fetched in vain, or of a copy of that column
(`column_copies`).
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inner_kernel
from rankwell.kernels.cpu.vectors import prefetch_near
from rankwell.kernels.trees.cpu.histograms import U
from rankwell.kernels.trees.cpu.workspace import SET

# How many documents ahead their bytes are fetched.
_AHEAD = 48


@inner_kernel
def mark_sides(divisor, n_codes, size, has_missing, code, missing_left, goes_left):
    """goes_left[value] = 1 if a document whose column has this value goes left, else 0; int64 (256,) at least."""
    value = 0
    while value < size:
        for own in range(n_codes):
            goes = missing_left if own == 0 and has_missing != 0 else np.int64(own <= code)
            for _ in range(divisor):
                goes_left[value] = goes
                value += 1


@inner_kernel
def mark_set(divisor, n_codes, size, whole, leaf, goes_left):
    """As `mark_sides`, for a cut with a set of codes on the left, whole[SET:, leaf]."""
    value = 0
    while value < size:
        for own in range(n_codes):
            goes = (whole[SET + (own >> 6), leaf] >> (own & 63)) & 1
            for _ in range(divisor):
                goes_left[value] = goes
                value += 1


@inner_kernel
def part_rows(source, stride, offset, goes_left, rows, start, end, spare, in_place):
    """Move the documents of rows[start:end] that go right to spare[start:], in their order; returns how many go left.

    Those are moved to the front of rows[start:end], if `in_place`; else to the end of spare[start:end], backwards.

    source : uint8, where document d has the value of the column at d · stride + offset
    """
    lefts, at, n_right = (rows, U(start), U(start)) if in_place else (spare, U(end) - U(1), U(start))
    ahead = U(end - _AHEAD) if end - start > _AHEAD else U(start)
    for place in range(U(start), U(end)):
        if place < ahead:
            prefetch_near(source, U(rows[place + U(_AHEAD)]) * U(stride))
        row = rows[place]
        left = U(goes_left[source[U(row) * U(stride) + U(offset)]])
        lefts[at] = row
        spare[n_right] = row
        at += left if in_place else -left
        n_right += U(1) - left
    return end - np.int64(n_right)


@inner_kernel
def join_part(part, n_parts, rows, spare, start, end, sides, first_side):
    """After `part_rows` of `n_parts` equal parts of rows[start:end], the first in place: bring one to its place.

    sides : int64, from `first_side` on the number of left documents by part
    """
    n_left, n_before = 0, 0
    for other in range(n_parts):
        n_before += sides[first_side + other] if other < part else 0
        n_left += sides[first_side + other]
    first, last = start + (end - start) * part // n_parts, start + (end - start) * (part + 1) // n_parts
    if part > 0:
        for k in range(U(sides[first_side + part])):
            rows[U(start + n_before) + k] = spare[U(last - 1) - k]
    to = U(first + n_left - n_before)
    for k in range(U(last - first - sides[first_side + part])):
        rows[to + k] = spare[U(first) + k]
