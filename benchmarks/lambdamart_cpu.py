"""How fast does LambdaMART grow trees on the CPU?

Processor time of a tree on one thread, gradients included, binning not, tree by tree in turn with the rivals in the
same process, the median of several: LightGBM in the faster of its two layouts, with float gradients and with
quantised ones; XGBoost's `hist`; CatBoost's symmetric YetiRank, whose time is that of a run less that of a shorter
one. The trees of all have the same number of leaves, ours and LightGBM's the same settings (LightGBM's defaults), and
up to 255 bins a feature that hold about equally many documents. Trees of MQ2007 take a millisecond or two: they are
timed so many in a row, as they are grown in a training, and a time is that of one. Then, on two threads, the wall time
of a tree, after a pause in which the threads of the library before stop waiting busily; the lambdas alone, beside a
tree of LightGBM with two leaves and one feature, which takes little else; and memory.

On a virtual machine the times of two threads depend on where its two cores are at the moment: the same code took 0.74
or 0.97 ms for a tree of 7 leaves of MQ2007, 1.05 or 1.37 ms for one of 31, minutes apart, and the same time on one
thread.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.core_distance import round_trip_seconds
from benchmarks.harness import Benchmark
from benchmarks.lambdamart_cuda import tree_problem
from benchmarks.letor_folds import letor_fold
from benchmarks.rivals.lightgbm_lambdarank import IS_INSTALLED, gradient_seconds
from benchmarks.rivals.tree_growers import Grow, catboost_seconds, tree_growers
from rankwell import LambdaMART
from rankwell.data.binning import Binner
from rankwell.data.dataset import RankingDataset
from rankwell.data.synthetic import make_ranking
from rankwell.kernels.threads import kernel_threads, run_parts
from rankwell.kernels.trees.contract import BinTree, TreeProblem
from rankwell.kernels.trees.cpu.booster import CpuTreeBooster
from rankwell.kernels.trees.cpu.lambdas import pair_gradient_source
from rankwell.kernels.trees.reference.lambdas import query_lambdas
from rankwell.rankers.tree_bins import TreeBins
from rankwell.rankers.tree_data import binned_slabs, gains_of

TREES = 7
GrowSome = Callable[[int], Any]
# How many times LightGBM's processor time, with float gradients, must be ours.
TARGETS = {
    ("mslr10k", 31): 4.0,
    ("240k x 136", 255): 3.0,
    ("MQ2007", 7): 3.0,
    ("MQ2007", 31): 3.0,
    ("far / 4", 31): 4.0,
}
RIVAL_TARGETS = {"LightGBM, quantised": 2.5, "XGBoost hist": 4.0, "CatBoost": 4.0}
# CatBoost is ten times as slow and more: on these only.
CATBOOST_CASES = {("mslr10k", 31), ("MQ2007", 31)}
TWO_THREADS, LEAST_SPEEDUP, OWN = 2, 1.7, "ours, one thread"
APART, DISTANCE = "two trainings", "a cache line"
TWO_THREADED = ("LightGBM", "LightGBM, quantised")
NANOSECONDS_A_DOCUMENT, LAMBDAS_RATIO = 30.0, 5.0
_PAUSE = 0.01
# Trees of these are grown so many in a row, as a training does: of few documents, it grows up to 64 in a call.
IN_A_ROW = {"MQ2007": 64}
MEMORY_IN_BINS = 1.5


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
        data = quantile_slabs(dataset)
        for (of, n_leaves), target in TARGETS.items():
            if of == name:
                problem = tree_problem(data, n_leaves)
                record_trees(bench, name, dataset, problem, target)
                record_two_threads(bench, name, dataset, problem, target)
        if name == "mslr10k":
            record_lambdas(bench, dataset, tree_problem(data, 31))
        if name == "far / 4":
            record_memory(bench, dataset)


def _letor(bench: Benchmark) -> RankingDataset | None:
    if bench.quick:
        return make_ranking("mq2007", scale=0.05)
    fold = letor_fold(bench, "MQ2007", 1)
    return None if fold is None else fold.train


def quantile_slabs(dataset: RankingDataset) -> tuple[Any, ...]:
    """Slabs, columns, query_ptr and gains of a dataset, in the bins that `LambdaMART` takes by default."""
    bins = TreeBins(Binner(strategy="quantile").fit(dataset), dataset, (), n_jobs=None)
    slabs, columns = binned_slabs(dataset, bins, None)
    return slabs, columns, dataset.query_ptr, gains_of(dataset.labels, "exponential")


def rivals_of(dataset: RankingDataset, n_leaves: int, n_threads: int) -> dict[str, list[GrowSome]]:
    growers = tree_growers(dataset, n_leaves, n_threads)
    return {form: [_one_by_one(grow) for grow in layouts] for form, layouts in growers.items()}


def record_trees(bench: Benchmark, name: str, dataset: RankingDataset, problem: TreeProblem, target: float) -> None:
    """Processor time on one thread, beside each rival's."""
    n_leaves = problem.settings.n_leaves
    rivals = rivals_of(dataset, n_leaves, 1)
    value, theirs = median_times(bench, problem, rivals, 1, time.process_time, IN_A_ROW.get(name, 1))
    if not bench.quick and (name, n_leaves) in CATBOOST_CASES:
        seconds = catboost_seconds(dataset, n_leaves, 1)
        theirs |= {} if seconds is None else {"CatBoost": seconds}
    for form, rival in theirs.items():
        least = RIVAL_TARGETS.get(form, target)
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


def record_two_threads(
    bench: Benchmark, name: str, dataset: RankingDataset, problem: TreeProblem, target: float
) -> None:
    """Wall time on two threads, beside LightGBM's on two and beside ours on one.

    What two threads can be on the machine at this time is measured too: by two trainings that share nothing, and by the
    time of a cache line between the cores, on which depends what threads gain that work on one tree.
    """
    n_leaves = problem.settings.n_leaves
    rivals = {form: grow for form, grow in rivals_of(dataset, n_leaves, TWO_THREADS).items() if form in TWO_THREADED}
    in_a_row = IN_A_ROW.get(name, 1)
    rivals[OWN] = [_grower(problem, 1)]
    rivals[APART] = [_two_growers(problem)]
    round_trips: list[float] = []
    rivals[DISTANCE] = [lambda n_trees: round_trips.append(round_trip_seconds())]
    value, theirs = median_times(bench, problem, rivals, TWO_THREADS, time.perf_counter, in_a_row)
    del theirs[DISTANCE]
    speed_up_apart = 2 * theirs[OWN] / theirs.pop(APART)
    limits = (
        f"two trainings apart, a thread each: {speed_up_apart:.2f}x; a cache line there and back between the cores: "
    )
    limits += f"{1e9 * np.median(round_trips):.0f} ns (of {len(round_trips)}, the longest {1e9 * max(round_trips):.0f})"
    for form, rival in theirs.items():
        least = {OWN: LEAST_SPEEDUP, **RIVAL_TARGETS}.get(form, target)
        bench.record(
            f"{name}, {n_leaves} leaves, wall time of a tree, two threads",
            value=value * 1e3,
            unit="ms",
            target=None if bench.quick else rival / least * 1e3,
            rival=form,
            rival_value=rival * 1e3,
            note=limits if form == OWN else "",
        )


def _grower(problem: TreeProblem, n_threads: int) -> GrowSome:
    """A function that grows so many more trees, as a training does."""
    booster = CpuTreeBooster(problem, np.zeros(problem.n_docs, np.float32), n_jobs=n_threads)
    grown: list[BinTree] = []
    return lambda n_trees: grown.extend(booster.boost_rounds(len(grown), n_trees))


def _two_growers(problem: TreeProblem) -> GrowSome:
    """Two trainings at once, each on a thread of its own."""
    growers = [_grower(problem, 1) for _ in range(TWO_THREADS)]

    def grow_some(n_trees: int) -> None:
        with kernel_threads(TWO_THREADS):
            run_parts(lambda number: growers[number](n_trees), TWO_THREADS)

    return grow_some


def _one_by_one(grow: Grow) -> GrowSome:
    def grow_some(n_trees: int) -> None:
        for _ in range(n_trees):
            grow()

    return grow_some


def median_times(
    bench: Benchmark,
    problem: TreeProblem,
    rivals: dict[str, list[GrowSome]],
    n_threads: int,
    clock: Callable[[], float],
    in_a_row: int,
) -> tuple[float, dict[str, float]]:
    """The median time of a tree, ours and by rival, so many grown in turn; of a rival's layouts the faster."""
    grow = _grower(problem, n_threads)
    ours: list[float] = []
    theirs: dict[str, list[list[float]]] = {form: [[] for _ in layouts] for form, layouts in rivals.items()}
    for _ in range((2 if bench.quick else TREES) + 1):
        ours.append(_seconds(lambda: grow(in_a_row), clock) / in_a_row)
        for form, layouts in rivals.items():
            for times, rival in zip(theirs[form], layouts, strict=True):
                times.append(_seconds(lambda rival=rival: rival(in_a_row), clock) / in_a_row)
    # The first tree, of scores that are all 0, is not typical.
    medians = {form: min(float(np.median(times[1:])) for times in layouts) for form, layouts in theirs.items()}
    return float(np.median(ours[1:])), medians


def record_lambdas(bench: Benchmark, dataset: RankingDataset, problem: TreeProblem) -> None:
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
        times = [
            _seconds(lambda: fill(scores, gradient, hessian), time.process_time) for _ in range(2 if bench.quick else 7)
        ]
    rival = gradient_seconds(dataset, len(times)) / problem.n_docs * 1e9 if IS_INSTALLED else None
    limit = NANOSECONDS_A_DOCUMENT if rival is None else min(NANOSECONDS_A_DOCUMENT, rival / LAMBDAS_RATIO)
    bench.record(
        "lambdas, processor time of a document, one thread",
        value=min(times) / problem.n_docs * 1e9,
        unit="ns",
        target=None if bench.quick else limit,
        rival="LightGBM, a tree of two leaves and one feature",
        rival_value=rival,
    )


def record_memory(bench: Benchmark, dataset: RankingDataset) -> None:
    """What training allocates at most, beside its data, in multiples of a byte for each value."""
    tracemalloc.start()
    try:
        LambdaMART(n_rounds=2, n_leaves=31, device="cpu").fit(dataset)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    bench.record(
        "far / 4, the most memory that training takes beside its data, in multiples of its bins",
        value=peak / (dataset.n_docs * dataset.n_features),
        unit="",
        target=None if bench.quick else MEMORY_IN_BINS,
        note=f"{peak / 2**20:.0f} MiB",
    )


def _seconds(call: Callable[[], Any], clock: Callable[[], float]) -> float:
    if clock is time.perf_counter:
        time.sleep(_PAUSE)
    before = clock()
    call()
    return clock() - before
