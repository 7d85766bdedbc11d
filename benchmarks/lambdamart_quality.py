"""How good is LambdaMART on LETOR 4.0, beside LightGBM, XGBoost and CatBoost with the same settings tried?

Five folds of MQ2007 and MQ2008 under `letor4`. Every library tries the same settings (leaves and learning rate, half of
the features for each tree), each with one seed; the setting, and with every seed the number of rounds, are those with
the highest validation MeanNDCG. Where a library has two losses, validation chooses among both as well. Four seeds give
four models: rows have their mean test figure, and the figure of the mean of their scores. A test fold is evaluated once
for each of them. The best published figures are MeanNDCG .5003 (RankBoost on MQ2007) and .4950 (AdaRank-NDCG on
MQ2008). MQ2008 is small: 0.005 there is noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_folds, synthetic_fold
from benchmarks.rivals.tree_curves import STEP, Curve, CurveMaker, TreeSetting, curve_makers
from rankwell import compare, evaluate
from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData
from rankwell.metrics.evaluation import Evaluation

CONVENTION, CHOSEN_BY = "letor4", "mean_ndcg"
METRICS = (CHOSEN_BY, "map")
N_SEEDS = 4
SETTINGS = [TreeSetting(leaves, rate, 0.5, 300) for leaves, rate in product((7, 15, 31), (0.05, 0.1))]
# What one model, the mean over seeds, and the mean of the models must reach.
TARGETS = {
    ("MQ2007", "mean_ndcg"): (0.505, 0.507),
    ("MQ2007", "map"): (0.469, 0.470),
    ("MQ2008", "mean_ndcg"): (0.484, 0.487),
    ("MQ2008", "map"): (0.4735, 0.476),
}
# Losses of one library, among which validation chooses.
FAMILIES = {
    "LambdaMART": ("LambdaMART lambdarank", "LambdaMART xendcg"),
    "LightGBM": ("LightGBM lambdarank", "LightGBM rank_xendcg"),
    "XGBoost": ("XGBoost rank:ndcg",),
    "CatBoost": ("CatBoost YetiRank",),
}
OURS = "LambdaMART"


@dataclass(frozen=True)
class FoldResult:
    """Of one fold: the highest validation figure, the setting, the test scores of each seed's model and of their mean.

    seeds : float64 (n_seeds, n_docs); mean : float64 (n_docs,)
    """

    validation: float
    setting: str
    seeds: np.ndarray
    mean: np.ndarray


def run(bench: Benchmark) -> None:
    for collection in ("MQ2007", "MQ2008"):
        if folds := letor_folds(bench, collection):
            measure_collection(bench, collection, folds, SETTINGS, N_SEEDS)
    if not bench.rows:
        few = [TreeSetting(4, 0.1, 0.5, 2 * STEP)]
        measure_collection(bench, "synthetic", [synthetic_fold(0.1)], few, 2)


def measure_collection(
    bench: Benchmark, collection: str, folds: list[FoldData], settings: list[TreeSetting], n_seeds: int
) -> None:
    makers = curve_makers()
    results = {name: [fold_result(fold, make, settings, n_seeds) for fold in folds] for name, make in makers.items()}
    chosen = {
        family: [max((results[name][f] for name in names), key=lambda one: one.validation) for f in range(len(folds))]
        for family, names in FAMILIES.items()
        if all(name in results for name in names)
    }
    tests = [fold.test for fold in folds]
    for family, of_folds in chosen.items():
        whole = all(
            np.isfinite(one.seeds).all() and one.seeds.shape == (n_seeds, t.n_docs)
            for one, t in zip(of_folds, tests, strict=True)
        )
        bench.check(f"{collection}, {family}: a finite score for every test document and seed", whole)
    several = {
        name: results[name] for names in FAMILIES.values() if len(names) > 1 for name in names if name in results
    }
    record_rows(bench, collection, tests, {**chosen, **several}, n_seeds)


def fold_result(fold: FoldData, make: CurveMaker, settings: list[TreeSetting], n_seeds: int) -> FoldResult:
    """Choose the setting with the first seed, the rounds with every seed, and those of the mean with all."""
    tried = [make(fold, setting, 0) for setting in settings]
    figures = [best_step(fold.validation, curve.validation)[1] for curve in tried]
    best = int(np.argmax(figures))
    setting = settings[best]
    curves = [tried[best], *(make(fold, setting, seed) for seed in range(1, n_seeds))]
    mean = Curve(*(np.mean([getattr(curve, part) for curve in curves], axis=0) for part in ("validation", "test")))
    return FoldResult(
        figures[best],
        f"{setting.leaves} leaves, rate {setting.learning_rate:g}",
        np.array([chosen_scores(fold, curve) for curve in curves]),
        chosen_scores(fold, mean),
    )


def best_step(validation: RankingDataset, curve: np.ndarray) -> tuple[int, float]:
    """The step of a curve with the highest validation figure, the first of equals, and that figure."""
    figures = [
        evaluate(validation, scores, metrics=CHOSEN_BY, convention=CONVENTION).mean[CHOSEN_BY] for scores in curve
    ]
    return int(np.argmax(figures)), max(figures)


def chosen_scores(fold: FoldData, curve: Curve) -> np.ndarray:
    """The test documents' scores after the rounds that validation chooses."""
    return curve.test[best_step(fold.validation, curve.validation)[0]]


def record_rows(
    bench: Benchmark,
    collection: str,
    tests: list[RankingDataset],
    results: Mapping[str, list[FoldResult]],
    n_seeds: int,
) -> None:
    rival = "LightGBM" if "LightGBM" in results else None
    for name, of_folds in results.items():
        seeds = [
            [judge(test, one.seeds[seed]) for test, one in zip(tests, of_folds, strict=True)] for seed in range(n_seeds)
        ]
        means = [judge(test, one.mean) for test, one in zip(tests, of_folds, strict=True)]
        for metric in METRICS:
            by_seed = [np.mean([one.mean[metric] for one in of_seed]) for of_seed in seeds]
            target = TARGETS.get((collection, metric), (None, None)) if name == OURS else (None, None)
            bench.record(
                f"{collection}, {name}, one model, mean of {n_seeds} seeds, test {metric}",
                value=float(np.mean(by_seed)),
                unit="",
                better="higher",
                target=target[0],
                note=f"seeds from {min(by_seed):.4f} to {max(by_seed):.4f}; {'; '.join(o.setting for o in of_folds)}",
            )
            bench.record(
                f"{collection}, {name}, mean of {n_seeds} models, test {metric}",
                value=float(np.mean([one.mean[metric] for one in means])),
                unit="",
                better="higher",
                target=target[1],
                note="" if rival is None or name != OURS else significance(tests, of_folds, results[rival], metric),
            )


def significance(tests: list[RankingDataset], ours: list[FoldResult], theirs: list[FoldResult], metric: str) -> str:
    """Whether the mean models of both differ, over all test queries."""
    whole = tests[0]
    for test in tests[1:]:
        whole = whole.joined(test)
    pair = [judge(whole, np.concatenate([one.mean for one in of_folds])) for of_folds in (ours, theirs)]
    outcome = compare(*pair, metric=metric)
    return (
        f"LightGBM {outcome.mean_b:.4f} over all test queries ({outcome.difference:+.4f}, p = {outcome.fisher_p:.2g})"
    )


def judge(test: RankingDataset, scores: np.ndarray) -> Evaluation:
    return evaluate(test, scores, metrics=METRICS, convention=CONVENTION)
