"""Arrays in the host's memory that a device reads by itself, at the full speed of the bus and while kernels run."""

from __future__ import annotations

from typing import Any

import numpy as np


def page_locked_copy(queue: Any, array: np.ndarray) -> np.ndarray:
    """A copy of `array` in memory that the driver allocates, which is how OpenCL has it page-locked.

    It is a mapped buffer that no kernel reads, and it is unmapped and freed with the array that is returned.
    """
    import pyopencl

    flags = pyopencl.mem_flags
    buffer = pyopencl.Buffer(queue.context, flags.READ_WRITE | flags.ALLOC_HOST_PTR, array.nbytes)
    # Its first contents do not matter: a driver that keeps a copy on the device need not fetch them.
    access: Any = pyopencl.map_flags.WRITE_INVALIDATE_REGION
    mapped: np.ndarray
    mapped, _ = pyopencl.enqueue_map_buffer(queue, buffer, access, 0, array.shape, array.dtype)
    mapped[:] = array
    return mapped
