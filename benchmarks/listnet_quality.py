"""How good are ListNet and its relatives on LETOR 4.0, five folds: by default, and with a setting chosen on validation?

The convention is `letor4`. "By default" is `rankwell crossval NAME` without a grid: the epoch with the highest
validation NDCG@10 is kept. Else, for every fold, the setting and the epoch with the highest validation MeanNDCG are
taken. The test fold is evaluated once. LightGBM's lambdarank with its own defaults (100 trees, no validation) is beside
them. The published ListNet reaches MeanNDCG .4988 on MQ2007 and .4914 on MQ2008 (MAP .4652 and .4775), the best
published row .5003 and .4950.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_folds, synthetic_fold
from rankwell.data.folds import FoldData
from rankwell.metrics.evaluation import evaluate
from rankwell.rankers.lambdarank import LambdaRank
from rankwell.rankers.listmle import ListMLE
from rankwell.rankers.listnet import ListNet
from rankwell.rankers.neural import NeuralRanker
from rankwell.rankers.ranknet import RankNet
from rankwell.rankers.tuning import cross_validate

# Equation 2.5's network and a linear function; LETOR's features are scaled by query already.
SETTINGS: tuple[dict[str, Any], ...] = (
    {"hidden": (15,), "learning_rate": 0.3, "lr_decay": 0.0},
    {"hidden": (15,), "learning_rate": 1.0, "lr_decay": 0.05},
    {"hidden": (15,), "learning_rate": 0.01, "lr_decay": 0.0, "optimizer": "adam", "batch_queries": 16},
    {"hidden": (), "learning_rate": 0.03, "lr_decay": 0.05},
)
PUBLISHED = {
    ("MQ2007", "mean_ndcg"): 0.4988,
    ("MQ2008", "mean_ndcg"): 0.4914,
    ("MQ2007", "map"): 0.4652,
    ("MQ2008", "map"): 0.4775,
}
METRICS = ("mean_ndcg", "map", *(f"ndcg@{cut}" for cut in range(1, 11)))
RANKERS: dict[str, tuple[type[NeuralRanker], dict[str, Any]]] = {
    "ListNet Top-1": (ListNet, {"k": 1}),
    "ListNet Top-2": (ListNet, {"k": 2}),
    "ListNet Top-3": (ListNet, {"k": 3}),
    "RankNet": (RankNet, {}),
    "LambdaRank": (LambdaRank, {}),
    "ListMLE": (ListMLE, {}),
}


def run(bench: Benchmark) -> None:
    for collection in ("MQ2008", "MQ2007"):
        folds = letor_folds(bench, collection)
        source = collection if folds else f"synthetic instead of {collection}"
        folds = folds or [synthetic_fold(0.1)]
        for name, (cls, parameters) in RANKERS.items():
            measure_default(bench, folds, source, name, cls, parameters)
        measure_lightgbm(bench, folds, source)
        for name, (cls, parameters) in RANKERS.items():
            measure_ranker(bench, folds, source, name, cls, parameters)


def measure_default(bench, folds, source, name, cls, parameters):  # type: ignore[no-untyped-def]
    ranker = cls(**parameters, eval_convention="letor4", device="cpu", **({"n_epochs": 3} if bench.quick else {}))
    mean = cross_validate(ranker, folds, metrics=METRICS, convention="letor4").mean
    for metric in METRICS:
        published = PUBLISHED.get((source, metric))
        allowed = 0.005 if source == "MQ2008" else 0.0
        bench.record(
            f"{name} by default, {source}, test {metric} (letor4)", value=mean[metric], unit="", better="higher",
            target=published - allowed if published and name == "ListNet Top-1" else None, paper=published,
        )  # fmt: skip


def measure_lightgbm(bench, folds, source):  # type: ignore[no-untyped-def]
    try:
        from lightgbm import LGBMRanker
    except ImportError:
        return
    figures = []
    for fold in folds:
        rival = LGBMRanker(verbosity=-1, n_estimators=3 if bench.quick else 100)
        rival.fit(fold.train.features, fold.train.labels.astype(int), group=fold.train.query_sizes)
        test = evaluate(fold.test, rival.predict(fold.test.features), metrics=METRICS, convention="letor4").mean
        figures.append([test[metric] for metric in METRICS])
    for metric, value in zip(METRICS, np.mean(figures, axis=0).tolist(), strict=True):
        bench.record(f"LightGBM by default, {source}, test {metric} (letor4)", value=value, unit="", better="higher")


def measure_ranker(bench, folds, source, name, cls, parameters):  # type: ignore[no-untyped-def]
    figures: dict[str, list[float]] = {metric: [] for metric in METRICS}
    chosen = []
    for fold in folds:
        ranker, validation, setting = best_on_validation(cls, parameters, fold, bench.quick)
        again = evaluate(fold.validation, ranker.predict(fold.validation), metrics=("mean_ndcg",), convention="letor4")
        bench.check(
            f"{name}, {source} {fold.name}: the kept network is the best epoch's",
            abs(again.mean["mean_ndcg"] - validation) < 2e-3,
            f"{again.mean['mean_ndcg']:.4f} and {validation:.4f}",
        )
        test = evaluate(fold.test, ranker.predict(fold.test), metrics=METRICS, convention="letor4").mean
        for metric in METRICS:
            figures[metric].append(test[metric])
        chosen.append(f"{setting['hidden']} at {setting['learning_rate']}")
    for metric in METRICS:
        published = PUBLISHED.get((source, metric))
        bench.record(
            f"{name}, {source}, test {metric} (letor4)",
            value=float(np.mean(figures[metric])),
            unit="",
            better="higher",
            target=published if name.startswith("ListNet") else None,
            paper=published,
            note="; ".join(chosen) if metric == "mean_ndcg" else "",
        )


def best_on_validation(cls, parameters, fold: FoldData, quick: bool):  # type: ignore[no-untyped-def]
    """The ranker with the highest validation MeanNDCG over all settings and epochs, that figure, and its setting."""
    best = None
    for setting in SETTINGS[:1] if quick else SETTINGS:
        ranker = cls(
            **parameters,
            **setting,
            normalize="none",
            n_seeds=1,
            n_epochs=3 if quick else 100,
            early_stopping_rounds=None if quick else 25,
            eval_metric="mean_ndcg",
            eval_convention="letor4",
            device="cpu",
        ).fit(fold.train, eval_set=fold.validation)
        value = max(ranker.history_["validation mean_ndcg"])
        if best is None or value > best[1]:
            best = (ranker, value, setting)
    return best
