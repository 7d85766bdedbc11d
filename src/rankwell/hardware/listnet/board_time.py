"""The time of a training on the board: the cycles of back propagation, and of swapping configurations."""

from __future__ import annotations

from collections.abc import Mapping

from rankwell.hardware.listnet.board import clock, reconfiguration_cycles
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.kernels.device_report import BOARD_SECONDS, CYCLES


class BoardTime:
    """Counts the cycles of one epoch after the other.

    The first configuration is loaded before training begins; each change after that costs a reconfiguration.
    """

    def __init__(self) -> None:
        self._loaded: ListNetConfiguration | None = None
        self._cycles, self._seconds = 0, 0.0

    def begin(self, configuration: ListNetConfiguration) -> None:
        """An epoch with that configuration begins."""
        self._cycles, self._seconds = 0, 0.0
        if self._loaded not in (None, configuration):
            self.add(configuration, reconfiguration_cycles(configuration))
        self._loaded = configuration

    def add(self, configuration: ListNetConfiguration, cycles: int) -> None:
        self._cycles += cycles
        self._seconds += cycles / clock(configuration)

    def figures(self) -> Mapping[str, float]:
        """Of the last epoch: cycles, and seconds on the board."""
        return {CYCLES: float(self._cycles), BOARD_SECONDS: self._seconds}
