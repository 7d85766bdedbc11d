"""Payloads of streams: numbers of any width beside each other, as rows of bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def packed(fields: Sequence[tuple[np.ndarray, int]]) -> np.ndarray:
    """Rows of bytes, uint8 (n, bytes), from fields with their bits, lowest first.

    A field is an integer array (n,) or (n, k): k numbers, the first lowest; of negative numbers the lowest bits.
    """
    columns = []
    for values, bits in fields:
        numbers = np.asarray(values, dtype=np.int64).reshape(len(values), -1)
        each = (numbers[:, :, None] >> np.arange(bits)) & 1
        columns.append(each.reshape(len(values), numbers.shape[1] * bits).astype(np.uint8))
    return np.packbits(np.concatenate(columns, axis=1), axis=1, bitorder="little")


def unpacked_numbers(rows: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The first `count` signed numbers of each row, int64 (n, count), lowest first; at most 63 bits each."""
    flat = np.unpackbits(rows, axis=1, bitorder="little", count=bits * count).reshape(len(rows), count, bits)
    place = np.int64(1) << np.arange(bits, dtype=np.int64)
    place[-1] = -place[-1]
    return flat.astype(np.int64) @ place


def unpacked_fields(rows: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    """The unsigned numbers of each row, int64 (n, len(widths)), lowest first."""
    flat = np.unpackbits(rows, axis=1, bitorder="little", count=sum(widths)).astype(np.int64)
    ends = np.cumsum(widths)
    columns = [
        flat[:, end - width : end] @ (np.int64(1) << np.arange(width, dtype=np.int64))
        for end, width in zip(ends, widths, strict=True)
    ]
    return np.stack(columns, axis=1)
