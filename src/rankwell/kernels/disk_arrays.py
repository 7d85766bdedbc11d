"""Arrays in temporary files, for data larger than memory: mapped, read by blocks, and given back after each block.

A page of a mapped file that was touched counts as memory of the process until it is given back; its content stays in
the system's page cache, which other programs can take when they need it. So a loop over a mapped array needs the
memory of one block, and the next pass reads from the page cache, or from the disk if that is gone.

The files have no names (they are deleted when they are opened), so that nothing is left over after a crash, and
their room on the disk is reserved when they are made: a full disk is an error then, not in the middle of a loop.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.errors import DataError

# What the kernel maps at once around a page that is touched is at most this long, and begins at a multiple of it.
GRAIN = 2**21
# What is read before memory is given back: long enough that giving it back costs little.
BLOCK_BYTES = 2**22

_GIVE_BACK, _READ_AHEAD = getattr(mmap, "MADV_DONTNEED", None), getattr(mmap, "MADV_WILLNEED", None)


class _TemporaryFile:
    """A file without a name, which is gone when nothing refers to it any more."""

    def __init__(self, folder: str | None) -> None:
        with tempfile.TemporaryFile(prefix="rankwell-", dir=folder) as file:
            self.number = os.dup(file.fileno())

    def __del__(self) -> None:
        if hasattr(self, "number"):
            os.close(self.number)


class _Mapping(mmap.mmap):
    """A mapping of a whole file, whose pages may be given back at any time: they are shared with the file."""

    file: _TemporaryFile | None
    folder: str | None
    address: int


def new_disk_array(shape: tuple[int, ...], dtype: Any, folder: str | None = None) -> np.ndarray:
    """An array of zeros in a temporary file of `folder`, by default the system's folder for such files."""
    try:
        file = _TemporaryFile(folder)
    except OSError as cause:
        raise DataError(
            f"cannot make a temporary file in {folder or tempfile.gettempdir()}: {cause.strerror}."
        ) from cause
    return _mapped(file, folder, shape, dtype)


def mapped_file(path: str, folder: str | None = None) -> np.ndarray:
    """The bytes of a user's file, read-only; what is made beside it goes to temporary files of `folder`."""
    with open(path, "rb") as file:
        mapping = _Mapping(file.fileno(), 0, access=mmap.ACCESS_READ)
    mapping.file, mapping.folder = None, folder
    array = np.frombuffer(mapping, dtype=np.uint8)
    mapping.address = array.__array_interface__["data"][0]
    return array


def part_of(array: np.ndarray, part: np.ndarray) -> np.ndarray:
    """`part`, a view of the memory of `array` that is known by its address only, as a view that says so."""
    first = part.__array_interface__["data"][0] - array.__array_interface__["data"][0]
    return array[first : first + part.nbytes].view(part.dtype).reshape(part.shape)


def lengthened(array: np.ndarray, length: int) -> np.ndarray:
    """The file of a one-dimensional disk array as an array of `length` numbers, at least as many as before."""
    mapping = _mapping_of(array)
    assert mapping is not None
    assert mapping.file is not None
    return _mapped(mapping.file, mapping.folder, (length,), array.dtype)


def zeros_beside(array: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of zeros where `array` is: in memory, or in a temporary file of the same folder."""
    mapping = _mapping_of(array)
    return np.zeros(shape, dtype) if mapping is None else new_disk_array(shape, dtype, mapping.folder)


def is_on_disk(array: Any) -> bool:
    """Whether an array, or what it is a view of, is in a temporary file."""
    return _mapping_of(array) is not None


def give_back(array: Any, rows: slice = slice(None)) -> None:
    """Give back the memory of some rows of a disk array in C order; nothing for an array in memory."""
    _advise(array, rows, _GIVE_BACK)


def row_blocks(array: Any, rows_in_step: int = 1) -> Iterator[slice]:
    """The rows of an array: all at once if it is in memory, otherwise a block at a time.

    The memory of a block is given back after it, and the next one is read ahead.

    rows_in_step : int
        A block has a multiple of this many rows, except the last.
    """
    n_rows = array.shape[0]
    if not is_on_disk(array):
        yield slice(0, n_rows)
        return
    row_bytes = max(1, array.strides[0])
    step = max(1, BLOCK_BYTES // row_bytes // rows_in_step) * rows_in_step
    for start in range(0, n_rows, step):
        _advise(array, slice(start + step, start + 2 * step), _READ_AHEAD)
        rows = slice(start, min(start + step, n_rows))
        yield rows
        give_back(array, rows)


def giving_back(slices: Iterable[slice], *arrays: np.ndarray) -> Iterator[slice]:
    """The slices, of ascending rows; whenever a block of them is done, its memory in `arrays` is given back."""
    mapped = [array for array in arrays if is_on_disk(array)]
    if not mapped:
        yield from slices
        return
    row_bytes = max(array.strides[0] for array in mapped)
    start = end = 0
    for rows in slices:
        yield rows
        end = rows.stop
        if (end - start) * row_bytes >= BLOCK_BYTES:
            for array in mapped:
                give_back(array, slice(start, end))
            start = end
    for array in mapped:
        give_back(array, slice(start, end))


def gather_columns(array: np.ndarray, rows: np.ndarray, columns: slice, memory: np.ndarray | None = None) -> np.ndarray:
    """Some columns of ascending rows of a disk array, in memory; in `memory`, which is overwritten, if it is given."""
    width = array[:1, columns].shape[1]
    memory = np.empty(len(rows) * width, dtype=array.dtype) if memory is None else memory
    gathered = memory[: len(rows) * width].reshape(len(rows), width)
    for block in row_blocks(array):
        first, last = np.searchsorted(rows, (block.start, block.stop))
        gathered[first:last] = array[rows[first:last], columns]
    return gathered


def resident_bytes() -> int:
    """The memory of this process now, 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError):
        return 0


def _mapping_of(array: Any) -> _Mapping | None:
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, _Mapping) else None


def file_number(array: np.ndarray) -> int:
    """The descriptor of the temporary file that a disk array is in."""
    mapping = _mapping_of(array)
    assert mapping is not None
    assert mapping.file is not None
    return mapping.file.number


def _mapped(file: _TemporaryFile, folder: str | None, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    n_numbers = math.prod(shape)
    n_bytes = -(-max(1, n_numbers * np.dtype(dtype).itemsize) // GRAIN) * GRAIN
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.number, 0, n_bytes)
        else:
            os.truncate(file.number, n_bytes)
    except OSError as cause:
        raise _disk_error(cause, folder, n_bytes) from cause
    mapping = _Mapping(file.number, n_bytes)
    mapping.file, mapping.folder = file, folder
    array = np.frombuffer(mapping, dtype=dtype, count=n_numbers)
    mapping.address = array.__array_interface__["data"][0]
    return array.reshape(shape)


def _disk_error(cause: OSError, folder: str | None, n_bytes: int) -> DataError:
    where = folder or tempfile.gettempdir()
    if cause.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DataError(f"cannot write a temporary file in {where}: {cause.strerror}.")
    free = shutil.disk_usage(where).free
    return DataError(
        f"the disk is full: a temporary file in {where} needs {n_bytes / 2**30:.2f} GiB, and {free / 2**30:.2f} GiB "
        "are free. Name a folder with more room (TMPDIR, or the scratch folder of the call), or free some."
    )


def _advise(array: Any, rows: slice, advice: int | None) -> None:
    mapping = _mapping_of(array)
    if mapping is None or advice is None:
        return
    start, stop, _ = rows.indices(array.shape[0])
    if stop <= start:
        return
    first = array.__array_interface__["data"][0] - mapping.address
    begin = (first + start * array.strides[0]) // GRAIN * GRAIN
    end = -(-(first + stop * array.strides[0]) // GRAIN) * GRAIN
    mapping.madvise(advice, begin, min(end, len(mapping)) - begin)
