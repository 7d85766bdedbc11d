"""What does a whole RankBoost round cost on the CPU, in time and memory, compared with LightGBM and the FPGA of 2009?

At the FPGA paper's size (1,196,711 documents, 646 features, 256 bins) on bins as skewed as those of real features;
compared with LightGBM's `lambdarank` with trees of two leaves on a quarter of it, with float and with quantised
gradients, in the faster of its two layouts, the same data in the same run; and a
whole training on MQ2007. A round is everything: π, histograms, the best weak ranker, α, new weights. Rounds differ,
since most of them exclude features by bounds, so the mean over a run is taken, for LightGBM as well, and the fastest
run of each.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, measure
from benchmarks.letor_folds import letor_fold
from benchmarks.power import processor_energy
from benchmarks.rankboost_cases import count_pairs, paper_ranker, queries_of, scaled_shape
from benchmarks.rivals import lightgbm_lambdarank
from rankwell import Binner, RankingDataset, make_ranking
from rankwell.data.shapes import Shape
from rankwell.kernels.boosting.contract import LevelledQueries
from rankwell.kernels.boosting.reference import boost_reference, pairs_of_labels
from rankwell.kernels.threads import available_cores
from rankwell.rankers.pair_weights import levelled_queries

FAR_TARGET_MS = 216.0
MQ2007_TARGET_S = 0.6
LIGHTGBM_TARGET = 10.0  # times as fast
MOST_MEMORY = 1.5  # times the bins
ROUNDS = 20

_held: dict[str, Any] = {}  # what `hold_far` made, for `train_far` in the same child process


def run(bench: Benchmark) -> None:
    check_rounds(bench)
    record_far(bench)
    record_growth(bench)
    record_rival(bench)
    record_letor(bench)
    record_memory(bench)


def check_rounds(bench: Benchmark) -> None:
    """The model of a small collection against the reference's, round by round."""
    dataset = make_ranking(n_docs=400, n_queries=20, n_features=8, missing=0.1)
    rows = Binner(32).fit_transform(dataset)
    lower, higher = pairs_of_labels(dataset.labels, dataset.query_ptr)
    expected = boost_reference(rows, 32, lower, higher, np.ones(len(lower)), 30)
    for n_jobs in (1, available_cores()):
        rankers = paper_ranker(n_rounds=30, n_bins=32, device="cpu", n_jobs=n_jobs).fit(dataset).weak_rankers_
        same = rankers.feature.tolist() == [feature for feature, *_ in expected]
        close = np.allclose(rankers.r * 2.0**-30, [r for _, _, r, _ in expected], atol=1e-7)
        bench.check(f"the reference's rounds on {n_jobs} threads", same and close)


def random_bins(shape: Shape, queries: LevelledQueries) -> np.ndarray:
    """Skewed bins, uint8 (n_groups, n_docs, 16): exponential, each group with its own mean."""
    generator = np.random.default_rng(0)
    bins = np.empty((-(-shape.n_features // 16), queries.n_docs, 16), dtype=np.uint8)
    for number, group in enumerate(bins):
        values = generator.standard_exponential(group.shape, dtype=np.float32)
        group[:] = np.minimum(values * np.float32(2 + number * 37 % 59), 255)
    return bins


def time_rounds(
    bench: Benchmark, name: str, n_features: int, bins: np.ndarray, queries: LevelledQueries, n_rounds: int = 20
) -> float:
    """Seconds per round, the mean over a whole run from its first round on: some rounds compute more than others."""
    from rankwell.kernels.boosting.cpu.booster import LevelBooster
    from rankwell.kernels.boosting.cpu.documents import initial_weights

    def run_all() -> None:
        LevelBooster(bins, n_features, 256, queries, initial_weights(queries)).boost(n_rounds)

    return bench.time(name, run_all, repeat=5).minimum / n_rounds


def record_far(bench: Benchmark) -> None:
    shape = scaled_shape("far", docs=0.01 if bench.quick else 1.0)
    queries = queries_of(shape)
    bins = random_bins(shape, queries)
    seconds = time_rounds(bench, "far, 20 rounds", shape.n_features, bins, queries)
    values = shape.n_docs * shape.n_features
    note = f"{count_pairs(queries):,} pairs, {available_cores()} threads"
    bench.record(
        "far, a whole round",
        value=seconds * 1e3,
        unit="ms",
        target=None if bench.quick else FAR_TARGET_MS,
        paper="FAR2 1,923 ms, FAR1 3,075 ms, software 53,136 ms",
        note=note,
    )
    bench.record("far, a whole round", value=seconds / values * 1e9, unit="ns per value", target=0.28, note=note)
    record_energy(bench, shape.n_features, bins, queries)


def record_energy(bench: Benchmark, n_features: int, bins: np.ndarray, queries: LevelledQueries) -> None:
    """Joules of the processors while rounds follow each other, where the machine counts them."""
    from rankwell.kernels.boosting.cpu.booster import LevelBooster
    from rankwell.kernels.boosting.cpu.documents import initial_weights

    energy = processor_energy()
    if energy is None:
        return
    booster = LevelBooster(bins, n_features, 256, queries, initial_weights(queries))
    n_rounds, start, before = 0, time.perf_counter(), energy.joules()
    while time.perf_counter() - start < (1 if bench.quick else 10):
        booster.boost(ROUNDS)
        n_rounds += ROUNDS
    seconds, used = time.perf_counter() - start, energy.joules() - before
    bench.record(
        "far, energy of a round",
        value=used / n_rounds,
        unit="J",
        paper="FAR2 462 J (1.923 s at 240 W, the whole computer)",
        note=f"{used / seconds:.0f} W by RAPL, all processors of the machine, without memory",
    )


def record_growth(bench: Benchmark) -> None:
    """Linear in documents and in features, flat in pairs: at a tenth of the FPGA paper's documents."""
    docs = 0.005 if bench.quick else 0.1
    shapes = {
        "base": scaled_shape("far", docs=docs),
        "half the documents": scaled_shape("far", docs=docs / 2),
        "half the features": scaled_shape("far", docs=docs, features=0.5),
    }
    seconds = {}
    for name, shape in shapes.items():
        queries = queries_of(shape)
        seconds[name] = time_rounds(
            bench, f"a tenth of far, {name}", shape.n_features, random_bins(shape, queries), queries
        )
        if name != "base":
            share = seconds[name] / seconds["base"]
            bench.record(f"a tenth of far, {name}", value=share, unit="of the whole", note="linear is 0.5")
    base = shapes["base"]
    usual, many = queries_of(base), queries_of(base, documents_per_query=465)
    more = time_rounds(bench, "a tenth of far, more pairs", base.n_features, random_bins(base, many), many)
    times = count_pairs(many) / count_pairs(usual)
    bench.record(
        "a tenth of far, more pairs",
        value=more / seconds["base"],
        unit="of the whole",
        note=f"{times:.1f} times as many",
    )


def record_rival(bench: Benchmark) -> None:
    """The same data for both in the same run: synthetic at a quarter of the FPGA paper's documents, and MQ2007."""
    fold = None if bench.quick else letor_fold(bench, "MQ2007", 1)
    cases = {"a quarter of far": make_ranking("far", scale=0.005 if bench.quick else 0.25)}
    if fold is not None:
        cases["MQ2007 Fold1"] = fold.train
    n_rounds, rival_rounds, n_runs = (20, 2, 1) if bench.quick else (300, 20, 4)
    for name, dataset in cases.items():
        forms: dict[str, float] = {}
        if lightgbm_lambdarank.IS_INSTALLED:
            forms = lightgbm_lambdarank.seconds_a_round(dataset, rival_rounds, available_cores(), n_runs)
        each_form = ", ".join(f"{form} gradients {seconds * 1e3:.3g} ms" for form, seconds in forms.items())
        fastest = min(forms, key=lambda form: forms[form], default="")
        queries = levelled_queries(dataset, "pairs")
        bins = Binner().fit(dataset).transform(dataset, "interleaved16", rows=queries.rows)
        seconds = time_rounds(bench, f"{name}, {n_rounds} rounds", dataset.n_features, bins, queries, n_rounds)
        bench.record(
            f"{name}, a round",
            value=seconds * 1e3,
            unit="ms",
            target=None if not forms or bench.quick else forms["float"] * 1e3 / LIGHTGBM_TARGET,
            rival=f"{lightgbm_lambdarank.NAME}{f', {fastest} gradients' if fastest else ''}",
            rival_value=forms[fastest] * 1e3 if forms else None,
            note=f"{dataset.n_docs:,} documents, mean of {n_rounds} rounds, the rival's of {rival_rounds}; each its "
            f"fastest run; the rival with {each_form or 'nothing'}; target: a tenth of its time with float gradients",
        )


def record_letor(bench: Benchmark) -> None:
    """A whole training, binning included."""
    fold = None if bench.quick else letor_fold(bench, "MQ2007", 1)
    dataset: RankingDataset = make_ranking("mq2007", scale=0.1) if fold is None else fold.train
    name = "MQ2007's shape, synthetic" if fold is None else "MQ2007 Fold1"
    timing = bench.time(f"{name}, 300 rounds", lambda: paper_ranker(n_rounds=300, device="cpu").fit(dataset), repeat=5)
    bench.record(
        f"{name}, 300 rounds with binning",
        value=timing.minimum,
        unit="s",
        target=None if fold is None else MQ2007_TARGET_S,
        note="RankLib, measured once on two cores like these, not in this run: 100 s",
    )


def record_memory(bench: Benchmark) -> None:
    """The memory of training in addition to the features, relative to the bins."""
    scale = 0.01 if bench.quick else 1.0
    prepare = ("benchmarks.rankboost_cpu:hold_far", scale)
    peak = measure.peak_memory("benchmarks.rankboost_cpu:train_far", prepare=prepare)
    shape = scaled_shape("far", docs=scale)
    bench.record(
        "far, memory of training",
        value=peak / (shape.n_docs * shape.n_features),
        unit="of the bins",
        target=None if bench.quick else MOST_MEMORY,
        note=f"{peak / 1e6:.0f} MB, including all arrays per document",
    )


def hold_far(scale: float) -> None:
    """Compile every kernel, and make the collection that `train_far` trains on."""
    paper_ranker(n_rounds=40, device="cpu").fit(make_ranking(n_docs=200, n_queries=10, n_features=200))
    shape = scaled_shape("far", docs=scale)
    generator = np.random.default_rng(0)
    features = np.empty((shape.n_docs, shape.n_features), dtype=np.float32)
    for start in range(0, shape.n_docs, 16384):
        block = features[start : start + 16384]
        generator.standard_exponential(dtype=np.float32, out=block)
    labels = generator.choice(len(shape.level_shares), shape.n_docs, p=shape.level_shares)
    _held["dataset"] = RankingDataset(features, labels, qid=np.arange(shape.n_docs) * shape.n_queries // shape.n_docs)


def train_far() -> Any:
    return paper_ranker(n_rounds=8, device="cpu").fit(_held["dataset"])
