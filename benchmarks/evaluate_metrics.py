"""How long does it take to evaluate a ranking of 6,306 queries with 120 documents each?

Ours and each rival get the same metrics on the same arrays, and must give the same figures first. A rival is timed with
the data already in the form it needs; ours from plain arrays to the finished table, checks and ideal rankings included.
"""

from __future__ import annotations

import importlib.util
import time

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.rivals.metric_libraries import RIVALS, MetricRival
from rankwell import compare, evaluate
from rankwell.metrics import MetricEvaluator
from rankwell.metrics.judged_queries import JudgedQueries

ALL = [
    *(f"ndcg@{k}" for k in range(1, 11)),
    *("mean_ndcg", "map", "mrr", "p@5", "recall@10", "err@10", "pairwise_accuracy", "kendall_tau"),
]
SHARED = ["ndcg@1", "ndcg@5", "ndcg@10", "map@10", "p@5", "recall@10", "mrr"]


def make_queries(n_queries: int, n_docs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels 0 to 4 with shares like MSLR-WEB's, and scores that are correlated with them."""
    rng = np.random.default_rng(0)
    labels = rng.choice(5, n_queries * n_docs, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(np.float64)
    # float32 values, because trec_eval and XGBoost store only these.
    scores = (labels + rng.normal(0, 2, len(labels))).astype(np.float32).astype(np.float64)
    return labels, scores, np.arange(n_queries + 1) * n_docs


def run(bench: Benchmark) -> None:
    labels, scores, query_ptr = make_queries(*((60, 20) if bench.quick else (6_306, 120)))
    start = time.perf_counter()
    evaluate(labels, scores, metrics=ALL, query_ptr=query_ptr)
    first_seconds = time.perf_counter() - start
    _beside_rivals(bench, labels, scores, query_ptr)
    timing = bench.time(
        "rankwell, 18 metrics", lambda: evaluate(labels, scores, metrics=ALL, query_ptr=query_ptr), repeat=11
    )
    size = f"{len(query_ptr) - 1:,} queries of {query_ptr[1]} documents"
    bench.record(
        f"{len(ALL)} metrics at once, {size}",
        value=timing.minimum,
        unit="s",
        target=0.1,
        note=f"median {timing.median:.4f} s; first call of the process, which compiles or reads the compiled kernels, "
        f"{first_seconds:.1f} s",
    )
    _early_stopping(bench, labels, scores, query_ptr)
    _significance(bench, labels, scores, query_ptr)


def _metrics_of(rival: MetricRival) -> list[str]:
    metrics = [metric for metric in SHARED if rival.has(metric)]
    # scikit-learn's average precision has no cut-off; XGBoost's needs binary labels, so it is used for NDCG only.
    if rival.name in ("scikit-learn", "XGBoost"):
        metrics = [metric for metric in metrics if metric.startswith("ndcg")]
    return metrics


def _beside_rivals(bench: Benchmark, labels: np.ndarray, scores: np.ndarray, query_ptr: np.ndarray) -> None:
    for rival in RIVALS:
        metrics = _metrics_of(rival)
        names = ", ".join(metrics)

        def ours(metrics: list[str] = metrics, rival: MetricRival = rival):  # type: ignore[no-untyped-def]
            return evaluate(labels, scores, metrics=metrics, convention=rival.convention, query_ptr=query_ptr)

        rival_seconds = None
        if rival.installed:
            call = rival.prepare(labels, scores, query_ptr, metrics)
            theirs, found = call(), ours()
            worst = max(abs(found.mean[metric] - float(theirs[metric].mean())) for metric in metrics)
            bench.check(f"same means as {rival.name} under {rival.convention}", worst < 1e-9, f"differ by {worst:.1e}")
            rival_seconds = bench.time(f"{rival.name}: {names}", call, repeat=3).minimum
        timing = bench.time(f"rankwell {rival.convention}: {names}", ours, repeat=11)
        bench.record(
            f"{names} ({rival.convention})",
            value=timing.minimum,
            unit="s",
            rival=rival.name,
            rival_value=rival_seconds,
            note="rival's data prepared untimed",
        )


def _early_stopping(bench: Benchmark, labels: np.ndarray, scores: np.ndarray, query_ptr: np.ndarray) -> None:
    """The metric of a validation set after every round: both sides have the labels already."""
    evaluator = MetricEvaluator(JudgedQueries.from_arrays(labels, query_ptr=query_ptr), "ndcg@10", "gbdt")
    rival = next(rival for rival in RIVALS if rival.name == "LightGBM")
    rival_seconds = None
    if rival.installed:
        call = rival.prepare(labels, scores, query_ptr, ["ndcg@10"])
        difference = abs(evaluator.mean(scores) - float(call()["ndcg@10"]))
        bench.check("early stopping sees LightGBM's ndcg@10", difference < 1e-9, f"differ by {difference:.1e}")
        rival_seconds = bench.time("LightGBM: ndcg@10 of a round", call, repeat=7).minimum
    timing = bench.time("rankwell: ndcg@10 of a round", lambda: evaluator.mean(scores), repeat=21)
    bench.record(
        "ndcg@10 of a validation set, each round (gbdt)",
        value=timing.minimum * 1e3,
        unit="ms",
        rival=rival.name,
        rival_value=None if rival_seconds is None else rival_seconds * 1e3,
    )


def _significance(bench: Benchmark, labels: np.ndarray, scores: np.ndarray, query_ptr: np.ndarray) -> None:
    """Fisher's randomisation test between two runs, and SciPy's permutation test on the same differences."""
    n_resamples = 10_000
    # So little noise that the two runs hardly differ: p-values near 0 would not be comparable.
    noise = np.random.default_rng(1).normal(0, 0.1, len(scores))
    runs = [evaluate(labels, scores + shift, metrics="ndcg@10", query_ptr=query_ptr) for shift in (0.0, noise)]
    ours = compare(*runs, n_resamples=n_resamples)
    rival_seconds = None
    if importlib.util.find_spec("scipy") is not None:
        from scipy.stats import permutation_test

        differences = runs[0].per_query["ndcg@10"] - runs[1].per_query["ndcg@10"]
        differences = differences[~np.isnan(differences)]

        def by_scipy() -> float:
            return permutation_test(
                (differences,), np.mean, permutation_type="samples", n_resamples=n_resamples, batch=250, axis=-1
            ).pvalue

        difference = abs(by_scipy() - ours.fisher_p)
        # Each p-value is a share of 10,000 draws: standard error at most 0.005, and 0.0071 of their difference.
        bench.check("SciPy's p-value up to the noise of drawing", difference < 0.04, f"differ by {difference:.4f}")
        rival_seconds = bench.time("SciPy: permutation test", by_scipy, repeat=1).minimum
    timing = bench.time("rankwell: compare", lambda: compare(*runs, n_resamples=n_resamples), repeat=7)
    bench.record(
        f"Fisher's randomisation test, {n_resamples:,} draws",
        value=timing.minimum,
        unit="s",
        rival="SciPy",
        rival_value=rival_seconds,
        note="ours with the t-test",
    )
