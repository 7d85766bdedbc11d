"""Is the cost of a RankBoost round the function of documents and features that the FAR paper fits (figures 7 and 9)?

A round that searches every feature, at 16 sizes. a + b·documents + c·documents·features is fitted to half of them, by
relative error, and predicts the other half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.rankboost_cases import queries_of
from benchmarks.rankboost_cpu import check_rounds, random_bins
from benchmarks.rankboost_routines import time_rounds
from rankwell.data.shapes import Shape, shape_named
from rankwell.kernels.threads import available_cores

DOCUMENTS = (30_000, 60_000, 120_000, 240_000)
FEATURES = (80, 160, 320, 640)


def run(bench: Benchmark) -> None:
    check_rounds(bench)

    def round_seconds(shape: Shape) -> float:
        queries = queries_of(shape)
        return time_rounds(bench, random_bins(shape, queries), shape.n_features, queries, available_cores())

    record_surface(bench, round_seconds)


def record_surface(bench: Benchmark, round_seconds: Callable[[Shape], float]) -> None:
    """Fit the function to every second size, and record the others."""
    small = 20 if bench.quick else 1
    sizes = [(n_docs // small, n_features) for n_docs in DOCUMENTS for n_features in FEATURES]
    far = shape_named("far")
    seconds = np.array(
        [
            round_seconds(replace(far, n_docs=n_docs, n_queries=n_docs * far.n_queries // far.n_docs, n_features=width))
            for n_docs, width in sizes
        ]
    )
    fitted = np.array([(number + number // len(FEATURES)) % 2 == 0 for number in range(len(sizes))])
    predicted = predictions(sizes, seconds, fitted)
    for (n_docs, n_features), own, other in zip(
        np.array(sizes)[~fitted].tolist(), seconds[~fitted], predicted[~fitted], strict=True
    ):
        bench.record(
            f"round, {n_docs:,} documents, {n_features} features",
            value=own * 1e3,
            unit="ms",
            note=f"predicted {other * 1e3:.4g} ms",
        )
    errors = np.abs(predicted - seconds)[~fitted] / seconds[~fitted]
    bench.record("median error of the prediction", value=float(np.median(errors)) * 100, unit="%")


def predictions(sizes: list[tuple[int, int]], seconds: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """The function's values at all sizes, from those that are fitted."""
    documents, features = np.array(sizes, dtype=np.float64).T
    terms = np.stack([np.ones_like(documents), documents, documents * features], axis=1)
    constants, *_ = np.linalg.lstsq(terms[fitted] / seconds[fitted, None], np.ones(int(fitted.sum())), rcond=None)
    return terms @ constants
