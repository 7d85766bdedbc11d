"""The CUDA device's memory: what is free, and what happens when it is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rankwell.errors import DeviceError


def free_bytes() -> int:
    """Bytes that can be had now: the device's own, and those that CuPy keeps and nobody uses."""
    import cupy

    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(free) + int(cupy.get_default_memory_pool().free_bytes())


@contextmanager
def out_of_memory_is_a_device_error(task: str) -> Iterator[None]:
    """Raise a `DeviceError` in place of CuPy's OutOfMemoryError."""
    import cupy

    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as cause:
        raise DeviceError(
            f"device='cuda' ran out of memory and cannot {task}: {cause} {free_bytes()} bytes are free. Use "
            "device='cpu', or fewer documents or features."
        ) from cause
