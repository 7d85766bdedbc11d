"""Rows of a size not known beforehand: arrays that grow in length and in width, with little memory beside them."""

from __future__ import annotations

import os

import numpy as np

from rankwell.data.comments import RowComments
from rankwell.errors import DataError
from rankwell.kernels.letor_text.rows import gather_rows, gather_spans, spread_rows

# Widening moves every row, so it happens by at least so much at a time.
GROWTH_IN_WIDTH = 1.125


class RowStorage:
    """Features, labels and query ids of rows that are still coming in.

    A row of features starts at number ``row * stride`` of a flat array and has `width` numbers. Growing moves the
    arrays: nothing else may use them at that time.
    """

    def __init__(self, width: int = 0) -> None:
        self.width = width
        self.stride = width
        self.capacity = 0
        self.features = np.empty(0, dtype=np.float32)
        self.labels = np.empty(0, dtype=np.float64)
        self.qids = np.empty(0, dtype=np.int64)

    def reserve(self, n_rows: int, n_used: int) -> None:
        """Make room for `n_rows` rows, of which the first `n_used` hold something."""
        check_memory(n_rows, self.stride)
        self.features = _resized(self.features, n_rows * self.stride, n_used * self.stride)
        self.labels = _resized(self.labels, n_rows, n_used)
        self.qids = _resized(self.qids, n_rows, n_used)
        self.capacity = n_rows

    def widen(self, width: int, n_used: int, *, shift: int = 0) -> None:
        """Make rows `width` numbers wide; those that are there move by `shift` columns and the new columns become 0."""
        stride = self.stride
        if width > stride:
            stride = max(width, int(GROWTH_IN_WIDTH * stride))
            if not fits_memory(self.capacity, stride):
                # More rows were expected than came, perhaps.
                self.capacity = n_used
            check_memory(self.capacity, stride)
        source = self.features
        n_numbers = self.capacity * stride
        if n_numbers >= 2 * source.size:
            self.features = np.empty(n_numbers, dtype=np.float32)
        else:
            self.features.resize(n_numbers, refcheck=False)
            source = self.features
        if self.width == 0:
            self.features[: n_used * stride] = 0
        else:
            spread_rows(source, self.features, n_used, self.width, self.stride, width, stride, shift)
        self.width, self.stride = width, stride

    def close_gaps(self, parts: list[tuple[int, int]]) -> int:
        """Bring together the parts (first row, number of rows) that hold something; returns how many rows that is."""
        n_rows = 0
        for start, length in parts:
            if start > n_rows:
                gather_rows(self.features, start, length, self.stride, n_rows * self.stride, self.stride)
                gather_rows(self.labels, start, length, 1, n_rows, 1)
                gather_rows(self.qids, start, length, 1, n_rows, 1)
            n_rows += length
        return n_rows

    def finish(self, n_rows: int) -> np.ndarray:
        """The features of the first `n_rows` as float32 (n_rows, width); the arrays are cut to what they hold."""
        if self.stride > self.width:
            gather_rows(self.features, 0, n_rows, self.stride, 0, self.width)
        for array, n_numbers in ((self.features, n_rows * self.width), (self.labels, n_rows), (self.qids, n_rows)):
            array.resize(n_numbers, refcheck=False)
        return self.features.reshape(n_rows, self.width)


class GrowingComments:
    """Row comments that come in a block at a time."""

    def __init__(self) -> None:
        self._buffer = np.empty(0, dtype=np.uint8)
        self._n_bytes = 0
        self._lengths: list[np.ndarray] = []

    def append(self, text: np.ndarray, spans: np.ndarray) -> None:
        """Add the comments that stand in uint8 `text` at `spans` (int32, start and end of each)."""
        lengths = spans[:, 1] - spans[:, 0]
        end = self._n_bytes + int(lengths.sum(dtype=np.int64))
        if end > self._buffer.size:
            self._buffer.resize(max(end, int(1.25 * self._buffer.size)), refcheck=False)
        if end > self._n_bytes:
            gather_spans(text, spans, self._buffer[self._n_bytes : end])
        self._n_bytes = end
        self._lengths.append(lengths)

    def finish(self) -> RowComments | None:
        """All comments, or None where no row has one."""
        if self._n_bytes == 0:
            return None
        self._buffer.resize(self._n_bytes, refcheck=False)
        offsets = np.zeros(sum(map(len, self._lengths)) + 1, dtype=np.int64)
        np.cumsum(np.concatenate(self._lengths), out=offsets[1:])
        return RowComments(self._buffer, offsets)


def fits_memory(n_rows: int, n_features: int) -> bool:
    """Whether this machine can hold so many rows."""
    return _needed_memory(n_rows, n_features) <= available_memory()


def check_memory(n_rows: int, n_features: int) -> None:
    """Refuse rows that this machine cannot hold: asking the system for them may end the process."""
    if not fits_memory(n_rows, n_features):
        raise DataError(
            f"{n_rows} rows of {n_features} features need {_needed_memory(n_rows, n_features) / 2**30:.1f} GiB as a "
            f"dense array, and {available_memory() / 2**30:.1f} GiB are free."
        )


def _needed_memory(n_rows: int, n_features: int) -> int:
    """Bytes of features in float32, and of a label and a query id a row."""
    return n_rows * (4 * n_features + 16)


def available_memory() -> int:
    """Bytes that can be taken without swapping, as far as the system tells; else all that the machine has."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _resized(array: np.ndarray, length: int, n_used: int) -> np.ndarray:
    """`array` with another length, its first `n_used` numbers kept.

    A little more is asked of the allocator, which moves pages instead of copying them. NumPy fills what is new with
    zeros, so for much more a fresh array is better: its pages take no memory before they are written.
    """
    if length < 2 * array.size:
        array.resize(length, refcheck=False)
        return array
    fresh = np.empty(length, dtype=array.dtype)
    fresh[:n_used] = array[:n_used]
    return fresh
