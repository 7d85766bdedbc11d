"""How fast does RankSVM converge: the relative distance to the optimum (equation 15) against seconds of training?

The figure is the paper's Figure 1, on synthetic collections of its sizes with standardised features: on the CPU a line
for each way of counting pairs that the paper compares, DCM (direct counting, O(lk)) and OST (an order-statistic tree,
O(l log k)), and one for the way that is chosen by default; and the GPU if there is one. k, the number of different
labels, is small in two collections and large in one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.machine import describe_machine
from benchmarks.paper_numbers import RANKSVM_TABLE_2
from benchmarks.ranksvm_cases import COUNTING, collection, ranker
from rankwell import RankingDataset
from rankwell.kernels.device_report import report_device

SHAPES = ("mq2007", "mslr10k", "mq2007-list")
TRAININGS = 5


@dataclass(frozen=True)
class Descent:
    """Seconds and η after every outer iteration, and the way of counting pairs that was used."""

    seconds: list[float]
    eta: list[float]
    method: str
    converged: bool


def run(bench: Benchmark) -> None:
    lines: dict[str, dict[str, Descent]] = {}
    for shape in SHAPES:
        dataset = collection(bench, shape, standardised=True)
        exact = ranker("cpu").set_params(tol=1e-9).fit(dataset).history_["objective"][-1]
        ways: dict[str, dict[str, Any]] = {f"cpu, {name}": {"method": way} for name, way in COUNTING.items()}
        ways |= {device: {} for device in ("cpu", "cuda") if report_device(device).usable}
        found = {way: descend(bench, shape, way, settings, dataset, exact) for way, settings in ways.items()}
        demand_one_path(bench, shape, found)
        lines[shape] = found
    draw(lines, bench)


def descend(
    bench: Benchmark, shape: str, way: str, settings: dict[str, Any], dataset: RankingDataset, exact: float
) -> Descent:
    """The quickest of several trainings, after one that compiles."""
    device = way.split(",")[0]
    ranker(device, **settings).fit(dataset)
    trainings = [train(device, settings, dataset, exact) for _ in range(1 if bench.quick else TRAININGS)]
    quickest = min(trainings, key=lambda training: training.seconds[-1])
    converged = quickest.converged and quickest.eta[-1] < 1e-6
    bench.check(f"{shape} on {way}: converged", converged, f"eta {quickest.eta[-1]:.1e}")
    steps = ", ".join(f"{e:.1e} ({s:.5f} s)" for s, e in zip(quickest.seconds, quickest.eta, strict=True))
    bench.record(
        f"`{shape}` shape on {way}: to a relative gradient of 1e-5",
        value=quickest.seconds[-1],
        unit="s",
        paper=RANKSVM_TABLE_2[shape],
        note=f"{quickest.method}; eta after each outer iteration: {steps}",
    )
    return quickest


def train(device: str, settings: dict[str, Any], dataset: RankingDataset, exact: float) -> Descent:
    seconds: list[float] = []
    started = time.perf_counter()
    trained = ranker(device, **settings).fit(
        dataset, callback=lambda step: seconds.append(time.perf_counter() - started)
    )
    eta = [abs(value - exact) / exact for value in trained.history_["objective"]]
    return Descent(seconds, eta, trained.method_, trained.converged_)


def demand_one_path(bench: Benchmark, shape: str, found: dict[str, Descent]) -> None:
    """Both ways of counting are the same sums: they differ in seconds, not in what an iteration reaches."""
    first, second = (np.array(found[f"cpu, {name}"].eta) for name in COUNTING)
    same = len(first) == len(second) and np.allclose(first, second, rtol=1e-3, atol=1e-9)
    bench.check(f"{shape}: DCM and OST reach the same eta at each iteration", same, f"{len(first)} iterations")


def draw(lines: dict[str, dict[str, Descent]], bench: Benchmark) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(SHAPES), figsize=(5 * len(SHAPES), 4), layout="constrained")
    for axis, (shape, found) in zip(axes, lines.items(), strict=True):
        for way, descent in found.items():
            axis.plot(descent.seconds, np.maximum(descent.eta, 1e-16), marker="o", label=label(way, descent))
        axis.set(title=f"`{shape}` shape", xlabel="seconds of training (log)", ylabel="η (equation 15)")
        axis.set(xscale="log", yscale="log")
        axis.legend()
    figure.savefig(bench.figure("convergence"), dpi=120)
    pyplot.close(figure)


def label(way: str, descent: Descent) -> str:
    machine = describe_machine()
    if way == "cuda" and machine.gpu is not None:
        return machine.gpu.name
    device, _, forced = way.partition(", ")
    return f"{machine.cores} cores, " + (forced or f"the chosen way ({descent.method})") if device == "cpu" else way
