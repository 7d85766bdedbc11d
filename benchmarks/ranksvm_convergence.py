"""How fast does RankSVM converge: the relative distance to the optimum (equation 15) against seconds of training?

The figure is the paper's Figure 1, on synthetic collections of its sizes with standardised features: one line a device,
the CPU, and the GPU where there is one.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.machine import describe_machine
from benchmarks.ranksvm_cases import collection, ranker
from rankwell import RankingDataset
from rankwell.kernels.device_report import report_device

SHAPES = ("mq2007-list", "mslr10k")


def run(bench: Benchmark) -> None:
    lines = []
    for shape in SHAPES:
        dataset = collection(bench, shape, standardised=True)
        exact = ranker("cpu").set_params(tol=1e-9).fit(dataset).history_["objective"][-1]
        for device in ("cpu", "cuda"):
            if report_device(device).usable:
                lines.append((shape, device, *descend(bench, shape, device, dataset, exact)))
    draw(lines, bench)


def descend(
    bench: Benchmark, shape: str, device: str, dataset: RankingDataset, exact: float
) -> tuple[list[float], list[float]]:
    """Seconds and η after every outer iteration of the second of two trainings (the first one compiles)."""
    seconds: list[float] = []
    ranker(device).fit(dataset)
    started = time.perf_counter()
    trained = ranker(device).fit(dataset, callback=lambda step: seconds.append(time.perf_counter() - started))
    eta = [abs(value - exact) / exact for value in trained.history_["objective"]]
    bench.check(f"{shape} on {device}: converged", trained.converged_ and eta[-1] < 1e-6, f"eta {eta[-1]:.1e}")
    bench.record(
        f"`{shape}` shape on {device}: to a relative gradient of 1e-5",
        value=seconds[-1],
        unit="s",
        note="eta after each outer iteration: "
        + ", ".join(f"{e:.0e} ({s:.3f} s)" for s, e in zip(seconds, eta, strict=True)),
    )
    return seconds, eta


def draw(lines: list[tuple[Any, ...]], bench: Benchmark) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(SHAPES), figsize=(5 * len(SHAPES), 4), layout="constrained")
    for shape, axis in zip(SHAPES, axes, strict=True):
        for name, device, seconds, eta in lines:
            if name == shape:
                axis.plot(seconds, np.maximum(eta, 1e-16), marker="o", label=label(device))
        axis.set(title=f"`{shape}` shape", xlabel="seconds of training", ylabel="η (equation 15)", yscale="log")
        axis.legend()
    figure.savefig(bench.figure("convergence"), dpi=120)
    pyplot.close(figure)


def label(device: str) -> str:
    machine = describe_machine()
    return machine.gpu.name if device == "cuda" and machine.gpu is not None else f"CPU, {machine.cores} cores"
