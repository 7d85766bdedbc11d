"""What does swapping between kernels of different widths bring, at equal epochs and at equal time (chapter 5)?

Exact Top-3 ListNet, 46-15-1, on MQ2008 Fold1; validation NDCG@10 (letor4). Time is the board's: each width has the
configuration that the multipliers of an ECP5-85k allow, an epoch takes the cycles of the accelerator's formula, and a
swap takes as long as reading a bitstream from flash memory (docs/algorithms/hardware.md). The thesis swaps once, at
epochs 50 to 250 of 300, between 8 or 16 bits and float32; the accelerator has no float32, and 31 bits, which reach its
training loss, take its place. Here also several swaps, and swaps by the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_fold, synthetic_fold
from rankwell.hardware.listnet.board import RECONFIGURATION_SECONDS
from rankwell.hardware.listnet.modelled_trainer import ModelledNetworkTrainer
from rankwell.hardware.listnet.thesis import SWAP_SECONDS
from rankwell.kernels.lists.contract import NetworkProblem, NetworkTrainer
from rankwell.rankers.listnet import ListNet

Curve = tuple[list[float], list[float]]
WIDE = "fixed31"


class BoardListNet(ListNet):
    """ListNet whose history has the cycles and seconds of the board, by the cycle model."""

    def _trainer(self, device: str, problem: NetworkProblem, options: Mapping[str, bool]) -> NetworkTrainer:
        return ModelledNetworkTrainer(problem)


def run(bench: Benchmark) -> None:
    found = None if bench.quick else letor_fold(bench, "MQ2008", 1)
    fold = synthetic_fold(0.1) if found is None else found
    epochs = 12 if bench.quick else 300
    bench.record(
        "a swap of configurations", value=RECONFIGURATION_SECONDS * 1e3, unit="ms",
        paper=f"{SWAP_SECONDS * 1e3:.0f} ms", note="bitstream of an ECP5-85k at 248 Mbit/s; predicted",
    )  # fmt: skip
    exact = fitted(ListNet, fold, epochs, precision="float32").history_["validation ndcg@10"]
    bench.record(
        "float32: validation NDCG@10 after all epochs", value=exact[-1], unit="", better="higher",
        note=f"best {max(exact):.4f}; it has no kernel, so no time",
    )  # fmt: skip
    curves = {name: train(fold, epochs, precision=name) for name in (WIDE, "fixed16", "fixed8")}
    bench.check("every run has all its epochs", all(len(figures) == epochs for figures, _ in curves.values()))
    points = [epochs // 6 * part for part in (1, 3, 5)]
    for bits in ("fixed8", "fixed16"):
        for point in points:
            for start, end in ((WIDE, bits), (bits, WIDE)):
                name = f"{start} to {end} after {point} epochs"
                curves[name] = train(fold, epochs, precision=start, swap=((point + 1, end),))
    third = epochs // 3
    by_thirds = ((third, "fixed8"), (2 * third, WIDE))
    curves[f"{WIDE}, fixed8, {WIDE} by thirds"] = train(fold, epochs, precision=WIDE, swap=by_thirds)
    rule = ("gain", 0.05, WIDE, "fixed8")
    curves["by the rule: below 0.05 of NDCG a second"] = train(fold, epochs, precision="fixed8", swap=rule)
    again = train(fold, epochs, precision="fixed8", swap=rule)
    bench.check("the rule swaps at the same epochs in every run", again == curves[list(curves)[-1]])
    budget = sum(curves["fixed8"][1])
    for name, (figures, seconds) in curves.items():
        record(bench, name, figures, seconds, budget)
    if not bench.quick:
        draw(curves, bench.figure("listnet_swapping"))


def record(bench: Benchmark, name: str, figures: list[float], seconds: list[float], budget: float) -> None:
    within = np.cumsum(seconds) <= budget * (1 + 1e-9)
    in_time = max(np.asarray(figures)[within], default=float("nan"))
    bench.record(
        f"{name}: validation NDCG@10 after all epochs", value=figures[-1], unit="", better="higher",
        note=f"{sum(seconds):.3f} s on the board; best within fixed8's {budget:.3f} s: {in_time:.4f}, "
        f"{int(within.sum())} epochs",
    )  # fmt: skip


def train(fold: Any, epochs: int, **parameters: Any) -> Curve:
    """The validation figure and the seconds on the board of every epoch."""
    history = fitted(BoardListNet, fold, epochs, **parameters).history_
    return history["validation ndcg@10"], history["board_seconds"]


def fitted(ranker: type[ListNet], fold: Any, epochs: int, **parameters: Any) -> ListNet:
    settings: dict[str, Any] = {"k": 3, "learning_rate": 0.3, "lr_decay": 0.0, "normalize": "none", "n_seeds": 1}
    settings |= {"eval_convention": "letor4", "device": "cpu", "n_epochs": epochs}
    return ranker(**settings, **parameters).fit(fold.train, eval_set=fold.validation)


def draw(curves: Mapping[str, Curve], path: Any) -> None:
    """The best figure so far against seconds of the board."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(9.5, 4.5), layout="constrained")
    panel = drawing.subplots()
    for name, (figures, seconds) in curves.items():
        if "fixed16" not in name or name == "fixed16":
            panel.plot(np.cumsum(seconds), np.maximum.accumulate(figures), label=name, linewidth=1.0)
    panel.set(xlabel="seconds on the board, swaps included", ylabel="best validation NDCG@10 so far")
    panel.legend(fontsize=7)
    drawing.savefig(path)
