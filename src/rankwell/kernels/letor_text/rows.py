"""Rows of a flat array moved in place: to a wider or narrower layout, or to close a gap."""

from __future__ import annotations

from rankwell.kernels.cpu.compilation import kernel


@kernel
def spread_rows(source, target, n_rows, width, stride, new_width, new_stride, shift):
    """Move rows to a layout with at least the same stride: column j goes to j + `shift`, columns without one become 0.

    `source` and `target` may be the same array: numbers are moved from the last to the first, and never to an earlier
    place, so none is overwritten before it has moved. A column beyond the new width is dropped.
    """
    n_kept = min(width, new_width - shift)
    for row in range(n_rows - 1, -1, -1):
        old, new = row * stride, row * new_stride
        for column in range(new_width - 1, n_kept + shift - 1, -1):
            target[new + column] = 0
        for column in range(n_kept - 1, -1, -1):
            target[new + shift + column] = source[old + column]
        for column in range(shift):
            target[new + column] = 0


@kernel
def gather_rows(values, start, n_rows, stride, to, width):
    """Move `n_rows` rows of `width` numbers, `stride` apart from row `start` on, to places without gaps from `to` on.

    The first number must not move to a later place: then, moving from first to last, none is overwritten too early.
    """
    for row in range(n_rows):
        old = (start + row) * stride
        for column in range(width):
            values[to + row * width + column] = values[old + column]


@kernel
def gather_spans(text, spans, out):
    """Copy the bytes text[start:end] of each span (int32, shape (n, 2)) end to end into uint8 `out`."""
    place = 0
    for i in range(len(spans)):
        for position in range(spans[i, 0], spans[i, 1]):
            out[place] = text[position]
            place += 1
