"""The power that a GPU draws while something runs: nvidia-smi's `power.draw`, sampled."""

from __future__ import annotations

import subprocess
import threading
from types import TracebackType
from typing import Self

_MILLISECONDS = 100


class PowerDraw:
    """Samples the power of the first GPU in a block.

    Attributes
    ----------
    watts : list of float
        One sample every tenth of a second. The first second is left out of `mean`: the sensor averages.
    """

    def __init__(self) -> None:
        self.watts: list[float] = []

    def __enter__(self) -> Self:
        query = ("--query-gpu=power.draw", "--format=csv,noheader,nounits", "--id=0", f"--loop-ms={_MILLISECONDS}")
        self._sampler = subprocess.Popen(["nvidia-smi", *query], stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._sampler.terminate()
        self._sampler.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._sampler.stdout is not None
        for line in self._sampler.stdout:
            self.watts.append(float(line))

    @property
    def mean(self) -> float:
        samples = self.watts[1000 // _MILLISECONDS :] or self.watts
        return sum(samples) / len(samples)
