"""ListNet and its relatives on a cluster: the gradients of a batch of queries, added up over workers.

Every worker has the queries of its parts, makes the same steps, and ends an epoch with the same network. The queries of
a batch are those of one machine; gradients are added worker by worker, so the same number of workers gives the same
model, byte for byte. Training query by query (`batch_queries=1`) is in an order that workers cannot share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.cluster_run import ClusterRun
from rankwell.cluster.companions import WorkerCompanions
from rankwell.cluster.learner import Learner
from rankwell.cluster.worker_group import WorkerGroup
from rankwell.data.dataset import RankingDataset
from rankwell.errors import Parameter, ParameterError
from rankwell.kernels.lists.contract import NetworkProblem, NetworkState
from rankwell.kernels.lists.cpu.shared_trainer import SharedNetworkTrainer
from rankwell.kernels.lists.cpu.trainer import CpuNetworkTrainer
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat
from rankwell.rankers.base import TrainedModel, TrainingTask
from rankwell.rankers.neural import NeuralRanker


class NetworkLearner(Learner):
    """A worker's lists."""

    def keep(self, dataset: RankingDataset, agreement: WorkersAgreement) -> None:
        ranker = self.ranker
        assert isinstance(ranker, NeuralRanker)
        problem = ranker._problem(dataset, ranker._shape(self.n_features))
        companions = WorkerCompanions(self.exchange, dataset.n_docs, dataset.n_queries, agreement)
        self._trainer = SharedNetworkTrainer(problem, companions.first_query, self.exchange.sum)

    def run_epoch(
        self,
        parameters: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
        steps: int,
        order: np.ndarray,
        learning_rate: float,
        seed: int,
    ) -> tuple[float, dict[str, Any] | None]:
        """Train an epoch; the first worker returns the state after it, which is the state of all."""
        state = NetworkState(parameters.copy(), first.copy(), second.copy(), steps)
        loss = self._trainer.run_epoch(state, order, learning_rate, seed, None)
        if self.exchange.number > 0:
            return loss, None
        return loss, {
            "parameters": state.parameters,
            "first": state.first,
            "second": state.second,
            "steps": state.steps,
        }


class ClusterNetworkTrainer:
    """The workers as one `NetworkTrainer`; validation data are scored here."""

    def __init__(self, group: WorkerGroup, columns: NetworkProblem) -> None:
        self._group = group
        self._scorer = CpuNetworkTrainer(columns)

    def run_epoch(
        self,
        state: NetworkState,
        order: np.ndarray,
        learning_rate: float,
        seed: int,
        fixed_point: FixedPointFormat | None,
    ) -> float:
        results = self._group.run(
            "run_epoch", state.parameters, state.first, state.second, state.steps, order, learning_rate, seed
        )
        loss, new = results[0]
        state.parameters[:], state.first[:], state.second[:] = new["parameters"], new["first"], new["second"]
        state.steps = new["steps"]
        self._group.report.n_steps += 1
        return float(loss)

    def figures(self) -> Mapping[str, float]:
        return {}

    def scores(self, state: NetworkState, features: np.ndarray) -> np.ndarray:
        return self._scorer.scores(state, features)


def check_network(ranker: NeuralRanker) -> None:
    """Refuse what workers cannot do."""
    if ranker.batch_queries == 1:
        raise ParameterError(
            "is 1: the network learns from one query after another, in an order that workers cannot share. Use ",
            Parameter("batch_queries", 32),
            " or so, or train on one machine.",
            parameter="batch_queries",
        )
    if ranker._is_fixed_point():
        raise ParameterError("must be 'float32' on a cluster.", parameter="precision")
    if ranker.device not in ("auto", "cpu"):
        raise ParameterError(f"must be 'cpu' or 'auto' on a cluster, got {ranker.device!r}.", parameter="device")


def train_network(ranker: NeuralRanker, task: TrainingTask, run: ClusterRun) -> TrainedModel:
    """The driver's part: epochs by the workers, everything else as on one machine."""
    columns = ranker._problem(task.train, ranker._shape(task.train.n_features))
    trainer = ClusterNetworkTrainer(run.group, columns)
    return ranker.train_with(task, trainer, run.n_queries, lambda precision: None, run.checkpoints(ranker, task))
