"""The contract of backends that train networks over lists, between `rankers/neural.py` and the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwell.kernels.device import Implementation, Refusal, Subject, at_most
from rankwell.kernels.device_report import DeviceReport
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat
from rankwell.kernels.lists.losses import (
    EXACT,
    LAMBDARANK,
    LISTMLE,
    POSITION_AWARE,
    RANKNET,
    STOCHASTIC,
    XENDCG,
    ListLoss,
)
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
    """The network to train, and the lists to train it on.

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
    """The state of training: parameters, the optimiser's memory (float32 arrays of equal length), and its steps."""

    parameters: np.ndarray
    first: np.ndarray
    second: np.ndarray
    steps: int = 0

    def copy(self) -> NetworkState:
        return NetworkState(self.parameters.copy(), self.first.copy(), self.second.copy(), self.steps)


class NetworkTrainer(Protocol):
    """One backend, which keeps the lists in its own memory."""

    def run_epoch(
        self,
        state: NetworkState,
        order: np.ndarray,
        learning_rate: float,
        seed: int,
        fixed_point: FixedPointFormat | None,
    ) -> float:
        """Train on the queries in `order` (int64), change `state`; returns the sum of the queries' losses."""
        ...

    def figures(self) -> Mapping[str, float]:
        """What the device tells of the last epoch by name, zeros before the first; most tell nothing."""
        ...

    def scores(self, state: NetworkState, features: np.ndarray) -> np.ndarray:
        """The network's scores of documents, float32 (n_docs,)."""
        ...


# The sums of a hidden layer stay in the registers of a thread.
MOST_CUDA_UNITS = 64
# Larger arrays of multipliers fit no part that they are made for.
MOST_SIMULATED_UNITS = 64
# Blocks that share a query if there is one step per query.
CUDA_TEAM = 8
_LOSS_NAMES = {
    STOCHASTIC: "sampling='stochastic'",
    POSITION_AWARE: "sampling='position-aware'",
    RANKNET: "RankNet's loss",
    LAMBDARANK: "LambdaRank's loss",
    LISTMLE: "ListMLE's loss",
    XENDCG: "loss='xendcg'",
}


def _lacks_option(problem: NetworkProblem, *, fixed_point: bool = False, **_: Any) -> Refusal | None:
    """CUDA trains float32 networks of at most one hidden layer by the exact Top-k losses."""
    if problem.loss.kind != EXACT:
        return Refusal(_LOSS_NAMES[problem.loss.kind], "the exact Top-k losses of ListNet")
    if fixed_point:
        return Refusal("fixed point", "precision='float32'")
    if problem.dropout > 0:
        return Refusal(f"dropout={problem.dropout:g}", "dropout=0")
    refusal = at_most(len(problem.shape.units), 1, "hidden layers")
    return refusal or at_most(problem.shape.n_hidden, MOST_CUDA_UNITS, "hidden units")


def _few_processors(problem: NetworkProblem, report: DeviceReport, **_: Any) -> Refusal | None:
    """A team's blocks wait for each other, so each needs a multiprocessor."""
    if report.processors >= CUDA_TEAM:
        return None
    return Refusal(f"{report.processors} multiprocessors", f"{CUDA_TEAM} or more")


def _lacks_hardware(problem: NetworkProblem, *, floating: bool = True, **_: Any) -> Refusal | None:
    """The accelerator back propagates in fixed point through one hidden layer; losses are computed on the host."""
    if floating:
        return Refusal("precision='float32'", "fixed point, 'fixed4' to 'fixed31', in every epoch")
    if len(problem.shape.units) != 1:
        return Refusal(f"{len(problem.shape.units)} hidden layers", "one hidden layer")
    return None


def _simulated_limits(problem: NetworkProblem, report: DeviceReport, **_: Any) -> Refusal | None:
    return at_most(problem.shape.n_hidden, MOST_SIMULATED_UNITS, "hidden units")


NETWORK_TRAINING = Subject(
    "train a network over lists",
    {
        "cpu": Implementation("rankwell.kernels.lists.cpu.trainer:CpuNetworkTrainer"),
        "cuda": Implementation(
            "rankwell.kernels.lists.cuda.trainer:CudaNetworkTrainer",
            lacks=_lacks_option,
            capability=75,
            limits=_few_processors,
            memory="rankwell.kernels.lists.cuda.placement:device_bytes",
        ),
        "fpga-sim": Implementation(
            "rankwell.hardware.listnet.trainer:SimulatedNetworkTrainer",
            lacks=_lacks_hardware,
            limits=_simulated_limits,
        ),
    },
)
