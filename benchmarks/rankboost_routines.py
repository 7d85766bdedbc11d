"""What are the routines of a RankBoost round on the CPU (Table IV of the FAR paper), and what do more threads bring?

At the FPGA paper's size, with every feature searched in every round, as the paper's software does; the bounds that
leave most features out, are in `rankboost_cpu`. π and the new weights are timed by themselves, the search is what
remains of a round.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.rankboost_cases import queries_of, scaled_shape
from benchmarks.rankboost_cpu import check_rounds, random_bins
from rankwell.hardware.rankboost.far_paper import TABLE_IV
from rankwell.kernels.boosting.contract import LevelledQueries
from rankwell.kernels.boosting.cpu.booster import LevelBooster
from rankwell.kernels.boosting.cpu.documents import DocumentWeights, initial_weights
from rankwell.kernels.threads import available_cores, kernel_threads

ROUNDS = 5


def run(bench: Benchmark) -> None:
    check_rounds(bench)
    shape = scaled_shape("far", docs=0.01 if bench.quick else 1.0)
    queries = queries_of(shape)
    bins = random_bins(shape, queries)
    cores = available_cores()
    record_routines(bench, bins, shape.n_features, queries, cores)
    for n_jobs in sorted({1, *range(2, cores + 1, max(1, cores // 8)), cores}):
        seconds = time_rounds(bench, bins, shape.n_features, queries, n_jobs)
        bench.record(f"threads: {n_jobs}", value=seconds * 1e3, unit="ms")


def record_routines(bench: Benchmark, bins: np.ndarray, n_features: int, queries: LevelledQueries, n_jobs: int) -> None:
    documents = DocumentWeights(queries, initial_weights(queries))
    above = bins[0, :, 0] > 128
    with kernel_threads(n_jobs):
        potentials = bench.time("π", documents.potentials, repeat=9).minimum
        weights = bench.time("new weights", lambda: documents.apply(above, 2**20, 0), repeat=9).minimum
    whole = time_rounds(bench, bins, n_features, queries, n_jobs)
    columns = {"software": "software", "optimised software": "optimised", "far1": "FAR1", "far2": "FAR2"}
    printed = {name: TABLE_IV[column] for column, name in columns.items()}
    routines = {
        "π": (potentials, {who: each.potentials for who, each in printed.items()}),
        "search": (whole - potentials - weights, {who: each.search + each.transfer for who, each in printed.items()}),
        "new weights": (weights, {who: each.weights for who, each in printed.items()}),
        "whole round": (whole, {who: each.total for who, each in printed.items()}),
    }
    for name, (seconds, of_paper) in routines.items():
        bench.record(
            f"routine: {name}",
            value=seconds * 1e3,
            unit="ms",
            paper=", ".join(f"{who} {each:.3f} s" for who, each in of_paper.items()),
            note=f"{seconds / whole:.1%} of the round, {n_jobs} threads",
        )


def time_rounds(bench: Benchmark, bins: np.ndarray, n_features: int, queries: LevelledQueries, n_jobs: int) -> float:
    """Seconds of a round in which every feature is searched."""
    booster = LevelBooster(bins, n_features, 256, queries, initial_weights(queries), bounded=False, n_jobs=n_jobs)
    name = f"{queries.n_docs:,} documents, {n_features} features, {ROUNDS} rounds, {n_jobs} threads"
    return bench.time(name, lambda: booster.boost(ROUNDS), repeat=3).minimum / ROUNDS
