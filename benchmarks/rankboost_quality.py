"""How good is RankBoost on LETOR 4.0: five folds of MQ2007 and MQ2008, everything chosen on validation?

The convention is `letor4`. For every fold, binning, pair weights and the number of rounds with the highest validation
MeanNDCG are taken; the test fold is evaluated once. The published RankBoost (255 thresholds per feature, rounds chosen
on validation) reaches MeanNDCG .5003 and .4850, MAP .4662 and .4775. MQ2008 is small: 0.005 there is noise.
"""

from __future__ import annotations

from itertools import product

from benchmarks.fold_figures import FoldFigures
from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_folds, synthetic_fold
from rankwell import RankBoost, evaluate
from rankwell.data.folds import FoldData

N_ROUNDS = 1000
PATIENCE = 300
SETTINGS = [
    {"binning": binning, "pair_weight": pair_weight}
    for binning, pair_weight in product(("width", "quantile"), ("pairs", "queries", "difference"))
]
METRICS = ("mean_ndcg", "map", "ndcg@10")
PUBLISHED_MEANS = {
    ("MQ2007", "mean_ndcg"): 0.5003,
    ("MQ2007", "map"): 0.4662,
    ("MQ2008", "mean_ndcg"): 0.4850,
    ("MQ2008", "map"): 0.4775,
}


def run(bench: Benchmark) -> None:
    for collection in ("MQ2007", "MQ2008"):
        if folds := letor_folds(bench, collection):
            measure_collection(bench, collection, folds)
    if not bench.rows:
        measure_collection(bench, "synthetic", [synthetic_fold(0.2)])


def measure_collection(bench: Benchmark, collection: str, folds: list[FoldData]) -> None:
    """Choose on validation, evaluate the test fold once, and record each figure with the published one."""
    figures = FoldFigures(bench, collection, METRICS, "RankBoost", PUBLISHED_MEANS)
    for fold in folds:
        ranker, validation = best_on_validation(fold, bench.quick)
        scores = ranker.predict(fold.validation)
        again = evaluate(fold.validation, scores, metrics=("mean_ndcg",), convention="letor4").mean["mean_ndcg"]
        bench.check(f"{collection} {fold.name}: the model kept is the best round's", abs(again - validation) < 1e-9)
        chosen = f"{ranker.binning}, {ranker.pair_weight}, {len(ranker.weak_rankers_)} rounds"
        figures.add(fold, ranker, f"{chosen}; validation MeanNDCG {validation:.4f}")
    figures.record_means()


def best_on_validation(fold: FoldData, quick: bool) -> tuple[RankBoost, float]:
    """The ranker with the highest validation MeanNDCG over all settings and rounds, and that figure."""
    best: tuple[RankBoost, float] | None = None
    for setting in SETTINGS[:2] if quick else SETTINGS:
        ranker = RankBoost(
            n_rounds=20 if quick else N_ROUNDS,
            learning_rate=1.0,
            normalize="none",
            early_stopping_rounds=PATIENCE,
            eval_metric="mean_ndcg",
            eval_convention="letor4",
            **setting,
        ).fit(fold.train, eval_set=fold.validation)
        value = max(ranker.history_["validation mean_ndcg"])
        if best is None or value > best[1]:
            best = (ranker, value)
    assert best is not None
    return best
