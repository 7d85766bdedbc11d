"""How does each weak learner of the FPGA paper's Table I grow with documents, pairs, features and thresholds?

| weak learner | search per round, by Table I |
| ------------ | ---------------------------- |
| `m2`         | pairs · features · thresholds |
| `m2.2dint`   | pairs · features (and the thresholds' square for each feature's 2-D integral) |
| `m3`         | documents · features · thresholds |
| `m3.int`     | documents · features |

One quantity is doubled at a time, the others kept: twice the documents form as many pairs, in smaller queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.rankboost_cases import queries_of
from rankwell.data.shapes import Shape
from rankwell.kernels.boosting.contract import PairList
from rankwell.kernels.boosting.cpu.pairs import PairBooster, list_pairs
from rankwell.kernels.threads import kernel_threads

WEAK_LEARNERS = ("m2", "m2.2dint", "m3", "m3.int")
GROWS_WITH = {
    "m2": ("pairs", "features", "thresholds"),
    "m2.2dint": ("pairs", "features"),
    "m3": ("documents", "features", "thresholds"),
    "m3.int": ("documents", "features"),
}


@dataclass(frozen=True)
class Case:
    n_docs: int
    documents_per_query: float
    n_features: int
    n_bins: int

    def pairs(self) -> PairList:
        shape = Shape(self.n_docs, 1, self.n_features, (0.6, 0.3, 0.1), size_spread=0.0)
        return list_pairs(queries_of(shape, documents_per_query=self.documents_per_query))

    def bins(self) -> np.ndarray:
        generator = np.random.default_rng(1)
        shape = (-(-self.n_features // 16), self.pairs().n_docs, 16)
        return generator.integers(0, self.n_bins, shape, dtype=np.uint8)


def run(bench: Benchmark) -> None:
    small = 10 if bench.quick else 1
    base = Case(40_000 // small, 40.0, 32, 33)
    cases = {
        "documents": Case(base.n_docs * 2, 20.0, 32, 33),
        "pairs": Case(base.n_docs, 80.0, 32, 33),
        "features": Case(base.n_docs, 40.0, 64, 33),
        "thresholds": Case(base.n_docs, 40.0, 32, 65),
    }
    check_same_choice(bench, base)
    base_seconds = {kind: time_search(bench, "base", base, kind) for kind in WEAK_LEARNERS}
    for kind in WEAK_LEARNERS:
        bench.record(f"{kind}, search", value=base_seconds[kind] * 1e3, unit="ms", note=describe(base))
    for quantity, case in cases.items():
        for kind in WEAK_LEARNERS:
            seconds = time_search(bench, f"twice the {quantity}", case, kind)
            grows = quantity in GROWS_WITH[kind]
            bench.record(
                f"{kind}, twice the {quantity}",
                value=seconds / base_seconds[kind],
                unit="times the base",
                paper="2" if grows else "1",
                note=describe(case),
            )


def describe(case: Case) -> str:
    pairs = case.pairs().n_pairs
    return f"{case.n_docs:,} documents, {pairs:,} pairs, {case.n_features} features, {case.n_bins - 1} thresholds"


def check_same_choice(bench: Benchmark, case: Case) -> None:
    """Five rounds of each: the same weak rankers."""
    small = Case(case.n_docs // 40, case.documents_per_query, case.n_features, case.n_bins)
    pairs, bins = small.pairs(), small.bins()
    rounds = [PairBooster(bins, small.n_features, small.n_bins, pairs, kind).boost(5) for kind in WEAK_LEARNERS]
    same = all(
        np.array_equal(rounds[0].feature, other.feature) and np.array_equal(rounds[0].bin, other.bin)
        for other in rounds[1:]
    )
    bench.check("every weak learner chooses the same weak rankers", same and len(rounds[0]) == 5)


def time_search(bench: Benchmark, name: str, case: Case, kind: str) -> float:
    """Seconds of the search for the best weak ranker, on one thread, since threads would hide the growth."""
    booster = PairBooster(case.bins(), case.n_features, case.n_bins, case.pairs(), kind)
    booster.weigh()
    with kernel_threads(1):
        return bench.time(f"{kind}, {name}", booster.search, repeat=3 if bench.quick else 7).minimum
