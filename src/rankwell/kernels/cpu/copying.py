"""Copies on every core: one core cannot fill the memory that a device copies from as fast as the device empties it."""

from __future__ import annotations

from numba import prange

from rankwell.kernels.cpu.compilation import kernel

_BLOCK = 2**15


@kernel(parallel=True)
def copy_converted(source, out):
    """out[i] = source[i], in the type of `out`, which must hold the numbers; both flat and of one length."""
    for block in prange((len(source) + _BLOCK - 1) // _BLOCK):
        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, len(source))):
            out[i] = source[i]
