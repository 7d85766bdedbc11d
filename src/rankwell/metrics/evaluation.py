"""Evaluation: how good a ranking is, per query and in the mean, with the convention next to every number."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwell.errors import DataError
from rankwell.metrics.conventions import DEFAULT, Convention, get_convention
from rankwell.metrics.evaluator import MetricEvaluator
from rankwell.metrics.judged_queries import JudgedQueries, as_scores
from rankwell.metrics.metric import FunctionMetric
from rankwell.metrics.names import AnyMetric

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset

logger = logging.getLogger("rankwell")


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`.

    Attributes
    ----------
    convention : Convention
    query_ids : array (n_queries,)
    per_query : dict of float64 arrays (n_queries,)
        By metric name; NaN where the query is left out.
    mean : dict of float
        By metric name: the mean over the queries that count, weighted if there are query weights. Pairwise accuracy
        counts all pairs of all queries together.
    max_grade : float
        The highest grade that ERR was computed with.
    functions : frozenset of str
        The metrics that are functions of the caller's: no convention applies to them.
    """

    convention: Convention
    query_ids: np.ndarray = field(repr=False)
    per_query: dict[str, np.ndarray] = field(repr=False)
    mean: dict[str, float]
    max_grade: float
    functions: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def n_queries(self) -> int:
        return len(self.query_ids)

    def n_counted(self, metric: str) -> int:
        """How many queries count in the mean of a metric."""
        return int((~np.isnan(self.per_query[metric])).sum())

    def __repr__(self) -> str:
        figures = ", ".join(
            f"{name}={mean:.4f}" if name in self.functions else f"{name} ({self.convention})={mean:.4f}"
            for name, mean in self.mean.items()
        )
        return f"Evaluation({figures}; {self.n_queries} queries)"

    def table(self) -> str:
        """The means as text, one metric per line, with its convention and the number of queries that count."""
        header = ("metric", "mean", "convention", "queries")
        rows = [
            (name, f"{mean:.4f}", self._convention_of(name) or "-", f"{self.n_counted(name)} of {self.n_queries}")
            for name, mean in self.mean.items()
        ]
        widths = [max(len(row[column]) for row in (header, *rows)) for column in range(4)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (header, *rows)
        ]
        return "\n".join(line.rstrip() for line in lines)

    def _convention_of(self, metric: str) -> str | None:
        return None if metric in self.functions else self.convention.name

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Everything as JSON values; a missing figure is None."""
        content: dict[str, Any] = {
            "convention": self.convention.name,
            "rules": self.convention.to_dict(),
            "max_grade": self.max_grade,
            "n_queries": self.n_queries,
            "metrics": {
                name: {
                    "mean": _number_or_none(mean),
                    "convention": self._convention_of(name),
                    "n_queries": self.n_counted(name),
                }
                for name, mean in self.mean.items()
            },
        }
        if per_query:
            content["query_ids"] = self.query_ids.tolist()
            content["per_query"] = {
                name: [_number_or_none(value) for value in values.tolist()] for name, values in self.per_query.items()
            }
        return content


def evaluate(
    labels_or_dataset: RankingDataset | JudgedQueries | Any,
    scores: Any,
    *,
    metrics: AnyMetric | Sequence[AnyMetric] = ("ndcg@10", "map"),
    convention: str | Convention = DEFAULT,
    qid: Any = None,
    group: Any = None,
    query_ptr: Any = None,
    query_weights: Any = None,
    max_grade: float | None = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """How good the ranking by `scores` is.

    Parameters
    ----------
    labels_or_dataset : RankingDataset, JudgedQueries, array (n_docs,), or mapping
        With labels as an array, `qid`, `group` or `query_ptr` says which rows belong to a query. Without them all rows
        are one query, and a warning says so; `group=[n_docs]` says that this is meant. Judgments as a mapping, grades
        by query and document as `rankwell.read_qrels` gives them, are for a run.
    scores : array (n_docs,), or mapping
        The larger the better, in the order in which the rows were given (the user's order). Infinities rank first or
        last; NaN is an error. A run as a mapping, scores by query and document as `rankwell.read_run` gives them, is
        measured over all judged queries, as trec_eval -c does: one that it lacks counts as 0.
    metrics : str or sequence
        Names as `rankwell.metrics.parse_metrics` takes them, for instance ``"ndcg@10,map"``; or functions of one
        query's labels and scores that return a number, the larger the better (NaN leaves the query out).
    convention : str or Convention
        One of letor4, mslr, gbdt, catboost, trec, sklearn, burges (the default; see `rankwell.metrics.conventions`).
    query_weights : array (n_queries,), optional
        How much each query counts in the mean, in the order of the queries' first rows; by default the data set's own
        weights.
    max_grade : float, optional
        The highest grade of the grading scale, for ERR; by default the highest label of the data.
    n_jobs : int, optional
        Threads; None or -1 is every core.

    Examples
    --------
    >>> import rankwell
    >>> rankwell.evaluate([2, 0, 1], [0.3, 0.2, 0.1], group=[3], metrics="mrr,p@2", convention="letor4").mean
    {'mrr': 1.0, 'p@2': 0.5}
    >>> qrels, run = {"q1": {"d3": 1, "d8": 1}}, {"q1": {"d8": 0.5, "d4": 0.25}}
    >>> rankwell.evaluate(qrels, run, metrics="map", convention="trec").mean
    {'map': 0.5}
    """
    if isinstance(labels_or_dataset, Mapping):
        labels_or_dataset, scores = _of_run(labels_or_dataset, scores, get_convention(convention))
    queries = _as_queries(labels_or_dataset, qid=qid, group=group, query_ptr=query_ptr)
    _refuse_dataset(scores)
    evaluator = MetricEvaluator(
        queries, metrics, convention, max_grade=max_grade, query_weights=query_weights, n_jobs=n_jobs
    )
    if queries.doc_idx is not None:
        scores = queries.to_own_order(as_scores(scores, queries.n_docs))
    values = evaluator.per_query(scores)
    return Evaluation(
        convention=evaluator.convention,
        query_ids=queries.query_ids,
        per_query={metric.name: row for metric, row in zip(evaluator.metrics, values, strict=True)},
        mean=evaluator.means_of(values),
        max_grade=evaluator.max_grade,
        functions=frozenset(metric.name for metric in evaluator.metrics if isinstance(metric, FunctionMetric)),
    )


def _of_run(qrels: Mapping[str, Any], run: Any, convention: Convention) -> tuple[JudgedQueries, np.ndarray]:
    from rankwell.metrics.missed_documents import queries_of_run

    if not isinstance(run, Mapping):
        raise DataError(
            "scores must be a run, scores by query and document, because the judgments are by query and document, "
            f"got {type(run).__name__}."
        )
    return queries_of_run(qrels, run, convention)


def _as_queries(labels_or_dataset: Any, *, qid: Any, group: Any, query_ptr: Any) -> JudgedQueries:
    from rankwell.data.dataset import RankingDataset

    if isinstance(labels_or_dataset, JudgedQueries):
        return labels_or_dataset
    if isinstance(labels_or_dataset, RankingDataset):
        if qid is not None or group is not None or query_ptr is not None:
            raise DataError("a data set knows its queries: leave qid, group and query_ptr out, or pass labels instead.")
        return JudgedQueries.from_dataset(labels_or_dataset)
    queries = JudgedQueries.from_arrays(labels_or_dataset, qid=qid, group=group, query_ptr=query_ptr)
    if qid is None and group is None and query_ptr is None and queries.n_docs > 1:
        logger.warning(
            "without qid, group or query_ptr all %d rows are evaluated as one query: pass one of them (group=[%d] if "
            "they are one query).",
            queries.n_docs,
            queries.n_docs,
        )
    return queries


def _refuse_dataset(scores: Any) -> None:
    """Refuse exchanged arguments before labels are checked: an error about the labels would be misleading."""
    from rankwell.data.dataset import RankingDataset

    if isinstance(scores, RankingDataset):
        raise DataError(
            "scores must be numbers, one per document, got a RankingDataset: pass it first, then the scores."
        )


def _number_or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
