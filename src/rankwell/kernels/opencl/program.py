"""OpenCL C sources, compiled at run time for a device; nothing is imported or compiled before that."""

from __future__ import annotations

from functools import cache
from typing import Any

from rankwell.kernels.source_text import source_text


def opencl_devices() -> list[Any]:
    """The devices of all platforms, GPUs first: kernels run on the first one."""
    import pyopencl

    devices = [device for platform in pyopencl.get_platforms() for device in platform.get_devices()]
    return sorted(devices, key=lambda device: not device.type & pyopencl.device_type.GPU)


@cache
def opencl_context() -> Any:
    """A `pyopencl.Context` on the first device."""
    import pyopencl

    return pyopencl.Context([opencl_devices()[0]])


def compiler_complaint() -> str | None:
    """What the first device's compiler says of a kernel that does nothing; None if it compiles it.

    PoCL finds a processor that is newer than itself, but does not compile for it.
    """
    import pyopencl

    try:
        pyopencl.Program(opencl_context(), "__kernel void nothing(__global int *out) { *out = 0; }").build()
    except pyopencl.Error as cause:
        lines = [line.strip() for line in str(cause).splitlines()]
        return next((line for line in lines if line.startswith("error:")), lines[0] if lines else repr(cause))
    return None


@cache
def opencl_program(source: str, *definitions: str) -> Any:
    """The compiled program of a subject's `.cl` file, a `pyopencl.Program`, with macros defined as ``"N_BINS=256"``.

    source : the subject and the file's name: "boosting/boosting" is `kernels/boosting/opencl/boosting.cl`
    """
    import pyopencl

    subject, name = source.split("/")
    code = source_text(subject, "opencl", f"{name}.cl")
    return pyopencl.Program(opencl_context(), code).build(options=[f"-D{definition}" for definition in definitions])
