"""Networks over lists on several CPUs that share no memory: each process has some of the lists, and the gradients of a
batch are added up over processes, in their order. Every process then makes the same step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankwell.kernels.lists.contract import NetworkProblem, NetworkState
from rankwell.kernels.lists.cpu.trainer import CpuNetworkTrainer


class SharedNetworkTrainer(CpuNetworkTrainer):
    """A `NetworkTrainer` of one of several processes; epochs are over the queries of all of them.

    Parameters
    ----------
    problem : NetworkProblem
        With the lists of this process.
    first_query : int
        The number of its first query among all: orders count all queries.
    add : callable
        The sum of an array over all processes, in their order.
    """

    def __init__(self, problem: NetworkProblem, first_query: int, add: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__(problem)
        self._first, self._end, self._add = first_query, first_query + len(problem.query_ptr) - 1, add

    def _sum_gradient(self, setting: Any, state: NetworkState, batch: np.ndarray) -> float:
        own = batch[(batch >= self._first) & (batch < self._end)] - self._first
        gradient, loss = self._work.gradients[0], 0.0
        if len(own):
            loss = super()._sum_gradient(setting, state, own)
        else:
            gradient[:] = 0.0
        # As float64, so that the loss can go with the gradient; the sums are rounded to float32 once.
        total = self._add(np.append(gradient.astype(np.float64), loss))
        gradient[:] = total[:-1].astype(np.float32)
        return float(total[-1])
