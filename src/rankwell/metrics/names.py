"""Metrics by name: ``"ndcg@10"`` to a `Metric`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from rankwell.errors import ParameterError
from rankwell.metrics.average_precision import AVERAGE_PRECISION
from rankwell.metrics.err import ERR
from rankwell.metrics.kendall_tau import KENDALL_TAU
from rankwell.metrics.metric import FunctionMetric, Metric, MetricFamily
from rankwell.metrics.ndcg import MEAN_NDCG, NDCG
from rankwell.metrics.pairwise_accuracy import PAIRWISE_ACCURACY
from rankwell.metrics.precision import PRECISION
from rankwell.metrics.recall import RECALL
from rankwell.metrics.reciprocal_rank import RECIPROCAL_RANK

FAMILIES: dict[str, MetricFamily] = {
    family.name: family
    for family in (
        NDCG,
        MEAN_NDCG,
        AVERAGE_PRECISION,
        RECIPROCAL_RANK,
        PRECISION,
        RECALL,
        ERR,
        PAIRWISE_ACCURACY,
        KENDALL_TAU,
    )
}


# What names a metric: its name, the metric itself, or a function of one query's labels and scores.
AnyMetric = str | Metric | FunctionMetric | Callable[[np.ndarray, np.ndarray], float]


def parse_metric(name: AnyMetric, parameter: str = "metric") -> Metric | FunctionMetric:
    """The metric that a name means: a family, and ``@k`` if it stops at rank k. Case does not matter.

    A function of a query's labels and scores is a metric too (`FunctionMetric`). `parameter` is what messages call it.
    """
    if isinstance(name, Metric | FunctionMetric):
        return name
    if callable(name):
        return FunctionMetric(name)
    if not isinstance(name, str):
        raise ParameterError(f"must be the name of a metric or a function, got {name!r}.", parameter=parameter)
    metric = _named_metric(name)
    if metric is None:
        spellings = ", ".join(family.spellings for family in FAMILIES.values())
        raise ParameterError(f"must be one of {spellings} (K a rank from 1 on), got {name!r}.", parameter=parameter)
    return metric


@lru_cache(maxsize=256)
def _named_metric(name: str) -> Metric | None:
    """Kept, because a small evaluation takes hardly longer than reading the names of its metrics."""
    family_name, at, cutoff = name.strip().lower().partition("@")
    family = FAMILIES.get(family_name)
    if family is None or (at and not (cutoff.isascii() and cutoff.isdigit())):
        return None
    return Metric(family, int(cutoff) if at else None)


def parse_metrics(
    names: AnyMetric | Sequence[AnyMetric], parameter: str = "metrics"
) -> tuple[Metric | FunctionMetric, ...]:
    """Several metrics: a sequence of names, or one text with commas. Each is kept once, in the order given."""
    if isinstance(names, str):
        names = [part for part in names.split(",") if part.strip()]
    elif isinstance(names, Metric | FunctionMetric) or callable(names):
        names = [names]
    metrics = tuple(dict.fromkeys(parse_metric(name, parameter) for name in names))
    if not metrics:
        raise ParameterError("must name at least one metric, for instance ndcg@10,map.", parameter=parameter)
    _refuse_equal_names(metrics)
    return metrics


def _refuse_equal_names(metrics: Sequence[Metric | FunctionMetric]) -> None:
    """Two functions may have the same name; figures are told apart by it."""
    names = [metric.name for metric in metrics]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"two metrics are called {twice!r}: give the function another __name__.")
