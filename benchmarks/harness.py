"""The argument of a benchmark: it checks the answer, times it, and records figures with their targets and rivals.

from benchmarks.harness import Benchmark, measure

def run(bench: Benchmark) -> None:
    bench.check("same as the reference", ...)
    timing = bench.time("fast kernel", lambda: ...)
    bench.record("one pass", value=timing.minimum, unit="s", target=0.1, rival="lightgbm", rival_value=...)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.catalogue import Question
from benchmarks.machine import describe_machine, read_bandwidth
from benchmarks.provenance import ROOT
from benchmarks.row import Better, Row
from benchmarks.timing import Timing, time_function

__all__ = ["Benchmark", "BenchmarkError", "Better", "Check", "Row", "Timing", "measure"]


class BenchmarkError(Exception):
    """A check failed, or there was none: the figures would be meaningless."""


@dataclass(frozen=True)
class Check:
    name: str
    ok: bool
    detail: str = ""


class Benchmark:
    """One run of one question.

    Parameters
    ----------
    question : Question
    quick : bool
        The small form: a few seconds, so that it can run at every change. Its figures are meaningless.
    folder : Path
        Where figures are drawn; the runner keeps them with the results.
    """

    def __init__(self, question: Question, *, quick: bool, folder: Path) -> None:
        self.question = question
        self.quick = quick
        self.checks: list[Check] = []
        self.timings: list[Timing] = []
        self.rows: list[Row] = []
        # Data that was asked for and is not here.
        self.absent: list[str] = []
        self.read_bandwidth_gb_s: float | None = None
        self._folder = folder

    @property
    def machine(self) -> str:
        """The machine's short name: ``cpu2``, or the GPU's name for a benchmark of CUDA kernels."""
        return describe_machine().short_name(on_gpu=self.question.needs_cuda)

    def check(self, name: str, ok: bool, detail: str = "") -> None:
        """Record whether an answer is right; a wrong one ends the benchmark, so that it is never timed."""
        check = Check(name, bool(ok), detail)
        self.checks.append(check)
        if not check.ok:
            raise BenchmarkError(f"check failed: {name}" + (f" ({detail})" if detail else ""))

    def time(
        self,
        name: str,
        function: Callable[[], Any],
        *,
        repeat: int = 5,
        warmup: int = 1,
        setup: Callable[[], Any] | None = None,
    ) -> Timing:
        """Time `function`: the first call separately (`first_s`), then `repeat` raw times.

        Of the `warmup` calls the first one is timed as `first_s`; with ``warmup=0`` the first counted call is. `setup`
        runs before every call, untimed. What the last call returned is in `result`.
        """
        timing = time_function(name, function, repeat=repeat, warmup=warmup, setup=setup)
        # The raw times are kept to the end; the result is not, so that its memory can be freed.
        self.timings.append(Timing(timing.name, timing.first_s, timing.times))
        return timing

    def record(
        self,
        case: str,
        *,
        value: float,
        unit: str,
        target: float | None = None,
        better: Better = "lower",
        rival: str | None = None,
        rival_value: float | None = None,
        paper: float | str | None = None,
        note: str = "",
        interval: tuple[float, float] | None = None,
    ) -> None:
        """One row of the table; see `Row` for what each part means."""
        self.rows.append(Row(case, value, unit, target, better, rival, rival_value, paper, note, interval))

    def figure(self, name: str) -> Path:
        """Where a plot may be saved as PNG; it is stored next to the JSON when results are written."""
        return self._folder / f"{name}.png"

    def data(self, name: str) -> Path | None:
        """A file or folder of the real collections, or None if it is absent.

        They are in the folder that the variable RANKWELL_DATA names, or in ``../shared/data`` next to the checkout.
        """
        folder = os.environ.get("RANKWELL_DATA")
        path = (Path(folder) if folder else ROOT.parent / "shared" / "data") / name
        if path.exists():
            return path
        self.absent.append(name)
        return None

    def read_bandwidth(self) -> float:
        """How fast this machine reads memory, in GB/s: measured once, and written with the results."""
        if self.read_bandwidth_gb_s is None:
            self.read_bandwidth_gb_s = read_bandwidth(2**26 if self.quick else 2**30)
        return self.read_bandwidth_gb_s
