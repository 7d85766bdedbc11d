"""What a backend that trains networks over lists must do: the contract between `rankers/neural.py` and the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from rankwell.kernels.lists.fixed_point_format import FixedPointFormat
from rankwell.kernels.lists.losses import ListLoss
from rankwell.kernels.lists.network_shape import NetworkShape

SGD, ADAM = range(2)


class OptimizerSettings(NamedTuple):
    """A first-order optimiser's settings, as the kernels of every backend read them.

    kind : SGD or ADAM; momentum : SGD's; beta1, beta2, epsilon : Adam's; weight_decay : decoupled, for both
    """

    kind: int
    momentum: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float


@dataclass(frozen=True)
class NetworkProblem:
    """What is to be trained, on which lists.

    features : float32 (n_docs, n_features), C order, without NaN; labels : float64 (n_docs,); query_ptr : int64;
    query_weights : float64 (n_queries,)
    """

    features: np.ndarray
    labels: np.ndarray
    query_ptr: np.ndarray
    query_weights: np.ndarray
    shape: NetworkShape
    loss: ListLoss
    optimizer: OptimizerSettings
    batch_queries: int
    dropout: float


@dataclass
class NetworkState:
    """Where training stands: parameters and the optimiser's memory (float32 arrays of equal length), and its steps."""

    parameters: np.ndarray
    first: np.ndarray
    second: np.ndarray
    steps: int = 0

    def copy(self) -> NetworkState:
        return NetworkState(self.parameters.copy(), self.first.copy(), self.second.copy(), self.steps)


class NetworkTrainer(Protocol):
    """One backend, holding the lists where it wants them."""

    def run_epoch(
        self, state: NetworkState, order: np.ndarray, learning_rate: float, seed: int,
        fixed_point: FixedPointFormat | None, scale_exponent: int,
    ) -> float:  # fmt: skip
        """Train on the queries in `order` (int64), change `state`; returns the sum of the queries' losses."""
        ...

    def scores(self, state: NetworkState, features: np.ndarray) -> np.ndarray:
        """The network's scores of documents, float32 (n_docs,)."""
        ...


def network_trainer(device: str, problem: NetworkProblem) -> NetworkTrainer:
    """The trainer for a device."""
    if device == "cuda":
        from rankwell.kernels.lists.cuda.trainer import CudaNetworkTrainer

        return CudaNetworkTrainer(problem)
    from rankwell.kernels.lists.cpu.trainer import CpuNetworkTrainer

    return CpuNetworkTrainer(problem)
