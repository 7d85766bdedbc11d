"""Memory of mapped files, from inside compiled code: see `kernels/disk_arrays.py`."""

from __future__ import annotations

import mmap

import numpy as np
from numba import types

from rankwell.kernels.cpu.lean_compilation import inner_kernel
from rankwell.kernels.disk_arrays import GRAIN

_GIVE_BACK, _READ_AHEAD = getattr(mmap, "MADV_DONTNEED", 4), getattr(mmap, "MADV_WILLNEED", 3)
_GRAIN = np.uint64(GRAIN)

_madvise = types.ExternalFunction("madvise", types.int32(types.uint64, types.uint64, types.int32))


@inner_kernel
def _advise(address, start, end, advice):
    first = np.uint64(start) // _GRAIN * _GRAIN
    last = (np.uint64(end) + _GRAIN - np.uint64(1)) // _GRAIN * _GRAIN
    _madvise(np.uint64(address) + first, last - first, advice)


@inner_kernel
def give_back_bytes(address, start, end):
    """Give back the memory of bytes start, ..., end − 1 of a disk array that begins at `address`."""
    if end > start:
        _advise(address, start, end, _GIVE_BACK)


@inner_kernel
def read_ahead_bytes(address, start, end):
    """Have the bytes start, ..., end − 1 of a disk array that begins at `address` read in the background."""
    if end > start:
        _advise(address, start, end, _READ_AHEAD)
