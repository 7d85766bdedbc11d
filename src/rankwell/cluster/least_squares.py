"""Least squares on a cluster: the normal equations of each worker's queries, added up in the order of the workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.cluster_run import ClusterRun
from rankwell.cluster.learner import Learner
from rankwell.data.dataset import RankingDataset
from rankwell.rankers.base import TrainedModel, TrainingTask
from rankwell.rankers.least_squares import LeastSquares, normal_equations


class LeastSquaresLearner(Learner):
    """The normal equations of a worker's queries."""

    def keep(self, dataset: RankingDataset, agreement: WorkersAgreement) -> None:
        self._equations = normal_equations(dataset)

    def equations(self) -> tuple[np.ndarray, np.ndarray, float]:
        return self._equations


def check_least_squares(ranker: LeastSquares) -> None:
    """Every parameter can be used."""


def train_least_squares(ranker: LeastSquares, task: TrainingTask, run: ClusterRun) -> TrainedModel:
    """The driver's part: add and solve."""
    results: list[Any] = run.group.run("equations")
    gram, moment, count = results[0]
    gram, moment = gram.copy(), moment.copy()
    for more_gram, more_moment, more_count in results[1:]:
        gram += more_gram
        moment += more_moment
        count += more_count
    run.group.report.n_steps = 1
    return ranker.solve(task, gram, moment, count)
