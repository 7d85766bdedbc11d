"""How fast is a forest evaluated: 1,000 trees of 64 leaves, 136 features, for 10,000, 1,000 and 1 documents?

The same trees in every library, 32-bit rows in memory. Each library is tried with one and with two threads (treelite
also with and without quantised thresholds), and the fastest counts, for each number of documents. Ours has its default
threads, at most two. One document means a different one at each call, 200 of them, so that the branch predictor cannot
learn them. The last rows are symmetric trees, which are evaluated as tables.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.rivals import (
    catboost_predict,
    lightgbm_predict,
    lleaves_predict,
    onnx_runtime,
    treelite_predict,
    xgboost_predict,
)
from benchmarks.tree_cases import forest_ranker, grow_forest, grow_symmetric_forest, rows_like_a_feature_set
from rankwell.scoring.reference_scores import reference_scores
from rankwell.scoring.scorer import RankerScorer

N_FEATURES, N_THREADS, N_SINGLE = 136, 2, 200
RIVALS = (lightgbm_predict, xgboost_predict, onnx_runtime, treelite_predict, lleaves_predict)
# Scores of a rival that sums in float32 may differ by this share of the largest score.
_TOLERANCE = 1e-5

Score = Callable[[np.ndarray], np.ndarray]


def run(bench: Benchmark) -> None:
    n_trees, n_leaves = (20, 16) if bench.quick else (1000, 64)
    trees = grow_forest(n_trees, n_leaves, N_FEATURES)
    description = forest_ranker(trees, N_FEATURES)
    rows = rows_like_a_feature_set(500 if bench.quick else 10_000, N_FEATURES, seed=2)
    scorer = RankerScorer(description)

    def ours(part: np.ndarray) -> np.ndarray:
        return scorer.score(part, n_jobs=N_THREADS)

    sample = rows[:100]
    bench.check("the same bits as the reference", bool((ours(sample) == reference_scores(description, sample)).all()))
    bench.check("one document as in a batch", bool((ours(sample[:1]) == ours(sample)[:1]).all()))
    rivals = _prepare_rivals(bench, trees, rows, ours(rows))
    sizes = (500, 100, 1) if bench.quick else (10_000, 1_000, 1)
    for n_docs in sizes:
        _compare(bench, rows, n_docs, ours, rivals)
    _record_symmetric(bench, rows, n_trees, int(np.log2(n_leaves)), ours)


def _record_symmetric(bench: Benchmark, rows: np.ndarray, n_trees: int, depth: int, other_trees: Score) -> None:
    """As many symmetric trees of as many leaves, beside the others, and beside CatBoost's, which are its own."""
    description = forest_ranker(grow_symmetric_forest(n_trees, depth, N_FEATURES), N_FEATURES)
    scorer = RankerScorer(description)
    sample = rows[:100]
    same = bool((scorer.score(sample) == reference_scores(description, sample)).all())
    bench.check("symmetric trees: the same bits as the reference", same)
    n_docs = len(rows)
    own = _seconds_a_call(bench, "rankwell, symmetric", rows, n_docs, lambda part: scorer.score(part, n_jobs=N_THREADS))
    rivals = {"ours, trees that are not symmetric": [other_trees]}
    if catboost_predict.IS_INSTALLED and not bench.quick:
        rivals[catboost_predict.NAME] = catboost_predict.prepare(rows[:2000], n_trees, depth, N_THREADS)
    for name, forms in rivals.items():
        theirs = min(
            _seconds_a_call(bench, f"{name}, form {number}, symmetric", rows, n_docs, predict)
            for number, predict in enumerate(forms)
        )
        bench.record(
            f"{n_docs:,} documents, {n_trees:,} symmetric trees of {2**depth} leaves",
            value=own * 1e3,
            unit="ms",
            rival=name,
            rival_value=theirs * 1e3,
        )


def _prepare_rivals(bench: Benchmark, trees: object, rows: np.ndarray, scores: np.ndarray) -> dict[str, list[Score]]:
    rivals: dict[str, list[Score]] = {}
    for module in RIVALS:
        if not module.IS_INSTALLED:
            continue
        rivals[module.NAME] = module.prepare(trees, N_FEATURES)
        difference = max(float(np.abs(predict(rows) - scores).max()) for predict in rivals[module.NAME])
        difference /= float(np.abs(scores).max())
        bench.check(f"{module.NAME} gives the same scores", difference <= _TOLERANCE, f"difference {difference:.1e}")
    return rivals


def _compare(bench: Benchmark, rows: np.ndarray, n_docs: int, ours: Score, rivals: dict[str, list[Score]]) -> None:
    own = _seconds_a_call(bench, f"rankwell, {n_docs} documents", rows, n_docs, ours)
    theirs = {
        name: min(
            _seconds_a_call(bench, f"{name}, form {number}, {n_docs} documents", rows, n_docs, predict)
            for number, predict in enumerate(forms)
        )
        for name, forms in rivals.items()
    }
    fastest = min(theirs, key=lambda name: theirs[name], default=None)
    absent = [f"{module.NAME} cannot be used here" for module in RIVALS if not module.IS_INSTALLED]
    others = ", ".join([f"{name} {seconds * 1e3:.3g} ms" for name, seconds in theirs.items()] + absent)
    bench.record(
        f"{n_docs:,} document{'s' if n_docs > 1 else ''}, each at its best number of threads",
        value=own * 1e3,
        unit="ms",
        target=theirs[fastest] * 1e3 if fastest else None,
        rival=f"the fastest: {fastest}" if fastest else "the fastest",
        rival_value=theirs[fastest] * 1e3 if fastest else None,
        note=others,
    )


def _seconds_a_call(bench: Benchmark, name: str, rows: np.ndarray, n_docs: int, score: Score) -> float:
    if n_docs > 1:
        part = np.ascontiguousarray(rows[:n_docs])
        return bench.time(name, lambda: score(part), repeat=3 if bench.quick else 9).minimum
    singles = cycle([np.ascontiguousarray(rows[i : i + 1]) for i in range(N_SINGLE)])

    def each_once() -> None:
        for _ in range(N_SINGLE):
            score(next(singles))

    return bench.time(f"{name} ({N_SINGLE} calls)", each_once, repeat=3 if bench.quick else 15).minimum / N_SINGLE
