"""ListNet with back propagation on a simulated accelerator.

The forward pass, the loss and the step of the weights stay on the host, in float32, as the CPU computes them; what the
accelerator gets and gives are the integers of the CPU's back propagation, so the model is the CPU's, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwell.hardware.listnet.board import fitted_configuration
from rankwell.hardware.listnet.board_time import BoardTime
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.gradient import SimulatedBackPropagation
from rankwell.hardware.listnet.quantised_query import quantised_query
from rankwell.kernels.lists.contract import NetworkProblem, NetworkState
from rankwell.kernels.lists.cpu.epoch import SLOTS, query_slopes
from rankwell.kernels.lists.cpu.first_order import first_order_step
from rankwell.kernels.lists.cpu.fixed_point import quantise_weights, unscale
from rankwell.kernels.lists.cpu.trainer import CpuNetworkTrainer
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat


def format_configuration(problem: NetworkProblem, fmt: FixedPointFormat) -> ListNetConfiguration:
    """The configuration of a format on the board, for a problem's network."""
    shape = problem.shape
    return fitted_configuration(
        shape.n_features, shape.n_hidden, fmt, sigmoid_output=bool(shape.output_activation == 1)
    )


class SimulatedNetworkTrainer(CpuNetworkTrainer):
    """See `lists.contract.NetworkTrainer`.

    Parameters
    ----------
    problem : NetworkProblem
    simulator : str, optional
        See `rankwell.hardware.simulation.simulation`.
    """

    def __init__(self, problem: NetworkProblem, *, simulator: str | None = None) -> None:
        super().__init__(problem)
        self._simulator = simulator
        self._accelerators: dict[ListNetConfiguration, SimulatedBackPropagation] = {}
        self._time = BoardTime()

    def run_epoch(
        self,
        state: NetworkState,
        order: np.ndarray,
        learning_rate: float,
        seed: int,
        fixed_point: FixedPointFormat | None,
    ) -> float:
        assert fixed_point is not None  # the contract refuses float32
        configuration = format_configuration(self._problem, fixed_point)
        if configuration not in self._accelerators:
            self._accelerators[configuration] = SimulatedBackPropagation(configuration, simulator=self._simulator)
        self._time.begin(configuration)
        return super().run_epoch(state, order, learning_rate, seed, fixed_point)

    def figures(self) -> Mapping[str, float]:
        return self._time.figures()

    def _backward(self, fmt: FixedPointFormat | None) -> Any:
        return fmt

    def _query_steps(self, setting: Any, state: NetworkState, order: np.ndarray, loss: float) -> float:
        rate = setting[-1].learning_rate
        gradient = self._work.gradients[0]
        for query in order.tolist():
            gradient[:] = 0.0
            loss += self._query_gradient(setting, state, query, 0)
            state.steps += 1
            first_order_step(self._optimizer, rate, state.steps, state.parameters, gradient, state.first, state.second)
        return loss

    def _batch_gradient(self, setting: Any, state: NetworkState, batch: np.ndarray, losses: np.ndarray) -> None:
        for slot in range(len(losses)):
            self._work.gradients[slot] = 0.0
            for query in batch[slot::SLOTS].tolist():
                losses[slot] += self._query_gradient(setting, state, query, slot)

    def _query_gradient(self, setting: Any, state: NetworkState, query: int, slot: int) -> float:
        """Add one query's ∂L/∂parameters to its slot's gradient; returns the weighted loss."""
        shape, loss, fmt, step = setting
        work, lists, parameters = self._work, self._lists, state.parameters
        start, end = int(lists.query_ptr[query]), int(lists.query_ptr[query + 1])
        n = end - start
        if n < 2 or lists.weights[query] == 0.0:
            return 0.0
        value = query_slopes(shape, loss, step, parameters, lists, query, work, slot)
        whole = np.zeros(shape.n_parameters, dtype=np.int64)
        exponents = quantise_weights(shape, parameters, fmt.bits, whole)
        hidden = work.hidden[slot, : n * shape.n_hidden].reshape(n, shape.n_hidden)
        first = shape.output_weights
        query_integers, scale = quantised_query(
            fmt,
            whole[first : first + shape.n_hidden],
            self._features_as_integers(fmt)[start:end],
            hidden,
            work.scores[slot, :n],
            work.list_slopes[slot, :n],
        )
        configuration = format_configuration(self._problem, fmt)
        sums = self._accelerators[configuration].sums(query_integers)
        self._time.add(configuration, sums.cycles)
        # The sums are Σ_B sum·2^(batches − 1 − B): whole numbers that a float64 holds exactly.
        totals, used = sums.parameters[None, :], np.ones(1, dtype=np.bool_)
        unscale(shape, fmt, scale + fmt.batches - 1, exponents, totals, used, work.gradients[slot])
        return float(value)
