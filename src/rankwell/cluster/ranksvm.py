"""RankSVM on a cluster: workers compute loss, gradient and Hessian-vector products over their queries; the driver adds
them up in the order of the workers and minimises.

A product is one call: d numbers to every worker, d numbers back. The same number of workers gives the same model, byte
for byte; another number adds in another order, which changes the objective by about 1e-15 of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.cluster_run import ClusterRun
from rankwell.cluster.learner import Learner
from rankwell.cluster.worker_group import WorkerGroup
from rankwell.data.dataset import RankingDataset
from rankwell.errors import ParameterError
from rankwell.kernels.device import load
from rankwell.kernels.pair_loss.contract import PAIR_LOSS, PairLoss
from rankwell.rankers.base import TrainedModel, TrainingTask
from rankwell.rankers.ranksvm import RankSVM
from rankwell.rankers.ranksvm_data import count_pairs, pair_data


class RankSVMLearner(Learner):
    """The pair loss of a worker's queries."""

    def keep(self, dataset: RankingDataset, agreement: WorkersAgreement) -> None:
        ranker = self.ranker
        assert isinstance(ranker, RankSVM)
        data = pair_data(dataset, self.normaliser, self.n_threads)
        self._n_pairs = count_pairs(data, self.n_threads)
        self._loss: PairLoss = load(PAIR_LOSS, self.plan.device, data, method=ranker.method, n_jobs=self.n_threads)

    def summary(self) -> Mapping[str, Any]:
        return {**super().summary(), "n_pairs": self._n_pairs, "method": self._loss.method}

    def loss_and_gradient(self, accept: bool, w: np.ndarray) -> tuple[float, np.ndarray]:
        self._accept(accept)
        loss, gradient = self._loss.loss_and_gradient(self._loss.to_device(w))
        return float(loss), self._loss.to_host(gradient)

    def hessian_vector(self, accept: bool, v: np.ndarray) -> np.ndarray:
        self._accept(accept)
        return self._loss.to_host(self._loss.hessian_vector(self._loss.to_device(v)))

    def curvature(self, accept: bool) -> np.ndarray:
        self._accept(accept)
        return self._loss.to_host(self._loss.curvature())

    def return_to(self, accepted: np.ndarray | None, tried: np.ndarray | None) -> None:
        """Be as after the points `accepted` and then `tried` were evaluated, and only the former accepted."""
        if accepted is not None:
            self.loss_and_gradient(False, accepted)
            self._loss.accept()
        if tried is not None:
            self.loss_and_gradient(False, tried)

    def _accept(self, accept: bool) -> None:
        """Whether the point evaluated last is the current one from now on: told with the next call."""
        if accept:
            self._loss.accept()


class ClusterPairLoss:
    """The workers as one `PairLoss`."""

    def __init__(self, group: WorkerGroup, n_features: int, method: str) -> None:
        self._group = group
        self.n_features, self.method = n_features, method
        self._accepted: np.ndarray | None = None
        self._tried: np.ndarray | None = None
        self._is_accepted = False
        group.restoration = lambda: ("return_to", self._accepted, self._tried)

    def to_device(self, vector: np.ndarray) -> np.ndarray:
        return np.asarray(vector, dtype=np.float64)

    def to_host(self, vector: np.ndarray) -> np.ndarray:
        return vector

    def loss_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        results = self._call("loss_and_gradient", w)
        self._tried = np.array(w)
        return sum(loss for loss, _ in results), _added([gradient for _, gradient in results])

    def accept(self) -> None:
        self._is_accepted = True

    def hessian_vector(self, v: np.ndarray) -> np.ndarray:
        return _added(self._call("hessian_vector", v))

    def curvature(self) -> np.ndarray:
        return _added(self._call("curvature"))

    def _call(self, method: str, *arguments: np.ndarray) -> list[Any]:
        accept = self._is_accepted
        results = self._group.run(method, accept, *arguments)
        self._group.report.n_steps += 1
        if accept:
            self._accepted, self._tried, self._is_accepted = self._tried, None, False
        return results


def _added(vectors: list[np.ndarray]) -> np.ndarray:
    total = vectors[0].copy()
    for vector in vectors[1:]:
        total += vector
    return total


def check_ranksvm(ranker: RankSVM) -> None:
    """Refuse what workers cannot do."""
    if ranker.device not in ("auto", "cpu"):
        raise ParameterError(
            f"must be 'auto' on a cluster, got {ranker.device!r}: workers use a GPU where they are given one "
            "(gpus_per_worker).",
            parameter="device",
        )


def train_ranksvm(ranker: RankSVM, task: TrainingTask, run: ClusterRun) -> TrainedModel:
    """The driver's part: the solver, everything else as on one machine."""
    summary = run.summaries[0]
    loss = ClusterPairLoss(run.group, summary["n_features"], summary["method"])
    ranker.device_, ranker.method_ = run.group.device, loss.method
    return ranker.train_with(task, loss, sum(summary["n_pairs"] for summary in run.summaries))
