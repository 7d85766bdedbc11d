"""What does swapping between float and fixed-point kernels bring, at equal epochs and at equal time (chapter 5)?

Exact Top-3 ListNet, 46-15-1, on MQ2008 Fold1; validation NDCG@10 (letor4). The thesis swaps once, at epochs 50 to 250
of 300; here also several times, and by the rule. On the CPU fixed point is emulated in integers and is slower than
float32, so equal time favours float32 here, where the thesis's FPGA trains 8 bits three times as fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_fold, synthetic_fold
from rankwell.rankers.listnet import ListNet


def run(bench: Benchmark) -> None:
    found = None if bench.quick else letor_fold(bench, "MQ2008", 1)
    fold = synthetic_fold(0.1) if found is None else found
    epochs = 6 if bench.quick else 120
    pure = {name: train(fold, epochs, precision=name) for name in ("float32", "fixed8", "fixed16")}
    budget = sum(pure["float32"][1])
    bench.check("every run has all its epochs", all(len(figures) == epochs for figures, _ in pure.values()))
    for name, (figures, seconds) in pure.items():
        record(bench, name, figures, seconds, budget)
    points = [epochs // 6 * part for part in (1, 3, 5)]
    for bits in ("fixed8", "fixed16"):
        for point in points:
            for start, end in (("float32", bits), (bits, "float32")):
                figures, seconds = train(fold, epochs, precision=start, swap=((point + 1, end),))
                record(bench, f"{start} to {end} after {point} epochs", figures, seconds, budget)
    third = epochs // 3
    figures, seconds = train(fold, epochs, precision="float32", swap=((third, "fixed8"), (2 * third, "float32")))
    record(bench, "float32, fixed8, float32 by thirds", figures, seconds, budget)
    figures, seconds = train(fold, epochs, precision="fixed8", swap=("gain", 1e-3, "float32", "fixed8"))
    record(bench, "by the rule: below 0.001 of NDCG a second", figures, seconds, budget)


def record(bench: Benchmark, name: str, figures: list[float], seconds: list[float], budget: float) -> None:
    within = np.cumsum(seconds) <= budget
    in_time = max(np.asarray(figures)[within], default=float("nan"))
    bench.record(
        f"{name}: validation NDCG@10 after all epochs", value=figures[-1], unit="", better="higher",
        note=f"{sum(seconds):.2f} s of training; best within float32's {budget:.2f} s: {in_time:.4f}, "
        f"{int(within.sum())} epochs",
    )  # fmt: skip


def train(fold: Any, epochs: int, **parameters: Any) -> tuple[list[float], list[float]]:
    """The validation figure and the training seconds of every epoch."""
    # Compiled beforehand, so that the first epoch is like the others.
    settings = {"k": 3, "learning_rate": 0.3, "lr_decay": 0.0, "normalize": "none", "n_seeds": 1}
    settings |= {"eval_convention": "letor4", "device": "cpu"}
    for precision in ("float32", "fixed8"):
        ListNet(**settings, n_epochs=1, precision=precision).fit(fold.train)
    ranker = ListNet(**settings, n_epochs=epochs, **parameters).fit(fold.train, eval_set=fold.validation)
    seconds = np.diff(ranker.history_["seconds"], prepend=0.0)
    return ranker.history_["validation ndcg@10"], seconds.tolist()
