"""What metrics need of the labels only (gains, ideal DCG, label levels), computed once for many rankings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwell.errors import DataError, ParameterError
from rankwell.kernels.ranking_metrics.rules import ERR, PAIR_KINDS, Judgments
from rankwell.kernels.threads import kernel_threads
from rankwell.metrics.conventions import Convention
from rankwell.metrics.judged_queries import JudgedQueries
from rankwell.metrics.metric import Metric


def make_judgments(
    queries: JudgedQueries,
    metrics: Sequence[Metric],
    convention: Convention,
    *,
    max_grade: float,
    n_jobs: int | None = None,
) -> Judgments:
    """The label-dependent parts of `metrics` under `convention`."""
    from rankwell.kernels.ranking_metrics.judgments import prepare_judgments, stop_probabilities

    check_negative_labels(queries, metrics, convention)
    needs_stops = any(metric.family.kind == ERR for metric in metrics)
    needs_levels = any(metric.family.kind in PAIR_KINDS for metric in metrics)
    n_docs, n_queries = queries.n_docs, queries.n_queries
    judgments = Judgments(
        labels=queries.labels if queries.is_missed is None else queries.labels.copy(),
        gains=np.empty(n_docs),
        stops=np.empty(n_docs if needs_stops else 0),
        levels=np.empty(n_docs if needs_levels else 0, dtype=np.int64),
        ideal_dcg=np.empty(n_docs),
        query_ptr=queries.query_ptr,
        n_relevant=np.empty(n_queries, dtype=np.int64),
        n_pairs=np.empty(n_queries, dtype=np.int64),
        discounts=convention.discounts(int(np.diff(queries.query_ptr).max(initial=0))),
    )
    rules = convention.rules()
    with kernel_threads(n_jobs):
        prepare_judgments(judgments, rules.exponential_gain, rules.relevance_level)
        if needs_stops:
            stop_probabilities(queries.labels, max_grade, judgments.stops)
    if queries.is_missed is not None:
        # They count in the ideal ranking and among the relevant documents, which are computed, but nobody sees them.
        judgments.labels[queries.is_missed] = -np.inf
        judgments.gains[queries.is_missed] = 0.0
        judgments.stops[queries.is_missed[: len(judgments.stops)]] = 0.0
    return judgments


def highest_grade(queries: JudgedQueries, max_grade: float | None) -> float:
    """The highest grade of the scale, for ERR: `max_grade`, or the highest label if it was not given."""
    highest = float(queries.labels.max(initial=0.0))
    if max_grade is None:
        return highest
    if not highest <= max_grade < np.inf:
        row = queries.user_row(int(queries.labels.argmax())) if queries.n_docs else 0
        raise ParameterError(
            f"must be the highest grade of the scale, got {max_grade}: row {row} has label {highest:g}.",
            parameter="max_grade",
        )
    return float(max_grade)


def check_negative_labels(queries: JudgedQueries, metrics: Sequence[Metric], convention: Convention) -> None:
    """Refuse labels below 0 where a metric reads gains, unless they have none under the convention."""
    reading = [metric.name for metric in metrics if metric.family.reads_gains]
    if not reading or convention.negative_labels != "refuse" or queries.labels.min(initial=0.0) >= 0.0:
        return
    row = int((queries.labels < 0.0).argmax())
    raise DataError(
        f"{reading[0]} under {convention.name} needs labels of 0 or more: row {queries.user_row(row)} has label "
        f"{queries.labels[row]:g}. Shift the labels, use the convention trec (there negative labels have no gain), or "
        "a metric that only compares labels (pairwise_accuracy, kendall_tau)."
    )
