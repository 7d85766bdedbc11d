"""OpenCL C sources, compiled at run time for a device; nothing is imported or compiled before that."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any


@cache
def opencl_context() -> Any:
    """A context on the first GPU of any platform, or else on the first device: a `pyopencl.Context` of one device."""
    import pyopencl

    devices = [device for platform in pyopencl.get_platforms() for device in platform.get_devices()]
    gpus = [device for device in devices if device.type & pyopencl.device_type.GPU]
    return pyopencl.Context([(gpus + devices)[0]])


@cache
def opencl_program(name: str, *definitions: str) -> Any:
    """The compiled program of `name`.cl, a `pyopencl.Program`, with macros defined as ``"N_BINS=256"``."""
    import pyopencl

    source = files("rankwell.kernels.opencl").joinpath(f"{name}.cl").read_text(encoding="utf-8")
    return pyopencl.Program(opencl_context(), source).build(options=[f"-D{definition}" for definition in definitions])
