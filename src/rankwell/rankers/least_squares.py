"""Least squares: the baseline. A linear function fitted to labels by ridge regression within queries.

Only differences within a query matter to a ranking, so features and labels are centred by query first:

    min_w  Σ_q v_q Σ_{d in q} ((x_d − x̄_q)·w − (y_d − ȳ_q))²  +  ridge·n·‖w‖²

v_q is the query's weight and n the weighted number of documents; missing values count as 0 after normalisation.
"""

from __future__ import annotations

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.parameters import check_number
from rankwell.rankers.base import Ranker, TrainedModel, TrainingStep, TrainingTask
from rankwell.scoring.description import Dense, LinearInputs, RankerDescription


class LeastSquares(Ranker):
    """A linear ranker fitted in closed form.

    Parameters
    ----------
    ridge : float
        Weight of ‖w‖², per document: the same value suits any amount of data.
    normalize : "auto", "none", "standard", "query-minmax" or "letor"

    Examples
    --------
    >>> import rankwell
    >>> X, y = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [0.0, 2.0], [4.0, 2.0]], [0, 1, 2, 0, 2]
    >>> ranker = rankwell.LeastSquares().fit(X, y, qid=[1, 1, 1, 2, 2])
    >>> [rows.tolist() for rows in ranker.rank(X, qid=[1, 1, 1, 2, 2])]  # best first
    [[2, 1, 0], [4, 3]]
    """

    name = "least-squares"

    def __init__(self, ridge: float = 1e-2, normalize: str = "auto") -> None:
        self.ridge = ridge
        self.normalize = normalize

    def _check_parameters(self) -> None:
        check_number("ridge", self.ridge, least=0)

    def _train(self, task: TrainingTask) -> TrainedModel:
        return self.solve(task, *normal_equations(task.train))

    def solve(self, task: TrainingTask, gram: np.ndarray, moment: np.ndarray, count: float) -> TrainedModel:
        """The ranker of normal equations (`normal_equations`); `gram` is changed."""
        gram[np.diag_indices_from(gram)] += self.ridge * count
        # lstsq, not solve: without a ridge, constant or repeated features leave the system singular.
        weights = np.linalg.lstsq(gram, moment, rcond=None)[0]
        task.callback(TrainingStep(1, 1, {}))
        description = RankerDescription(
            feature_names=task.feature_names,
            normaliser=task.normaliser,
            inputs=(LinearInputs.identity(task.train.n_features),),
            layers=(Dense(weights[None, :], np.zeros(1)),),
        )
        return TrainedModel(description, state={}, history={})


def normal_equations(dataset: RankingDataset) -> tuple[np.ndarray, np.ndarray, float]:
    """Σ v x xᵀ, Σ v x y and Σ v over documents centred by query, in float64."""
    n_features = dataset.n_features
    gram, moment, count = np.zeros((n_features, n_features)), np.zeros(n_features), 0.0
    weights = _document_weights(dataset)
    for rows in dataset.queries():
        weight = weights[rows]
        total = weight.sum()
        if total == 0:
            continue
        block = dataset.features[rows]
        x = np.nan_to_num((block.toarray() if dataset.is_sparse else block).astype(np.float64), nan=0.0)
        y = dataset.labels[rows] - weight @ dataset.labels[rows] / total
        x -= weight @ x / total
        gram += (x * weight[:, None]).T @ x
        moment += (x * weight[:, None]).T @ y
        count += total
    return gram, moment, count


def _document_weights(dataset: RankingDataset) -> np.ndarray:
    weights = np.ones(dataset.n_docs) if dataset.document_weights is None else dataset.document_weights
    if dataset.query_weights is not None:
        weights = weights * np.repeat(dataset.query_weights, dataset.query_sizes)
    return weights
