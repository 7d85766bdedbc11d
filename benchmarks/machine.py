"""What a figure was measured on: processor, cores, memory, GPU. Never a host's name or a path."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rankwell.kernels.device_report import report_device
from rankwell.kernels.threads import available_cores


@dataclass(frozen=True)
class Gpu:
    name: str
    driver: str
    memory_gib: float


@dataclass(frozen=True)
class Machine:
    """The machine in the words of a results table; `gpu` is None if there is none."""

    cpu: str
    cores: int
    memory_gib: float
    system: str
    gpu: Gpu | None

    def short_name(self, on_gpu: bool) -> str:
        """``cpu2`` for two cores; for a figure of the GPU its name, such as ``h200``.

        The variable RANKWELL_MACHINE gives another name to a machine's own figures, so that those of a second machine
        with as many cores are kept beside the first one's.
        """
        if on_gpu and self.gpu is not None:
            words = re.sub(r"(?i)nvidia|geforce|tesla", " ", self.gpu.name).lower()
            return re.sub(r"[^a-z0-9]+", "-", words).strip("-")
        return os.environ.get("RANKWELL_MACHINE") or f"cpu{self.cores}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@cache
def describe_machine() -> Machine:
    return Machine(
        cpu=_cpu_model(),
        cores=available_cores(),
        memory_gib=round(_memory_bytes() / 2**30, 1),
        system=f"{platform.system()} {platform.machine()}",
        gpu=_find_gpu(),
    )


def has_cuda() -> bool:
    """Whether a benchmark of the CUDA kernels can run here."""
    return report_device("cuda").usable


def read_bandwidth(n_bytes: int = 2**30) -> float:
    """Gigabytes per second that all cores read from memory (compiles on first use)."""
    from benchmarks.bandwidth import read_bandwidth as measure

    return measure(n_bytes)


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
        if found is not None:
            return " ".join(found[1].split())
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    """What this process may use: the machine's memory, or the limit of its control group if that is less."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [physical]
    for limit in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        text = limit.read_text().strip() if limit.exists() else ""
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


def _find_gpu() -> Gpu | None:
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader,nounits"]
    answer = subprocess.run(query, capture_output=True, text=True, check=False)
    if answer.returncode != 0 or not answer.stdout.strip():
        return None
    name, driver, mebibytes = (field.strip() for field in answer.stdout.splitlines()[0].split(","))
    return Gpu(name, driver, round(float(mebibytes) / 1024, 1))
