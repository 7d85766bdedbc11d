"""How fast does LambdaMART grow trees on the CPU?

Processor time of a tree on one thread, gradients included, binning not, tree by tree in turn with LightGBM in the same
process, the median of several; LightGBM in the faster of its two layouts, with float gradients and with quantised ones.
The trees of both have the same settings (LightGBM's defaults but for the number of leaves).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.lambdamart_cuda import slabs_of, tree_problem
from benchmarks.letor_folds import letor_fold
from benchmarks.rivals import lightgbm_trees
from rankwell.data.dataset import RankingDataset
from rankwell.data.synthetic import make_ranking
from rankwell.kernels.threads import kernel_threads
from rankwell.kernels.trees.contract import TreeProblem
from rankwell.kernels.trees.cpu.booster import CpuTreeBooster
from rankwell.kernels.trees.cpu.lambdas import pair_gradient_source
from rankwell.kernels.trees.reference.lambdas import query_lambdas

TREES = 9
# How many times LightGBM's processor time, with float gradients, must be ours.
TARGETS = {
    ("mslr10k", 31): 4.0,
    ("240k x 136", 255): 3.0,
    ("MQ2007", 7): 3.0,
    ("MQ2007", 31): 3.0,
    ("far / 4", 31): 4.0,
}
QUANTISED_TARGET = 2.5
NANOSECONDS_A_DOCUMENT = 30.0


def run(bench: Benchmark) -> None:
    cases = {
        "mslr10k": lambda: make_ranking("mslr10k", scale=0.02 if bench.quick else 1.0),
        "240k x 136": lambda: make_ranking("mslr10k", n_docs=12_000 if bench.quick else 240_000),
        "MQ2007": lambda: _letor(bench),
        "far / 4": lambda: make_ranking("far", n_docs=10_000 if bench.quick else 299_178),
    }
    for name, make in cases.items():
        dataset = make()
        if dataset is None:
            continue
        data = slabs_of(dataset)
        for (of, n_leaves), target in TARGETS.items():
            if of == name:
                record_trees(bench, name, dataset, tree_problem(data, n_leaves), target)
        if name == "mslr10k":
            record_lambdas(bench, tree_problem(data, 31))


def _letor(bench: Benchmark) -> RankingDataset | None:
    if bench.quick:
        return make_ranking("mq2007", scale=0.05)
    fold = letor_fold(bench, "MQ2007", 1)
    return None if fold is None else fold.train


def record_trees(bench: Benchmark, name: str, dataset: RankingDataset, problem: TreeProblem, target: float) -> None:
    n_leaves = problem.settings.n_leaves
    booster = CpuTreeBooster(problem, np.zeros(problem.n_docs, np.float32), n_jobs=1)
    rivals = lightgbm_trees.start_boosters(dataset, n_leaves, 1) if lightgbm_trees.IS_INSTALLED else {}
    n_trees = 2 if bench.quick else TREES
    ours: list[float] = []
    theirs: dict[str, list[list[float]]] = {form: [[] for _ in layouts] for form, layouts in rivals.items()}
    for number in range(n_trees + 1):
        ours.append(_processor_seconds(lambda number=number: booster.boost(number)))
        for form, layouts in rivals.items():
            for times, rival in zip(theirs[form], layouts, strict=True):
                times.append(_processor_seconds(rival.update))
    # The first tree, of scores that are all 0, is not typical.
    value = float(np.median(ours[1:]))
    for form, layouts in theirs.items():
        rival = min(float(np.median(times[1:])) for times in layouts)
        least = QUANTISED_TARGET if "quantised" in form else target
        bench.record(
            f"{name}, {n_leaves} leaves, processor time of a tree, one thread",
            value=value * 1e3,
            unit="ms",
            target=None if bench.quick else rival / least * 1e3,
            rival=form,
            rival_value=rival * 1e3,
            note=f"{problem.n_docs:,} documents, {len(problem.columns.sizes)} columns",
        )
    if not theirs:
        bench.record(f"{name}, {n_leaves} leaves, processor time of a tree", value=value * 1e3, unit="ms")


def record_lambdas(bench: Benchmark, problem: TreeProblem) -> None:
    """Gradients alone, first compared with float64 on some queries."""
    assert problem.loss is not None
    assert problem.queries is not None
    scores = np.random.default_rng(0).normal(size=problem.n_docs).astype(np.float32)
    gradient, hessian = np.zeros((2, problem.n_docs), np.float32)
    with kernel_threads(1):
        fill = pair_gradient_source(problem.loss, problem.queries)
        fill(scores, gradient, hessian)
        ptr, gain = problem.queries.query_ptr, problem.queries.gain
        errors, largest = [], 0.0
        for query in range(min(10, len(ptr) - 1)):
            rows = slice(int(ptr[query]), int(ptr[query + 1]))
            expected, _ = query_lambdas("lambdarank", scores[rows], gain[rows].astype(float), truncation=30)
            errors.append(np.abs(gradient[rows] - expected).max(initial=0.0))
            largest = max(largest, np.abs(expected).max(initial=0.0))
        bench.check("gradients are within 1e-6 of the largest", max(errors) <= 1e-6 * largest)
        times = [_processor_seconds(lambda: fill(scores, gradient, hessian)) for _ in range(2 if bench.quick else 7)]
    bench.record(
        "lambdas, processor time of a document, one thread",
        value=min(times) / problem.n_docs * 1e9,
        unit="ns",
        target=None if bench.quick else NANOSECONDS_A_DOCUMENT,
    )


def _processor_seconds(call: Callable[[], Any]) -> float:
    before = time.process_time()
    call()
    return time.process_time() - before
