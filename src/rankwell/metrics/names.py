"""Metrics by name: ``"ndcg@10"`` to a `Metric`."""

from __future__ import annotations

from collections.abc import Sequence

from rankwell.errors import ParameterError
from rankwell.metrics.average_precision import AVERAGE_PRECISION
from rankwell.metrics.err import ERR
from rankwell.metrics.kendall_tau import KENDALL_TAU
from rankwell.metrics.metric import Metric, MetricFamily
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


def parse_metric(name: str | Metric) -> Metric:
    """The metric that a name means: a family, and ``@k`` if it stops at rank k. Case does not matter."""
    if isinstance(name, Metric):
        return name
    family_name, at, cutoff = name.strip().lower().partition("@")
    family = FAMILIES.get(family_name)
    if family is None or (at and not (cutoff.isascii() and cutoff.isdigit())):
        spellings = ", ".join(family.spellings for family in FAMILIES.values())
        raise ParameterError(f"metric must be one of {spellings} (K a rank from 1 on), got {name!r}.")
    return Metric(family, int(cutoff) if at else None)


def parse_metrics(names: str | Metric | Sequence[str | Metric]) -> tuple[Metric, ...]:
    """Several metrics: a sequence of names, or one text with commas. Each is kept once, in the order given."""
    if isinstance(names, str):
        names = [part for part in names.split(",") if part.strip()]
    elif isinstance(names, Metric):
        names = [names]
    metrics = tuple(dict.fromkeys(parse_metric(name) for name in names))
    if not metrics:
        raise ParameterError("must name at least one metric, for instance ndcg@10,map.", parameter="metrics")
    return metrics
