"""How close does a whole RankBoost round on a GPU come to only reading the bins?

At the sizes of the FPGA paper (1,196,711 documents, 646 features) and of the CUDA paper (173,354, 2,576), with skewed
random bins made on the device. A round is everything: π, histograms, the best weak ranker, α, new weights; the time is
that of a batch of rounds, the host's wait at its end included, divided by their number.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.device_reading import reader
from benchmarks.harness import Benchmark
from benchmarks.power import gpu_meter, sampled
from benchmarks.rankboost_cases import count_pairs, paper_ranker, queries_of, scaled_shape
from rankwell.data.shapes import Shape
from rankwell.kernels.boosting.contract import LevelledQueries

ROUNDS = 96
READS = 50
CUDA_TABLE_II = "CPU 12,281.5 ms, CUDA 536.5 ms, ATI 1,328 ms"


def run(bench: Benchmark) -> None:
    check_whole_training(bench)
    small = 0.02 if bench.quick else 1.0
    for name, target, paper in (("far", None, "FAR2 1,923 ms"), ("cuda2010", 0.30, CUDA_TABLE_II)):
        shape = scaled_shape(name, docs=small)
        queries = queries_of(shape)
        bins = random_bins(shape, queries)
        check_histograms(bench, name, bins, queries)
        read = bench.time(f"{name}: read the bins {READS} times", reader(bins, READS), repeat=7)
        reading = read.median / READS
        seconds = time_rounds(bench, f"{name}: {ROUNDS} rounds", bins, queries)
        limit = target if target is not None else 2.2 * reading * 1e3
        bench.record(
            f"{name}, a whole round",
            value=seconds * 1e3,
            unit="ms",
            target=limit,
            rival="only reading the bins",
            rival_value=reading * 1e3,
            paper=paper,
            note=f"{seconds / reading:.2f} times reading; {count_pairs(queries):,} pairs",
        )
        if name == "far":
            record_energy(bench, bins, queries)
            record_growth(bench, small, seconds)
            record_streaming(bench, bins, queries)


def random_bins(shape: Shape, queries: LevelledQueries) -> Any:
    """Skewed bins on the device, uint8 (n_features, n_docs rounded up to 16): half the mass in a few bins."""
    import cupy

    stride = -(-queries.n_docs // 16) * 16
    generator = cupy.random.default_rng(0)
    bins = cupy.empty((shape.n_features, stride), dtype=np.uint8)
    for feature in range(shape.n_features):
        values = generator.standard_exponential(stride, dtype=np.float32) * np.float32(2 + feature * 37 % 59)
        bins[feature] = cupy.minimum(values, 255)
    return bins


def make_booster(bins: Any, queries: LevelledQueries, **options: Any) -> Any:
    from rankwell.kernels.boosting.cpu.documents import initial_weights
    from rankwell.kernels.boosting.cuda.booster import CudaBooster

    return CudaBooster(bins, len(bins), 256, queries, initial_weights(queries), **options)


def time_rounds(bench: Benchmark, name: str, bins: Any, queries: LevelledQueries) -> float:
    """Seconds per round, the median of several batches."""
    booster = make_booster(bins, queries)
    return bench.time(name, lambda: booster.boost(ROUNDS), repeat=3 if bench.quick else 7).median / ROUNDS


def record_energy(bench: Benchmark, bins: Any, queries: LevelledQueries) -> None:
    """Joules of a round: the board's power while rounds follow each other for some seconds."""
    booster = make_booster(bins, queries)
    booster.boost(ROUNDS)
    n_rounds, start = 0, time.perf_counter()
    with sampled(gpu_meter()) as power:
        while time.perf_counter() - start < (1 if bench.quick else 10):
            booster.boost(ROUNDS)
            n_rounds += ROUNDS
        seconds = (time.perf_counter() - start) / n_rounds
    watts = power.mean_watts()
    bench.record(
        "far, energy of a round",
        value=watts * seconds,
        unit="J",
        paper="FAR2 462 J (1.923 s at 240 W, the whole computer)",
        note=f"{watts:.0f} W, the mean of {len(power.samples)} samples of power.draw in {n_rounds:,} rounds",
    )


def check_whole_training(bench: Benchmark) -> None:
    """A model trained on the device has the bytes of one trained on the CPU."""
    from rankwell import make_ranking

    dataset = make_ranking(n_docs=20_000, n_queries=300, n_features=70, missing=0.05)
    models = [paper_ranker(n_rounds=100, device=device).fit(dataset) for device in ("cpu", "cuda")]
    same = all(np.array_equal(models[0].state_[name], models[1].state_[name]) for name in models[0].state_)
    bench.check("100 rounds on the device are the CPU's, bit for bit", same and len(models[0].weak_rankers_) == 100)


def check_histograms(bench: Benchmark, name: str, bins: Any, queries: LevelledQueries) -> None:
    """r of every threshold of some features, from the first round's π, against CuPy's own counting."""
    import cupy

    from rankwell.kernels.boosting.cpu.documents import DocumentWeights, initial_weights

    booster = make_booster(bins, queries)
    booster.boost(1)
    pi = cupy.asarray(DocumentWeights(queries, initial_weights(queries)).potentials())
    table = booster._table.get()
    for feature in (0, len(bins) // 2, len(bins) - 1):
        column = bins[feature, : queries.n_docs].astype(np.int64)
        histogram = cupy.bincount(column, weights=pi.astype(np.float64), minlength=256).get()
        expected = np.cumsum(histogram[::-1])[::-1][1:]
        bench.check(f"{name}: feature {feature}", np.array_equal(table[feature, :255], expected.astype(np.int64)))


def record_growth(bench: Benchmark, small: float, whole: float) -> None:
    """Linear in documents and in features, flat in pairs."""
    for what, half in (("documents", {"docs": 0.5 * small}), ("features", {"docs": small, "features": 0.5})):
        shape = scaled_shape("far", **half)
        queries = queries_of(shape)
        seconds = time_rounds(bench, f"far, half the {what}", random_bins(shape, queries), queries)
        bench.record(f"far, half the {what}", value=seconds / whole, unit="of the whole", note="linear is 0.5")
    shape = scaled_shape("far", docs=small)
    usual, many = queries_of(shape), queries_of(shape, documents_per_query=465)
    seconds = time_rounds(bench, "far, ten times the pairs", random_bins(shape, many), many)
    times = count_pairs(many) / count_pairs(usual)
    bench.record("far, more pairs", value=seconds / whole, unit="of the whole", note=f"{times:.1f} times the pairs")


def record_streaming(bench: Benchmark, bins: Any, queries: LevelledQueries) -> None:
    """Half of the bins on the device, half streamed through it every round."""
    host = bins.get()
    booster = make_booster(host, queries, memory=host.nbytes * 6 // 10)
    seconds = bench.time("far, streamed", lambda: booster.boost(3), repeat=3).median / 3
    share = len(booster._bins) / len(host)
    bench.record("far, bins do not fit", value=seconds * 1e3, unit="ms", note=f"γ = {share:.2f} of them stay")
