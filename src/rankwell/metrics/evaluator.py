"""MetricEvaluator: judgments prepared once, then any number of rankings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.ranking_metrics.rules import TIES_LOWEST_LABEL_FIRST
from rankwell.kernels.threads import kernel_threads
from rankwell.metrics.conventions import DEFAULT, Convention, get_convention
from rankwell.metrics.judged_queries import JudgedQueries, as_query_weights, as_scores
from rankwell.metrics.judgments import highest_grade, make_judgments
from rankwell.metrics.metric import FunctionMetric, Metric
from rankwell.metrics.names import AnyMetric, parse_metrics

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset


class MetricEvaluator:
    """Evaluates rankings of the same judged queries again and again, as early stopping does every round.

    Gains, ideal DCGs and label levels are computed at construction; `mean` only ranks and sums, and ranks no deeper
    than the metrics look.

    Parameters
    ----------
    dataset : RankingDataset or JudgedQueries
    metrics : str, Metric, callable or sequence of them
        For instance ``"ndcg@10"`` or ``("ndcg@10", "map")``; a function of one query's labels and scores is a metric
        too (`FunctionMetric`).
    convention : str or Convention
    max_grade : float, optional
        The highest grade of the grading scale, for ERR; by default the highest label of the data.
    query_weights : array (n_queries,), optional
        How much each query counts in the mean; by default the data set's own weights, or equal ones.
    n_jobs : int, optional
        Threads; None or -1 is every core.

    Attributes
    ----------
    queries : JudgedQueries
    metrics : tuple of Metric or FunctionMetric
    convention : Convention
    max_grade : float
        The highest grade that ERR was computed with.
    """

    def __init__(
        self,
        dataset: RankingDataset | JudgedQueries,
        metrics: AnyMetric | Sequence[AnyMetric] = "ndcg@10",
        convention: str | Convention = DEFAULT,
        *,
        max_grade: float | None = None,
        query_weights: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        queries = dataset if isinstance(dataset, JudgedQueries) else JudgedQueries.from_dataset(dataset)
        self.queries = queries
        self.metrics = parse_metrics(metrics)
        self.convention = get_convention(convention)
        self._n_jobs = n_jobs
        self._weights = (
            queries.query_weights if query_weights is None else as_query_weights(query_weights, queries.n_queries)
        )
        self._rules = self.convention.rules()
        named = tuple(metric for metric in self.metrics if isinstance(metric, Metric))
        self._is_named = np.array([isinstance(metric, Metric) for metric in self.metrics], dtype=bool)
        self._kinds = np.array([metric.family.kind for metric in named], dtype=np.int64)
        self._cutoffs = np.array([metric.cutoff or 0 for metric in named], dtype=np.int64)
        # A whole-list metric needs every place; so does the rule that orders ties by label, past the cut-off too.
        whole = bool((self._cutoffs == 0).any()) or self._rules.ties == TIES_LOWEST_LABEL_FIRST
        self._depth = 0 if whole else int(self._cutoffs.max(initial=0))
        self.max_grade = highest_grade(queries, max_grade)
        self._judgments = make_judgments(queries, named, self.convention, max_grade=self.max_grade, n_jobs=n_jobs)

    def per_query(self, scores: Any) -> np.ndarray:
        """Every metric of every query.

        Parameters
        ----------
        scores : array (n_docs,)
            In the data set's own order (not the user's, which differs if the rows of a query were scattered).

        Returns
        -------
        float64 array (n_metrics, n_queries)
            NaN where the convention leaves a query out.
        """
        return self._per_query_of([scores])[0]

    def _per_query_of(self, rankings: Sequence[Any]) -> np.ndarray:
        """`per_query` of several rankings, float64 (n_rankings, n_metrics, n_queries)."""
        from rankwell.kernels.ranking_metrics.rankings import evaluate_rankings

        checked = [self._checked(scores) for scores in rankings]
        named = np.empty((len(checked), len(self._kinds), self.queries.n_queries))
        if len(self._kinds):
            with kernel_threads(self._n_jobs):
                evaluate_rankings(self._judgments, checked, self._kinds, self._cutoffs, self._depth, self._rules, named)
        if self._is_named.all():
            return named
        values = np.empty((len(checked), len(self.metrics), self.queries.n_queries))
        values[:, self._is_named] = named
        for place in np.flatnonzero(~self._is_named):
            for ranking, scores in enumerate(checked):
                values[ranking, place] = self._values_of(self.metrics[place], scores)
        return values

    def _checked(self, scores: Any) -> np.ndarray:
        """The scores as documents are ranked by them."""
        checked = as_scores(scores, self.queries.n_docs)
        if self.convention.score_type == "float32":
            with np.errstate(over="ignore"):
                checked = checked.astype(np.float32).astype(np.float64)
        return checked

    def _values_of(self, metric: Metric | FunctionMetric, scores: np.ndarray) -> list[float]:
        """A function's value for every query; NaN for one without documents."""
        assert isinstance(metric, FunctionMetric)
        labels, bounds = self.queries.labels, self.queries.query_ptr.tolist()
        return [
            metric.of_query(labels[start:end], scores[start:end]) if end > start else np.nan
            for start, end in pairwise(bounds)
        ]

    def mean(self, scores: Any) -> float:
        """The mean of the first metric over the queries that count; scores as in `per_query`."""
        return next(iter(self.means(scores).values()))

    def mean_of_each(self, rankings: Sequence[Any]) -> list[float]:
        """`mean` of several rankings, each like the one before: documents are then ranked in less time."""
        return [next(iter(self.means_of(values).values())) for values in self._per_query_of(rankings)]

    def means(self, scores: Any) -> dict[str, float]:
        """The mean of every metric over the queries that count, by name; scores as in `per_query`."""
        return self.means_of(self.per_query(scores))

    def means_of(self, values: np.ndarray) -> dict[str, float]:
        """The means of what `per_query` gave; NaN where no query counts."""
        means = {}
        for metric, of_queries in zip(self.metrics, values, strict=True):
            weights = self._weights
            if isinstance(metric, Metric) and metric.family.pooled:
                pairs = self._judgments.n_pairs.astype(np.float64)
                weights = pairs if weights is None else weights * pairs
            means[metric.name] = _mean(of_queries, weights)
        return means


def metric_function(
    name: AnyMetric, convention: str | Convention = DEFAULT, *, n_jobs: int | None = None
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], float]:
    """A function of (labels, scores, query_ptr) that gives the metric's mean over queries.

    What depends on the labels is cached between calls as long as the same two arrays are passed; they must not be
    changed in between.
    """
    metrics, checked = parse_metrics(name), get_convention(convention)
    if len(metrics) != 1:
        raise ParameterError(f"metric_function takes one metric, got {', '.join(map(str, metrics))}.")
    kept: list[Any] = [None, None, None]

    def mean_of_metric(labels: np.ndarray, scores: np.ndarray, query_ptr: np.ndarray) -> float:
        if kept[0] is not labels or kept[1] is not query_ptr:
            queries = JudgedQueries.from_arrays(labels, query_ptr=query_ptr)
            kept[:] = labels, query_ptr, MetricEvaluator(queries, metrics, checked, n_jobs=n_jobs)
        return float(kept[2].mean(scores))

    return mean_of_metric


def _mean(values: np.ndarray, weights: np.ndarray | None) -> float:
    counted = ~np.isnan(values)
    if weights is None:
        n_counted = np.count_nonzero(counted)
        return float(np.add.reduce(values[counted]) / n_counted) if n_counted else float("nan")
    total = float(weights[counted].sum())
    return float((values[counted] * weights[counted]).sum() / total) if total > 0 else float("nan")
