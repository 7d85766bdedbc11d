"""How good is a ranker that learns from clicks, if clicks are corrected for position bias and if they are not?

Users are simulated on MQ2007's training folds, where the labels are known: a weak ranker, trained on one query in a
hundred, orders the documents; position p is examined p^-1 times as often as the first. NDCG@10 (the default
convention) on the test fold of rankers trained on the labels, on judgments from clicks with the bias estimated from
the same log, and on click rates as they are. The corrected ranker must be within 0.01 of the one trained on labels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import rankwell
from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_folds, synthetic_fold
from rankwell.clicks import (
    ClickCounts,
    PositionBias,
    click_judgments,
    count_clicks,
    estimate_position_bias,
    simulate_clicks,
)
from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData

N_IMPRESSIONS = 300_000
TRUTH = PositionBias.power(1.0, 500)
NO_BIAS = PositionBias.power(0.0, 1)
RANKERS = {"RankSVM": rankwell.RankSVM, "RankBoost": rankwell.RankBoost, "least squares": rankwell.LeastSquares}


def run(bench: Benchmark) -> None:
    folds = letor_folds(bench, "MQ2007")
    source = "MQ2007" if folds else "synthetic"
    figures: dict[str, list[Mapping[str, float]]] = {name: [] for name in RANKERS}
    errors = []
    for fold in folds or [synthetic_fold(0.3)]:
        counts = _logged(fold.train, 3_000 if bench.quick else N_IMPRESSIONS)
        bias = estimate_position_bias(counts)
        errors.append(
            float(np.abs(bias.examination[:10] / TRUTH.examination[: len(bias.examination)][:10] - 1.0).max())
        )
        for name, ranker in RANKERS.items():
            figures[name].append(_figures(ranker, fold, counts, bias))
    # A few thousand impressions of the quick form say little about single positions.
    most = 1.0 if bench.quick else 0.1
    bench.check("the bias is found", max(errors) < most, f"largest relative error {max(errors):.1%}")
    bench.record(
        f"position bias, largest relative error in the first 10 positions, {source}", value=max(errors), unit=""
    )
    for name, found in figures.items():
        labels, corrected, naive = (
            float(np.mean([one[way] for one in found])) for way in ("labels", "corrected", "naive")
        )
        bench.record(
            f"{name}: NDCG@10 trained on corrected clicks, {source}",
            value=corrected,
            unit="",
            better="higher",
            target=labels - 0.01,
            note=f"trained on labels {labels:.4f}, on click rates as they are {naive:.4f}",
        )


def _logged(train: RankingDataset, n_impressions: int) -> ClickCounts:
    weak = rankwell.LeastSquares().fit(train.subset(np.arange(0, train.n_queries, 100)))
    return count_clicks(simulate_clicks(train, weak.predict(train), TRUTH, n_impressions=n_impressions))


def _figures(
    ranker: type[rankwell.Ranker], fold: FoldData, counts: ClickCounts, bias: PositionBias
) -> Mapping[str, float]:
    ways = {
        "labels": fold.train,
        "corrected": _judged(fold.train, click_judgments(counts, bias)),
        "naive": _judged(fold.train, click_judgments(counts, NO_BIAS)),
    }
    return {way: float(ranker().fit(dataset).score(fold.test)) for way, dataset in ways.items()}


def _judged(train: RankingDataset, judgments: Mapping[str, Mapping[str, float]]) -> RankingDataset:
    labels = np.zeros(train.n_docs)
    for judged in judgments.values():
        for row, grade in judged.items():
            labels[int(row)] = grade
    return RankingDataset(train.features, labels, group=train.query_sizes)
