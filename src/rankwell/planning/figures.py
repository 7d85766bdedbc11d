"""The papers' figures with this machine's model: speedups over sizes (FAR 7 and 9), over workers (10), and how near
predictions are to what was measured. Needs Matplotlib."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwell.hardware.rankboost.far_paper import N_DOCS, N_FEATURES
from rankwell.planning.references import H200, NETWORKS
from rankwell.planning.round_model import DIVISIONS, Coefficients, RoundModel, TrainingSizes

_WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def model_from_json(noted: Mapping[str, Any]) -> RoundModel:
    """The model that a plan's JSON has (`TrainingPlan.to_json`)."""
    coefficients = {int(threads): Coefficients(**one) for threads, one in noted["coefficients"].items()}
    return RoundModel("cpu", coefficients, share=noted["share_searched"])


def draw_figures(noted: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw all four into one file. noted : a plan's JSON, with "measured" rows (documents, features, seconds) if any"""
    from matplotlib.figure import Figure

    model = model_from_json(noted)
    figure = Figure(figsize=(11, 8.5), layout="constrained")
    sizes, device, workers, accuracy = figure.subplots(2, 2).ravel()
    threads = max(model.coefficients)
    _draw_surface(sizes, lambda one: model.round_time(one, threads=1).total, lambda one: H200.round_time(one).total)
    sizes.set(title="an H200 over one thread, by size (as FAR's figure 7)")
    if threads > 1:
        _draw_surface(device, lambda one: model.round_time(one).total, lambda one: H200.round_time(one).total)
        device.set(title=f"an H200 over {threads} threads (as FAR's figure 9)")
    else:
        _draw_parts(device, model)
    _draw_workers(workers, model)
    _draw_accuracy(accuracy, noted.get("measured", ()))
    figure.savefig(path, metadata={"Date": None})


def _draw_surface(axes: Any, slower: Any, quicker: Any) -> None:
    docs, features = np.logspace(3, 8, 26), np.logspace(1, 4, 19)
    speedup = np.array(
        [[slower(one) / quicker(one) for one in (TrainingSizes(int(n), int(f)) for n in docs)] for f in features]
    )
    levels = axes.contourf(docs, features, speedup, levels=12)
    axes.figure.colorbar(levels, ax=axes, label="times as fast")
    axes.set(xscale="log", yscale="log", xlabel="documents", ylabel="features")


def _draw_parts(axes: Any, model: RoundModel) -> None:
    """What a round consists of, by the number of features."""
    features = [16, 32, 64, 136, 320, 646, 1296, 2592, 5184]
    rounds = [model.round_time(TrainingSizes(N_DOCS, number)) for number in features]
    shares = {name: [one.parts[name] / one.total for one in rounds] for name in rounds[0].parts}
    axes.stackplot(features, list(shares.values()), labels=list(shares))
    axes.set(xscale="log", xlabel="features", ylabel="share of a round", title="what a round on one thread consists of")
    axes.legend(loc="lower right")


def _draw_workers(axes: Any, model: RoundModel) -> None:
    far = TrainingSizes(N_DOCS, N_FEATURES)
    alone = model.round_time(far, threads=1).total
    for division in DIVISIONS:
        for name, style in (("1gbit", ":"), ("10gbit", "-")):
            times = [model.distributed(far, n, NETWORKS[name], division=division, threads=1).total for n in _WORKERS]
            axes.plot(_WORKERS, [alone / one for one in times], style, label=f"by {division}, {name}")
    axes.plot(_WORKERS, _WORKERS, color="0.8", label="linear")
    title = "the FAR paper's data over workers of one thread (as figure 10)"
    axes.set(xscale="log", yscale="log", xlabel="workers", ylabel="times as fast as one", title=title)
    axes.legend()


def _draw_accuracy(axes: Any, measured: Sequence[Mapping[str, float]]) -> None:
    for n_workers in sorted({int(row["workers"]) for row in measured}):
        rows = [row for row in measured if row["workers"] == n_workers]
        times = [[row[name] * 1e3 for row in rows] for name in ("seconds", "predicted")]
        axes.plot(*times, "o", label=f"{n_workers} worker{'' if n_workers == 1 else 's'}")
    axes.axline((1, 1), slope=1, color="0.5")
    title = "settings that were not used for fitting"
    axes.set(xscale="log", yscale="log", xlabel="measured, ms a round", ylabel="predicted", title=title)
    if measured:
        axes.legend()
