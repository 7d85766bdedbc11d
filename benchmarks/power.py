"""How much power a GPU draws: NVML's reading, the one that `nvidia-smi` prints as power.draw; and what processors use:
the counters of RAPL (running average power limit), which Intel's and AMD's have where the system shows them."""

from __future__ import annotations

import ctypes
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

Watts = Callable[[], float]
"""A meter: what is drawn now."""

# The reading is a mean over a second: what was before a load began is in it for that long.
SETTLING_SECONDS = 1.0
_SAMPLING_SECONDS = 0.025


class PowerSamples:
    """Readings of a meter: (seconds since the first, watts)."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, float]] = []

    def mean_watts(self, settling: float = SETTLING_SECONDS) -> float:
        """The mean of the readings after the first second, of all if the load was shorter."""
        settled = [watts for seconds, watts in self.samples if seconds >= settling]
        chosen = settled or [watts for _, watts in self.samples]
        if not chosen:
            raise RuntimeError("the meter gave no reading.")
        return sum(chosen) / len(chosen)


@contextmanager
def sampled(meter: Watts) -> Iterator[PowerSamples]:
    """Read the meter in a thread of its own while the block runs."""
    taken, is_over = PowerSamples(), threading.Event()

    def sample() -> None:
        started = time.perf_counter()
        while True:
            with suppress(OSError, ValueError):
                taken.samples.append((time.perf_counter() - started, meter()))
            if is_over.wait(_SAMPLING_SECONDS):
                return

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        is_over.set()
        thread.join()


def gpu_meter() -> Watts:
    """The meter of the first GPU: NVML, or nvidia-smi where its library is not found.

    Raises
    ------
    OSError
        If there is neither.
    """
    try:
        return _nvml_meter()
    except OSError:
        _read_smi()
        return _read_smi


def _nvml_meter() -> Watts:
    library = ctypes.CDLL("libnvidia-ml.so.1")
    handle, milliwatts = ctypes.c_void_p(), ctypes.c_uint()

    def call(name: str, *arguments: object) -> None:
        code = getattr(library, name)(*arguments)
        if code != 0:
            raise OSError(f"{name} failed with code {code}.")

    call("nvmlInit_v2")
    call("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(handle))

    def read() -> float:
        call("nvmlDeviceGetPowerUsage", handle, ctypes.byref(milliwatts))
        return milliwatts.value / 1000

    read()
    return read


def _read_smi() -> float:
    command = ["nvidia-smi", "--id=0", "--query-gpu=power.draw", "--format=csv,noheader,nounits"]
    try:
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    except (subprocess.CalledProcessError, ValueError) as cause:
        raise OSError("nvidia-smi does not say what the GPU draws.") from cause


class ProcessorEnergy:
    """What all processors of the machine have used since it was made; memory and the rest are not in it.

    Parameters
    ----------
    zones : list of Path
        The folders of their counters.
    """

    def __init__(self, zones: list[Path]) -> None:
        self._zones = zones
        self._limits = [int((zone / "max_energy_range_uj").read_text()) for zone in zones]
        self._last, self._microjoules = self._read(), 0

    def joules(self) -> float:
        """Call it often enough: a counter begins anew after minutes."""
        now = self._read()
        for new, old, limit in zip(now, self._last, self._limits, strict=True):
            self._microjoules += new - old if new >= old else new - old + limit
        self._last = now
        return self._microjoules / 1e6

    def _read(self) -> list[int]:
        return [int((zone / "energy_uj").read_text()) for zone in self._zones]


def processor_energy(root: Path = Path("/sys/class/powercap")) -> ProcessorEnergy | None:
    """The counters of the processors; None where there are none, as in most virtual machines, or they are not ours."""
    try:
        return ProcessorEnergy(zones) if (zones := sorted(root.glob("intel-rapl:[0-9]"))) else None
    except (OSError, ValueError):
        return None
