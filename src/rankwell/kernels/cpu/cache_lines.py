"""Arrays that begin with a cache line.

NumPy's begin anywhere, mostly 16 bytes after the beginning of a line: then every vector of 64 bytes is in two lines,
and what two threads write to neighbouring rows is in the same one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LINE_BYTES = 64


def zeros_in_lines(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """`np.zeros`, from the beginning of a cache line on."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(n_bytes + LINE_BYTES, np.uint8)
    skip = -memory.ctypes.data % LINE_BYTES
    return memory[skip : skip + n_bytes].view(dtype).reshape(shape)
