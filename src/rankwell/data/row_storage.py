"""Rows of a size not known beforehand: arrays that grow in length and in width, with little additional memory."""

from __future__ import annotations

import os

import numpy as np

from rankwell.data.comments import RowComments
from rankwell.errors import DataError
from rankwell.kernels.disk_arrays import BLOCK_BYTES, give_back, lengthened, new_disk_array
from rankwell.kernels.letor_text.rows import gather_rows, gather_spans, spread_rows

# Widening moves every row, so the width grows by at least this much at a time.
GROWTH_IN_WIDTH = 1.125


class RowStorage:
    """Features, labels and query ids of rows while they are read.

    A row of features starts at number ``row * stride`` of a flat array and has `width` numbers. Growing moves the
    arrays: nothing else may use them at that time.
    """

    def __init__(self, width: int = 0) -> None:
        self.begin(width)
        self.capacity = 0
        self.features = np.empty(0, dtype=np.float32)
        self.labels = np.empty(0, dtype=np.float64)
        self.qids = np.empty(0, dtype=np.int64)

    def begin(self, width: int) -> None:
        """Make rows `width` numbers wide, while there are none."""
        self.width = self.stride = width

    def reserve(self, n_rows: int, n_used: int) -> None:
        """Make room for `n_rows` rows, of which the first `n_used` are in use."""
        check_memory(n_rows, self.stride)
        self.features = _resized(self.features, n_rows * self.stride, n_used * self.stride)
        self.labels = _resized(self.labels, n_rows, n_used)
        self.qids = _resized(self.qids, n_rows, n_used)
        self.capacity = n_rows

    def widen(self, width: int, n_used: int, *, shift: int = 0) -> None:
        """Make rows `width` numbers wide; existing rows move by `shift` columns and the new columns become 0."""
        stride = self.stride
        if width > stride:
            stride = max(width, int(GROWTH_IN_WIDTH * stride))
            if not fits_memory(self.capacity, stride):
                # Perhaps more rows were expected than were read.
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

    def fits(self, n_rows: int) -> bool:
        """Whether there is room for `n_rows` rows."""
        return fits_memory(n_rows, self.stride)

    def written(self, first_row: int, n_rows: int) -> None:
        """Called when rows are complete, so that a storage on disk can give their memory back."""

    def close_gaps(self, parts: list[tuple[int, int]]) -> int:
        """Move the parts (first row, number of rows) that hold rows together; returns the number of rows."""
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


class DiskRowStorage(RowStorage):
    """Rows whose features are in a temporary file; labels and query ids are in memory.

    Parameters
    ----------
    folder : str, optional
        Where the file is; by default the system's folder for temporary files.
    """

    def __init__(self, width: int = 0, folder: str | None = None) -> None:
        super().__init__(width)
        self.folder = folder
        self.features = new_disk_array((0,), np.float32, folder)

    def reserve(self, n_rows: int, n_used: int) -> None:
        """See `RowStorage`."""
        # A file grows in place; it is never made shorter.
        self.features = lengthened(self.features, max(len(self.features), n_rows * self.stride))
        self.labels = _resized(self.labels, n_rows, n_used)
        self.qids = _resized(self.qids, n_rows, n_used)
        self.capacity = n_rows

    def widen(self, width: int, n_used: int, *, shift: int = 0) -> None:
        """See `RowStorage`. Rows are copied to a new file, a block at a time."""
        stride = self.stride if width <= self.stride else max(width, int(GROWTH_IN_WIDTH * self.stride))
        wide = new_disk_array((self.capacity * stride,), np.float32, self.folder)
        n_kept = min(self.width, width - shift)
        for first, n_rows in self._blocks(n_used if self.width > 0 else 0):
            source = _rows_of(self.features, first, n_rows, self.stride)
            _rows_of(wide, first, n_rows, stride)[:, shift : shift + n_kept] = source[:, :n_kept]
            give_back(self.features)
            give_back(wide)
        self.features, self.width, self.stride = wide, width, stride

    def fits(self, n_rows: int) -> bool:
        """See `RowStorage`: the disk has the last word, when the file grows."""
        return True

    def written(self, first_row: int, n_rows: int) -> None:
        """See `RowStorage`."""
        give_back(self.features, slice(first_row * self.stride, (first_row + n_rows) * self.stride))

    def close_gaps(self, parts: list[tuple[int, int]]) -> int:
        """See `RowStorage`."""
        moved = super().close_gaps(parts)
        give_back(self.features)
        return moved

    def finish(self, n_rows: int) -> np.ndarray:
        """See `RowStorage`."""
        if self.stride > self.width:
            for first, length in self._blocks(n_rows):
                gather_rows(self.features, first, length, self.stride, first * self.width, self.width)
                give_back(self.features)
        for array in (self.labels, self.qids):
            array.resize(n_rows, refcheck=False)
        return self.features[: n_rows * self.width].reshape(n_rows, self.width)

    def _blocks(self, n_rows: int) -> list[tuple[int, int]]:
        """First row and number of rows of each block."""
        step = max(1, BLOCK_BYTES // max(4, 4 * self.stride))
        return [(first, min(step, n_rows - first)) for first in range(0, n_rows, step)]


def _rows_of(features: np.ndarray, first: int, n_rows: int, stride: int) -> np.ndarray:
    return features[first * stride : (first + n_rows) * stride].reshape(n_rows, stride)


class GrowingComments:
    """Row comments that are added a block at a time."""

    def __init__(self) -> None:
        self._buffer = np.empty(0, dtype=np.uint8)
        self._n_bytes = 0
        self._lengths: list[np.ndarray] = []

    def append(self, text: np.ndarray, spans: np.ndarray) -> None:
        """Add the comments of uint8 `text` at `spans` (int32, start and end of each)."""
        lengths = spans[:, 1] - spans[:, 0]
        end = self._n_bytes + int(lengths.sum(dtype=np.int64))
        if end > self._buffer.size:
            self._buffer.resize(max(end, int(1.25 * self._buffer.size)), refcheck=False)
        if end > self._n_bytes:
            gather_spans(text, spans, self._buffer[self._n_bytes : end])
        self._n_bytes = end
        self._lengths.append(lengths)

    def finish(self) -> RowComments | None:
        """All comments, or None if no row has one."""
        if self._n_bytes == 0:
            return None
        self._buffer.resize(self._n_bytes, refcheck=False)
        offsets = np.zeros(sum(map(len, self._lengths)) + 1, dtype=np.int64)
        np.cumsum(np.concatenate(self._lengths), out=offsets[1:])
        return RowComments(self._buffer, offsets)


def fits_memory(n_rows: int, n_features: int) -> bool:
    """Whether this machine can hold this many rows."""
    return _needed_memory(n_rows, n_features) <= available_memory()


def check_memory(n_rows: int, n_features: int) -> None:
    """Refuse rows that this machine cannot hold: allocating them may end the process."""
    if not fits_memory(n_rows, n_features):
        raise DataError(
            f"{n_rows} rows of {n_features} features need {_needed_memory(n_rows, n_features) / 2**30:.1f} GiB as a "
            f"dense array, and {available_memory() / 2**30:.1f} GiB are free."
        )


def _needed_memory(n_rows: int, n_features: int) -> int:
    """Bytes of features in float32, and of a label and a query id per row."""
    return n_rows * (4 * n_features + 16)


def available_memory() -> int:
    """Bytes that can be used without swapping, if the system tells; otherwise all that the machine has."""
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

    To grow a little, the array is resized: the allocator moves pages instead of copying them. NumPy fills the new
    part with zeros, so to grow much, a fresh array is better: its pages take no memory before they are written.
    """
    if length < 2 * array.size:
        array.resize(length, refcheck=False)
        return array
    fresh = np.empty(length, dtype=array.dtype)
    fresh[:n_used] = array[:n_used]
    return fresh
