"""Where the kernels run: the device is chosen here, once.

Asked for and not there is an error with the remedy, never a silent fall-back; `auto` says what it picked.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from rankwell.errors import DeviceError, Parameter, ParameterError

logger = logging.getLogger("rankwell")

DEVICES = ("cpu", "cuda", "opencl")


@dataclass(frozen=True)
class DeviceReport:
    """What is known of one device: whether it can be used, its name, or why not and what would help."""

    kind: str
    usable: bool
    description: str


def choose_device(wanted: str, supported: Sequence[str] = ("cpu",)) -> str:
    """The device to run on, one of `supported`.

    ``"auto"`` takes CUDA where there is a CUDA device and the ranker has CUDA kernels, else the CPU. OpenCL is never
    picked by itself: on a machine without a GPU it would be the CPU by a detour.
    """
    if wanted == "auto":
        for kind in ("cuda", "cpu"):
            if kind in supported and report_device(kind).usable:
                logger.info("device='auto' picked %s (%s)", kind, report_device(kind).description)
                return kind
    if wanted not in supported:
        allowed = ", ".join(repr(kind) for kind in ("auto", *supported))
        raise ParameterError(f"must be one of {allowed}, got {wanted!r}.", parameter="device")
    report = report_device(wanted)
    if not report.usable:
        raise DeviceError(Parameter("device", wanted), f" cannot be used: {report.description}")
    return wanted


def report_device(kind: str) -> DeviceReport:
    """Look for one device; nothing is imported before this is called."""
    return {"cpu": _report_cpu, "cuda": _report_cuda, "opencl": _report_opencl}[kind]()


def _report_cpu() -> DeviceReport:
    from rankwell.kernels.threads import available_cores

    return DeviceReport("cpu", True, f"{available_cores()} cores")


def _report_cuda() -> DeviceReport:
    if importlib.util.find_spec("cupy") is None:
        return DeviceReport(
            "cuda",
            False,
            "CuPy is not installed. Install the extra for your CUDA (nvidia-smi says which): pip install "
            "'rankwell[cuda13]', or 'rankwell[cuda12]'.",
        )
    import cupy

    try:
        number = cupy.cuda.runtime.getDeviceCount()
        properties = cupy.cuda.runtime.getDeviceProperties(0)
    except cupy.cuda.runtime.CUDARuntimeError as cause:
        return DeviceReport("cuda", False, f"no CUDA device answers ({cause}). Check the driver with nvidia-smi.")
    name = properties["name"].decode()
    memory = properties["totalGlobalMem"] / 2**30
    return DeviceReport("cuda", True, f"{number} x {name}, {memory:.0f} GiB")


def _report_opencl() -> DeviceReport:
    if importlib.util.find_spec("pyopencl") is None:
        return DeviceReport(
            "opencl", False, "PyOpenCL is not installed. Install the extra: pip install 'rankwell[opencl]'."
        )
    import pyopencl

    try:
        devices = [device for platform in pyopencl.get_platforms() for device in platform.get_devices()]
    except pyopencl.Error as cause:
        return DeviceReport(
            "opencl", False, f"no OpenCL platform answers ({cause}). Install a vendor's driver or PoCL."
        )
    if not devices:
        return DeviceReport("opencl", False, "no OpenCL device was found. Install a vendor's driver or PoCL.")
    return DeviceReport("opencl", True, ", ".join(device.name.strip() for device in devices))
