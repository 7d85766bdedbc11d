"""How much loss and NDCG does fixed-point training cost, by bits and by method (the thesis's Figure 4.9)?

Exact Top-3 ListNet, 46-15-1, 300 epochs on MQ2008's folds, back propagation in float32 and in `direct`, `adaptive` and
`batch` fixed point: the training loss of the last epoch, and test NDCG@10 (letor4) of the epoch that is best on the
validation fold. The thesis needs 27 bits for `direct`, 10 for `adaptive` and 8 for `batch` to stay within 4% of
float's NDCG.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_fold, synthetic_fold
from benchmarks.paper_numbers import LISTNET_BITS_WITHIN_4_PERCENT
from rankwell.data.folds import FoldData
from rankwell.kernels.lists.fixed_point_format import METHODS, MOST_BITS
from rankwell.metrics.evaluation import evaluate
from rankwell.rankers.listnet import ListNet

BITS = (4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 27, MOST_BITS)
FOLDS = (1, 2)
NEAR = 0.01


@dataclass(frozen=True)
class Outcome:
    """Means over the folds: the training loss of the first and the last epoch, test and validation NDCG@10."""

    first_loss: float
    last_loss: float
    ndcg: float
    validation_ndcg: float


def run(bench: Benchmark) -> None:
    found = [] if bench.quick else [letor_fold(bench, "MQ2008", number) for number in FOLDS]
    folds = [fold for fold in found if fold is not None] or [synthetic_fold(0.1)]
    exact = outcome(folds, bench.quick, precision="float32")
    bench.record("float32: test NDCG@10", value=exact.ndcg, unit="", better="higher")
    bench.record("float32: training loss", value=exact.last_loss, unit="", better="lower")
    again = outcome(folds, bench.quick, precision="float32")
    bench.check("the same run gives the same figures", exact == again, f"{exact} and {again}")
    lost: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
    for method in METHODS:
        within = []
        for bits in (8, MOST_BITS) if bench.quick else BITS:
            fixed = outcome(folds, bench.quick, precision=f"fixed{bits}", fixed_point=method)
            lost[method].append(record(bench, method, bits, exact, fixed))
            within.append((bits, fixed.validation_ndcg >= (1 - NEAR) * exact.validation_ndcg))
        record_least_width(bench, method, within)
    if not bench.quick:
        draw(lost, bench.figure("listnet_fixed_point"))


def record(bench: Benchmark, method: str, bits: int, exact: Outcome, fixed: Outcome) -> tuple[float, float]:
    """Record one format; returns how much of float32's fall in loss and of its NDCG is lost, in %."""
    higher = 100 * (fixed.last_loss - exact.last_loss) / exact.last_loss
    fall = 100 * (fixed.last_loss - exact.last_loss) / (exact.first_loss - exact.last_loss)
    ndcg = 100 * (exact.ndcg - fixed.ndcg) / exact.ndcg
    bench.record(
        f"{method}, {bits} bits: training loss above float32's", value=higher, unit="%",
        target=0.5 if bits == MOST_BITS else None, note=f"{fall:.1f}% of float32's fall in loss is missing",
    )  # fmt: skip
    bench.record(
        f"{method}, {bits} bits: NDCG@10 lost", value=ndcg, unit="%",
        paper="within 4%" if LISTNET_BITS_WITHIN_4_PERCENT[method] == bits else None, note=f"NDCG@10 {fixed.ndcg:.4f}",
    )  # fmt: skip
    return fall, ndcg


def record_least_width(bench: Benchmark, method: str, within: list[tuple[int, bool]]) -> None:
    """Record the width from which on every format is as good as float32 on the validation fold."""
    least = None
    for bits, near in reversed(within):
        if not near:
            break
        least = bits
    if least is not None:
        bench.record(
            f"{method}: bits for validation NDCG@10 within 1% of float32", value=least, unit="bits", better="lower",
            note=f"and every wider format of {', '.join(str(bits) for bits, _ in within)}; the best epoch of each",
        )  # fmt: skip


def outcome(folds: list[FoldData], quick: bool, **parameters: Any) -> Outcome:
    outcomes = []
    for fold in folds:
        ranker = ListNet(
            k=3,
            learning_rate=0.3,
            lr_decay=0.0,
            normalize="none",
            n_epochs=2 if quick else 300,
            n_seeds=1,
            eval_metric="ndcg@10",
            eval_convention="letor4",
            device="cpu",
            **parameters,
        ).fit(fold.train, eval_set=fold.validation)
        test = evaluate(fold.test, ranker.predict(fold.test), metrics=("ndcg@10",), convention="letor4")
        losses = ranker.history_["loss"]
        best = max(ranker.history_["validation ndcg@10"])
        outcomes.append((losses[0], losses[-1], test.mean["ndcg@10"], best))
    return Outcome(*np.mean(outcomes, axis=0).tolist())


def draw(lost: dict[str, list[tuple[float, float]]], path: Any) -> None:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(9.5, 4.0), layout="constrained")
    for place, (panel, title) in enumerate(
        zip(drawing.subplots(1, 2), ("float32's fall in training loss lost, %", "NDCG@10 lost, %"), strict=True)
    ):
        for method, values in lost.items():
            panel.plot(BITS, [value[place] for value in values], marker="o", label=method)
        panel.axhline(0.0, color="0.5", linewidth=1.0)
        panel.set_ylim(-10.0, 110.0 if place == 0 else 20.0)
        panel.set_xlabel("bits in multiplications")
        panel.set_title(title, fontsize=10)
        panel.legend()
    drawing.savefig(path)
