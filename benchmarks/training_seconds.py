"""How long does each ranker train as it comes, and how does that grow with documents?

`Ranker().fit(train)` without a parameter set: on MQ2007 Fold1, and on synthetic collections of MSLR-WEB10K's shape with
a hundredth, a tenth and all of its queries, as long as ten times the time of the size before is less than a minute.
Wall time on all cores, kernels compiled and features in memory. LambdaMART is beside LightGBM's ranker with its own
defaults, which grows 100 trees of 31 leaves.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_fold
from rankwell.data.dataset import RankingDataset
from rankwell.data.synthetic import make_ranking
from rankwell.rankers.base import Ranker
from rankwell.rankers.registry import RANKERS, ranker_class

SHARES = (0.01, 0.1, 1.0)
LARGE = 0.05  # From this share on, one run each, after those of the smaller ones.
LONGEST = 60.0


def run(bench: Benchmark) -> None:
    fold = None if bench.quick else letor_fold(bench, "MQ2007", 1)
    if fold is not None:
        record_rankers(bench, "MQ2007 Fold1", fold.train, list(RANKERS), repeat=3, warmup=1)
    rankers = list(RANKERS)
    for share in SHARES[:1] if bench.quick else SHARES:
        dataset = make_ranking("mslr10k", scale=share * 0.1 if bench.quick else share)
        repeat, warmup = (1, 0) if share >= LARGE or bench.quick else (3, 1)
        seconds = record_rankers(bench, f"mslr10k x {share:g}", dataset, rankers, repeat, warmup)
        rankers = [ranker for ranker in rankers if 10 * seconds[ranker] < LONGEST]


def record_rankers(
    bench: Benchmark, name: str, dataset: RankingDataset, rankers: list[str], repeat: int, warmup: int
) -> dict[str, float]:
    """Returns the seconds by ranker."""
    seconds = {}
    for ranker in rankers:
        timing = bench.time(
            f"{name}, {ranker}", lambda ranker=ranker: on_the_cpu(ranker).fit(dataset), repeat=repeat, warmup=warmup
        )
        seconds[ranker] = timing.minimum
        scores = timing.result.predict(dataset)
        learned = len(scores) == dataset.n_docs and bool(np.isfinite(scores).all()) and scores.std() > 0
        bench.check(f"{name}, {ranker}: finite scores that differ", learned)
        rival = lightgbm_seconds(bench, name, dataset, repeat) if ranker == "lambdamart" else None
        bench.record(
            f"{name}, {ranker}",
            value=timing.minimum,
            unit="s",
            rival="LightGBM" if ranker == "lambdamart" else None,
            rival_value=rival,
            note=f"{dataset.n_docs:,} documents, {dataset.n_features} features",
        )
    return seconds


def on_the_cpu(name: str) -> Ranker:
    ranker = ranker_class(name)()
    return ranker.set_params(device="cpu") if "device" in ranker.get_params() else ranker


def lightgbm_seconds(bench: Benchmark, name: str, dataset: RankingDataset, repeat: int) -> float | None:
    """LightGBM's ranker as it comes, its binning included, as ours is; None if it is not installed."""
    try:
        import lightgbm
    except ImportError:
        return None
    features, labels = dataset.dense_features(), dataset.labels.astype(np.int32)

    def train() -> None:
        lightgbm.LGBMRanker(verbose=-1).fit(features, labels, group=dataset.query_sizes)

    return bench.time(f"{name}, LightGBM", train, repeat=repeat).minimum
