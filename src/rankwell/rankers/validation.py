"""Validation: the figure that a training run watches."""

from __future__ import annotations

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, Parameter
from rankwell.metrics.evaluator import MetricEvaluator


class Validation:
    """The mean of a metric over the validation queries, for as many rankings as wanted.

    Parameters
    ----------
    dataset : RankingDataset
        Its labels and queries count; features are not read.
    metric, convention : str
    n_jobs : int, optional

    Attributes
    ----------
    name : str
        Of the figure in a history: "validation ndcg@10".
    metric, convention : str
    """

    def __init__(self, dataset: RankingDataset, metric: str, convention: str, n_jobs: int | None = None) -> None:
        self.name = f"validation {metric}"
        self.metric = metric
        self.convention = convention
        self._evaluator = MetricEvaluator(dataset, metric, convention, n_jobs=n_jobs)
        if np.isnan(self.measure(np.zeros(dataset.n_docs))):
            raise DataError(
                "no query of ",
                Parameter("eval_set"),
                f" counts for {metric} under the convention {convention!r}: none has a relevant document. Choose "
                "another metric or convention, or other validation data.",
            )

    def measure(self, scores: np.ndarray) -> float:
        """The metric's mean when documents are ranked by `scores`, float64 (n_docs,)."""
        return float(self._evaluator.mean(scores))
