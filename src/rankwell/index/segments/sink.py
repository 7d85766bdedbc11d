"""Where a segment's arrays are written: piece by piece, in any interleaving of names."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from rankwell.index.segments.segment import ARRAYS, Segment


class SegmentSink(Protocol):
    """Takes the arrays of one segment; `finish` comes last and once."""

    def append(self, name: str, values: np.ndarray) -> None:
        """Add `values` to the end of the array `name` (of `rankwell.index.segments.segment.ARRAYS`)."""

    def finish(self, meta: Mapping[str, Any]) -> None:
        """Every array is whole; `meta` says how many documents, terms, streams, statics and tokens there are."""


class MemorySink:
    """Collects a segment in memory."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[np.ndarray]] = {name: [] for name in ARRAYS}
        self._meta: Mapping[str, Any] | None = None

    def append(self, name: str, values: np.ndarray) -> None:
        # A copy: the builder may use its buffer again.
        self._pieces[name].append(np.array(values, dtype=ARRAYS[name]))

    def finish(self, meta: Mapping[str, Any]) -> None:
        self._meta = meta

    def segment(self) -> Segment:
        """What was collected."""
        if self._meta is None:
            raise RuntimeError("finish() has not been called on this sink.")
        arrays = {name: np.concatenate(pieces) for name, pieces in self._pieces.items() if pieces}
        return Segment.in_memory(arrays, self._meta)


# Smaller arrays are left to malloc.
_LEAST_PAGE_BYTES = 2**16


def page_array(size: int, dtype: Any) -> np.ndarray:
    """An array (size,) of zeros; a large one has its own pages, which are returned to the system when it is freed.

    NumPy allocates with malloc, which keeps freed memory for later, even arrays of many megabytes once large arrays
    come and go: a build of many segments would grow from one to the next.
    """
    n_bytes = size * np.dtype(dtype).itemsize
    if n_bytes < _LEAST_PAGE_BYTES:
        return np.zeros(size, dtype=dtype)
    return np.frombuffer(mmap.mmap(-1, n_bytes), dtype=dtype, count=size)
