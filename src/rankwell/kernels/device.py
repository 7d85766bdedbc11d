"""Choice of devices: `load` chooses one and creates the implementation that runs there.

A contract (`kernels/<subject>/contract.py`) declares a `Subject`: its devices, the implementation for each, and its
requirements. A requested device that cannot be used is an error with the remedy, never a silent fall-back.
``"auto"`` takes the first device that accepts the problem, and logs which one and why not the others.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

from rankwell.errors import DeviceError, Parameter, ParameterError
from rankwell.kernels.device_report import DEVICES, DeviceReport, report_device

logger = logging.getLogger("rankwell")

# OpenCL is never chosen automatically: on a machine without a GPU it would be a slower way to use the CPU.
_AUTOMATIC = ("cuda", "cpu")


@dataclass(frozen=True)
class Refusal:
    """Why a device does not accept a problem: got "646 features", allowed "at most 512"."""

    got: str
    allowed: str


# Only the CPU's kernels read data from disk.
ON_DISK = Refusal("data larger than memory (memory=...)", "data that is read into memory whole")


def at_most(number: int, limit: int, what: str) -> Refusal | None:
    """The refusal of more than `limit`, or None."""
    return Refusal(f"{number} {what}", f"at most {limit}") if number > limit else None


@dataclass(frozen=True)
class Implementation:
    """The implementation of a subject on one device. Checks get the problem and the options of
    `load`.

    target : "module:name" of what is called; imported when it is needed
    options : names of the options of `load` that it takes
    lacks : (problem, **options), refuses an option that this device does not support
    capability : the least compute capability, for CUDA
    limits : (problem, report, **options), refuses sizes
    memory : "module:name" of (problem, report, **options), bytes of device memory
    """

    target: str
    options: tuple[str, ...] = ()
    lacks: Callable[..., Refusal | None] | None = None
    capability: int = 0
    limits: Callable[..., Refusal | None] | None = None
    memory: str = ""


@dataclass(frozen=True)
class Subject:
    """A task of kernels, and the devices that can do it.

    task : the words after "cannot" in messages, such as "train RankSVM"
    """

    task: str
    devices: Mapping[str, Implementation] = field(default_factory=dict)


def load(subject: Subject, device: str, problem: Any, *arguments: Any, **options: Any) -> Any:
    """The implementation of `subject` on a device, created for a problem.

    Parameters
    ----------
    device : "auto", or one of the subject's
    problem
        What the contract's checks examine. The implementation is called with `arguments`, or with the problem if
        there are none, and with those `options` that it takes.

    Raises
    ------
    ParameterError
        The subject, or an option of it, does not exist on that device.
    DeviceError
        The machine does not have the device, or its memory or size is not sufficient.
    """
    kind = device_for(subject, device, problem, **options)
    chosen = subject.devices[kind]
    make = _imported(chosen.target)
    taken = {name: value for name, value in options.items() if name in chosen.options}
    with memory_errors(kind, subject.task):
        return make(*(arguments or (problem,)), **taken)


def device_for(subject: Subject, device: str, problem: Any, **options: Any) -> str:
    """The kind of device that `load` would choose, for choices that come before, such as a layout of data."""
    if device == "auto":
        return _pick(subject, problem, options)
    if device not in subject.devices:
        allowed = ", ".join(map(repr, ("auto", *subject.devices)))
        others = f": no other device can {subject.task}" if device in DEVICES else ""
        raise ParameterError(f"must be one of {allowed}, got {device!r}{others}.", parameter="device")
    implementation = subject.devices[device]
    refusal = _missing_option(implementation, problem, options)
    if refusal is not None:
        raise ParameterError(Parameter("device", device), _message(subject, refusal))
    report = report_device(device)
    if not report.usable:
        raise DeviceError(Parameter("device", device), f" cannot be used: {report.description}")
    refusal = _missing_hardware(implementation, problem, report, options)
    if refusal is not None:
        raise DeviceError(Parameter("device", device), _message(subject, refusal))
    return device


def memory_errors(kind: str, task: str) -> AbstractContextManager[None]:
    """A block in which a device that runs out of memory raises a `DeviceError` with the sizes."""
    if kind in ("cpu", "fpga-sim"):  # their memory is the host's
        return nullcontext()
    errors = _imported(f"rankwell.kernels.{kind}.memory:out_of_memory_is_a_device_error")
    block: AbstractContextManager[None] = errors(task)
    return block


def free_memory(kind: str) -> int:
    """Bytes of a device's memory that are available now."""
    return int(_imported(f"rankwell.kernels.{kind}.memory:free_bytes")())


def _pick(subject: Subject, problem: Any, options: Mapping[str, Any]) -> str:
    """The first of the automatic devices that accepts the problem; the log says which, and why not those before."""
    reasons: list[str] = []
    for kind in _AUTOMATIC:
        if kind not in subject.devices:
            continue
        implementation, report = subject.devices[kind], report_device(kind)
        if not report.usable:
            # Without the package, the user does not expect this device: say nothing.
            reasons += [f"{kind} cannot be used: {report.description}"] if report.installed else []
            continue
        refusal = _missing_option(implementation, problem, options)
        refusal = refusal or _missing_hardware(implementation, problem, report, options)
        if refusal is None:
            because = f": {'; '.join(reasons)}" if reasons else ""
            logger.info("device='auto' picked %s (%s)%s", kind, report.description, because)
            return kind
        reasons.append(f"{kind} refuses {refusal.got} ({refusal.allowed})")
    raise DeviceError(f"device='auto' found no device that can {subject.task}: {'; '.join(reasons)}.")


def _missing_option(implementation: Implementation, problem: Any, options: Mapping[str, Any]) -> Refusal | None:
    return None if implementation.lacks is None else implementation.lacks(problem, **options)


def _missing_hardware(
    implementation: Implementation, problem: Any, report: DeviceReport, options: Mapping[str, Any]
) -> Refusal | None:
    if report.capability < implementation.capability:
        return Refusal(
            f"compute capability {_capability(report.capability)}", f"{_capability(implementation.capability)} or above"
        )
    if implementation.limits is not None:
        refusal = implementation.limits(problem, report, **options)
        if refusal is not None:
            return refusal
    if not implementation.memory:
        return None
    needed, free = _imported(implementation.memory)(problem, report, **options), free_memory(report.kind)
    if needed <= free:
        return None
    return Refusal(f"{_gibibytes(needed)} of device memory", f"{_gibibytes(free)}, which is free")


def _message(subject: Subject, refusal: Refusal) -> str:
    """The common form of a refusal: what, where, got, allowed, remedy."""
    return f" cannot {subject.task} with {refusal.got}; allowed: {refusal.allowed}. Use the device 'cpu' or 'auto'."


def _capability(number: int) -> str:
    return f"{number // 10}.{number % 10}"


def _gibibytes(number: int) -> str:
    return f"{number / 2**30:.1f} GiB"


def _imported(target: str) -> Any:
    module, name = _parts(target)
    return getattr(module, name)


@cache
def _parts(target: str) -> tuple[ModuleType, str]:
    module, name = target.split(":")
    return importlib.import_module(module), name
