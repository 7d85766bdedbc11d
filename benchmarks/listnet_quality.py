"""How good is ListNet on LETOR 4.0: Top-1, Top-2 and Top-3, five folds, everything chosen on validation?

The convention is `letor4`. For every fold the setting and the epoch with the highest validation MeanNDCG are taken; the
test fold is evaluated once. The published ListNet reaches MeanNDCG .4988 on MQ2007 and .4914 on MQ2008 (MAP .4652 and
.4775), the best published row .5003 and .4950.
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

# Equation 2.5's network and a linear function; LETOR's features are scaled by query already.
SETTINGS: tuple[dict[str, Any], ...] = (
    {"hidden": (15,), "learning_rate": 0.3},
    {"hidden": (15,), "learning_rate": 1.0, "lr_decay": 0.05},
    {"hidden": (15,), "learning_rate": 0.01, "optimizer": "adam", "batch_queries": 16},
    {"hidden": (), "learning_rate": 0.03, "lr_decay": 0.05},
)
PUBLISHED = {
    ("MQ2007", "mean_ndcg"): 0.4988,
    ("MQ2008", "mean_ndcg"): 0.4914,
    ("MQ2007", "map"): 0.4652,
    ("MQ2008", "map"): 0.4775,
}
METRICS = ("mean_ndcg", "map", "ndcg@10")
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
        for name, (cls, parameters) in RANKERS.items():
            measure_ranker(bench, folds or [synthetic_fold(0.1)], source, name, cls, parameters)


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
