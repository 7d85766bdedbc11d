"""Memory that is kept from call to call and grown where needed, on the device and page-locked on the host."""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import numpy as np

_GENERATIONS = count()


class Buffers:
    """Arrays by name.

    An array's address stays the same until one of that name is asked for that is larger. `generation` is another number
    after that, and no two objects ever have the same one: launches recorded under it (`graph.py`) are good as long as
    it lasts.
    """

    def __init__(self) -> None:
        self.generation = next(_GENERATIONS)
        self._on_device: dict[str, Any] = {}
        self._pinned: dict[str, np.ndarray] = {}

    def device(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """A CuPy array; what it holds is what was left there, zeros at first."""
        import cupy

        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if name not in self._on_device or self._on_device[name].size < n_bytes:
            self._on_device[name] = cupy.zeros(n_bytes, dtype=np.uint8)
            self.generation = next(_GENERATIONS)
        return self._on_device[name][:n_bytes].view(dtype).reshape(shape)

    def pinned(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """A NumPy array in page-locked memory: copies to and from the device are faster and need not be waited for."""
        import cupyx

        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if name not in self._pinned or self._pinned[name].size < n_bytes:
            self._pinned[name] = cupyx.zeros_pinned(n_bytes, dtype=np.uint8)
            self.generation = next(_GENERATIONS)
        return self._pinned[name][:n_bytes].view(dtype).reshape(shape)


def copy_to_host(on_device: Any, pinned: np.ndarray) -> None:
    """Launch the copy of a CuPy array to page-locked memory on the current stream; nothing waits."""
    import cupy

    runtime, stream = cupy.cuda.runtime, cupy.cuda.get_current_stream()
    runtime.memcpyAsync(
        pinned.ctypes.data, on_device.data.ptr, on_device.nbytes, runtime.memcpyDeviceToHost, stream.ptr
    )
