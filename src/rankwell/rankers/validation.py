"""Validation: the figures that a training run measures after each step, and the one that it watches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, Parameter
from rankwell.metrics.evaluator import MetricEvaluator
from rankwell.metrics.metric import Metric
from rankwell.metrics.names import AnyMetric, parse_metric
from rankwell.rankers.base import WATCHED


class Validation:
    """The means of a metric over the queries of validation sets, for any number of rankings.

    Parameters
    ----------
    eval_sets : sequence of RankingDataset
        Their labels, queries and weights are used; features are not read. The last one is watched.
    metric : str, Metric or callable
        See `rankwell.metrics.names.parse_metric`.
    convention : str
    n_jobs : int, optional

    Attributes
    ----------
    names : tuple of str
        The names of the figures in a history, "eval_set 1 ndcg@10" and so on, and last the watched one.
    name : str
        The name of the watched figure: "validation ndcg@10".
    metric, convention : str
    """

    def __init__(
        self, eval_sets: Sequence[RankingDataset], metric: AnyMetric, convention: str, n_jobs: int | None = None
    ) -> None:
        self._n_jobs = n_jobs
        parsed = parse_metric(metric, parameter="eval_metric")
        self.metric, self._is_named = parsed.name, isinstance(parsed, Metric)
        self.convention = convention
        self.name = f"{WATCHED}{self.metric}"
        others = range(1, len(eval_sets))
        self.names = (*(f"eval_set {number} {self.metric}" for number in others), self.name)
        self._evaluators = [MetricEvaluator(part, metric, convention, n_jobs=n_jobs) for part in eval_sets]
        self._ends = np.cumsum([part.n_docs for part in eval_sets])
        for part, evaluator in zip(eval_sets, self._evaluators, strict=True):
            if not np.isnan(evaluator.mean(np.zeros(part.n_docs))):
                continue
            if not self._is_named:
                raise DataError(
                    f"the function {self.metric} gives no number for any query of ",
                    Parameter("eval_set"),
                    ", only NaN. A query that it gives NaN for does not count; one at least must.",
                )
            raise DataError(
                "no query of ",
                Parameter("eval_set"),
                f" counts for {self.metric} under the convention {convention!r}: none has a relevant document. "
                "Choose another metric or convention, or other validation data.",
            )

    def measure(self, scores: np.ndarray) -> float:
        """The watched mean when documents are ranked by `scores`, float64 (all documents of the sets,)."""
        return self._means(len(self._evaluators) - 1, [scores])[0]

    def measure_all(self, scores: np.ndarray) -> dict[str, float]:
        """The mean of every set, by its name in a history."""
        return self.measure_steps([scores])[0]

    def measure_steps(self, scores: Sequence[np.ndarray]) -> list[dict[str, float]]:
        """`measure_all` of the scores after each of some steps."""
        of_sets = [self._means(number, scores) for number in range(len(self.names))]
        return [dict(zip(self.names, means, strict=True)) for means in zip(*of_sets, strict=True)]

    def _means(self, number: int, scores: Sequence[np.ndarray]) -> list[float]:
        evaluator, end = self._evaluators[number], int(self._ends[number])
        return evaluator.mean_of_each([of_step[end - evaluator.queries.n_docs : end] for of_step in scores])
