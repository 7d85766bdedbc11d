"""Memory that is reused between calls and grown if needed, on the device and page-locked on the host."""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import numpy as np

_GENERATIONS = count()


class Buffers:
    """Arrays by name.

    An array's address stays the same until a larger one of that name is requested. `generation` then changes, and no
    two objects ever have the same one: launches recorded with it (`graph.py`) are valid as long as it does not change.
    """

    def __init__(self) -> None:
        self.generation = next(_GENERATIONS)
        self._on_device: dict[str, Any] = {}
        self._pinned: dict[str, np.ndarray] = {}

    def device(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """A CuPy array with its previous content, zeros at first."""
        import cupy

        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if name not in self._on_device or self._on_device[name].size < n_bytes:
            self._on_device[name] = cupy.zeros(n_bytes, dtype=np.uint8)
            self.generation = next(_GENERATIONS)
        return self._on_device[name][:n_bytes].view(dtype).reshape(shape)

    def pinned(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """A NumPy array in page-locked memory: copies to and from the device are faster and asynchronous."""
        import cupyx

        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if name not in self._pinned or self._pinned[name].size < n_bytes:
            self._pinned[name] = cupyx.zeros_pinned(n_bytes, dtype=np.uint8)
            self.generation = next(_GENERATIONS)
        return self._pinned[name][:n_bytes].view(dtype).reshape(shape)


def copy_to_host(on_device: Any, pinned: np.ndarray) -> None:
    """Launch the copy of a CuPy array to page-locked memory on the current stream, without waiting."""
    import cupy

    runtime, stream = cupy.cuda.runtime, cupy.cuda.get_current_stream()
    runtime.memcpyAsync(
        pinned.ctypes.data, on_device.data.ptr, on_device.nbytes, runtime.memcpyDeviceToHost, stream.ptr
    )
