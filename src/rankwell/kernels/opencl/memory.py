"""The OpenCL device's memory: what it has, and what happens when it is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rankwell.errors import DeviceError


def free_bytes() -> int:
    """Bytes of the device; OpenCL does not tell how many of them are taken."""
    from rankwell.kernels.opencl.program import opencl_devices

    return int(opencl_devices()[0].global_mem_size)


@contextmanager
def out_of_memory_is_a_device_error(task: str) -> Iterator[None]:
    """Raise a `DeviceError` in place of PyOpenCL's MemoryError."""
    import pyopencl

    try:
        yield
    except pyopencl.MemoryError as cause:
        raise DeviceError(
            f"device='opencl' ran out of memory and cannot {task}: {cause}. The device has {free_bytes()} bytes. Use "
            "device='cpu', or fewer documents or features."
        ) from cause
