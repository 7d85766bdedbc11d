"""What does a RankBoost round on a GPU cost if only the share γ of the bins fits there (the CUDA paper's γ)?

At the FPGA paper's size. The rest of the bins passes through the device in every round.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark
from benchmarks.rankboost_cases import queries_of, scaled_shape
from benchmarks.rankboost_cuda import check_whole_training, make_booster, random_bins

# Memory that the booster may use, of the size of the bins: a part of it is for those that pass through.
MEMORY = (0.35, 0.45, 0.6, 0.75, 0.9, 1.05, 1.2)
ROUNDS = 3


def run(bench: Benchmark) -> None:
    check_whole_training(bench)
    shape = scaled_shape("far", docs=0.02 if bench.quick else 1.0)
    queries = queries_of(shape)
    host = random_bins(shape, queries).get()
    expected = None
    for memory in MEMORY:
        # A copy, because each booster pins its own.
        booster = make_booster(host.copy(), queries, memory=int(host.nbytes * memory))
        first = booster.boost(ROUNDS)
        expected = first if expected is None else expected
        same = first.feature.tolist() == expected.feature.tolist() and first.r.tolist() == expected.r.tolist()
        share = len(booster._bins) / len(host)
        bench.check(f"γ = {share:.2f}: the same weak rankers", same)
        timing = bench.time(f"γ = {share:.2f}, {ROUNDS} rounds", lambda b=booster: b.boost(ROUNDS), repeat=3)
        bench.record(f"γ = {share:.2f}", value=timing.median / ROUNDS * 1e3, unit="ms")
