"""How much NDCG does fixed-point training lose, by bits and by method (the thesis's Figure 4.9)?

Exact Top-3 ListNet, 46-15-1, 100 epochs on MQ2008's folds, back propagation in float32 and in `direct`, `adaptive` and
`batch` fixed point; test NDCG@10 (letor4) of the last epoch, without model selection. The thesis needs 27 bits for
`direct`, 10 for `adaptive` and 8 for `batch` to stay within 4% of float.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_fold, synthetic_fold
from rankwell.data.folds import FoldData
from rankwell.kernels.lists.fixed_point_format import METHODS
from rankwell.metrics.evaluation import evaluate
from rankwell.rankers.listnet import ListNet

BITS = (4, 6, 8, 10, 12, 16, 20, 24, 27, 31)
FOLDS = (1, 2)
THESIS_BITS = {"direct": 27, "adaptive": 10, "batch": 8}


def run(bench: Benchmark) -> None:
    found = [] if bench.quick else [letor_fold(bench, "MQ2008", number) for number in FOLDS]
    folds = [fold for fold in found if fold is not None] or [synthetic_fold(0.1)]
    exact = figure(folds, bench.quick, precision="float32")
    bench.record("float32: test NDCG@10", value=exact, unit="", better="higher")
    again = figure(folds, bench.quick, precision="float32")
    bench.check("the same run gives the same figure", exact == again, f"{exact} and {again}")
    losses: dict[str, list[float]] = {method: [] for method in METHODS}
    for method in METHODS:
        for bits in (8,) if bench.quick else BITS:
            value = figure(folds, bench.quick, precision=f"fixed{bits}", fixed_point=method)
            lost = 100 * (exact - value) / exact
            losses[method].append(lost)
            bench.record(
                f"{method}, {bits} bits: NDCG@10 lost", value=lost, unit="%",
                paper="within 4%" if THESIS_BITS[method] == bits else None, note=f"NDCG@10 {value:.4f}",
            )  # fmt: skip
    if not bench.quick:
        draw(losses, bench.figure("listnet_fixed_point"))


def figure(folds: list[FoldData], quick: bool, **parameters: Any) -> float:
    """The mean test NDCG@10 over the folds."""
    values = []
    for fold in folds:
        ranker = ListNet(
            k=3, learning_rate=0.3, normalize="none", n_epochs=2 if quick else 100, device="cpu", **parameters
        ).fit(fold.train)
        scores = ranker.predict(fold.test)
        values.append(evaluate(fold.test, scores, metrics=("ndcg@10",), convention="letor4").mean["ndcg@10"])
    return float(np.mean(values))


def draw(losses: dict[str, list[float]], path: Any) -> None:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.5, 4.0), layout="constrained")
    panel = drawing.subplots()
    for method, values in losses.items():
        panel.plot(BITS, values, marker="o", label=method)
    panel.axhline(4.0, color="0.5", linestyle="--", linewidth=1.0)
    panel.set_xlabel("bits in multiplications")
    panel.set_ylabel("NDCG@10 lost against float32, %")
    panel.legend()
    drawing.savefig(path)
