"""Large arrays in pages of their own, which go back to the system as soon as they are freed.

NumPy's memory comes from malloc, which keeps what was freed for later and, once large arrays come and go, does so with
arrays of many megabytes: a build of many segments then grows from one to the next.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

# Smaller arrays are malloc's business.
LEAST_BYTES = 2**16


def page_array(size: int, dtype: Any) -> np.ndarray:
    """An array (size,) of zeros."""
    n_bytes = size * np.dtype(dtype).itemsize
    if n_bytes < LEAST_BYTES:
        return np.zeros(size, dtype=dtype)
    return np.frombuffer(mmap.mmap(-1, n_bytes), dtype=dtype, count=size)
