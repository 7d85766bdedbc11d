"""Training timed by the cycle model: the CPU's kernels, and the cycles that the accelerator would take.

The formula is exact and the models are the same, so this tells what `SimulatedNetworkTrainer` tells, in less time.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankwell.hardware.listnet.board_time import BoardTime
from rankwell.hardware.listnet.cycles import epoch_cycles
from rankwell.hardware.listnet.trainer import format_configuration
from rankwell.kernels.lists.contract import NetworkProblem, NetworkState
from rankwell.kernels.lists.cpu.trainer import CpuNetworkTrainer
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat


class ModelledNetworkTrainer(CpuNetworkTrainer):
    """See `lists.contract.NetworkTrainer`; fixed point only."""

    def __init__(self, problem: NetworkProblem) -> None:
        super().__init__(problem)
        self._time = BoardTime()
        weighted = problem.query_weights != 0.0
        self._sizes = np.where(weighted, np.diff(problem.query_ptr), 0)

    def run_epoch(
        self,
        state: NetworkState,
        order: np.ndarray,
        learning_rate: float,
        seed: int,
        fixed_point: FixedPointFormat | None,
    ) -> float:
        assert fixed_point is not None  # there is no kernel for float32
        configuration = format_configuration(self._problem, fixed_point)
        self._time.begin(configuration)
        self._time.add(configuration, epoch_cycles(configuration, self._sizes[order]))
        return super().run_epoch(state, order, learning_rate, seed, fixed_point)

    def figures(self) -> Mapping[str, float]:
        return self._time.figures()
