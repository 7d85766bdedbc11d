"""RankSVM's plots: the paper's Table 2 and Figure 1."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.report.drawing import COLOURS, OURS, PAPER, Drawing, new_figure
from benchmarks.report.figures.paper_times import paper_times
from benchmarks.report.stored_results import MissingResultError, StoredResults

_SHAPES = ("mq2007-list", "mq2008-list", "mslr10k", "mslr30k")
_STEP = re.compile(r"([\d.e+-]+) \(([\d.]+) s\)")
_CASE = re.compile(r"`(?P<shape>[\w-]+)` shape on (?P<device>\w+): to a relative gradient of 1e-5")


def training_times(results: StoredResults) -> dict[str, dict[str, float]]:
    """By collection: seconds to a tolerance of 1e-5, by who took them."""
    found = {}
    for shape in _SHAPES:
        cpu = results.row("ranksvm_cpu", f"to tolerance, `{shape}` shape, standardised", "cpu2")
        device = results.row("ranksvm_cuda", f"to tolerance, `{shape}` shape, transfer included", "h200")
        found[shape] = {**paper_times(cpu), "2 cores": cpu.value, "H200": device.value}
    return found


def draw_times(results: StoredResults) -> Any:
    times = training_times(results)
    figure = new_figure(9.0, 3.0)
    panel = figure.subplots()
    colours = {"DCM": "#666666", "OST": PAPER, "GPU": "#CCCCCC", "2 cores": OURS, "H200": COLOURS[5]}
    width = 0.16
    for place, (who, colour) in enumerate(colours.items()):
        seconds = [of_shape[who] for of_shape in times.values()]
        places = [number + (place - 2) * width for number in range(len(times))]
        label = f"{who} (paper)" if who in ("DCM", "OST", "GPU") else who
        panel.bar(places, seconds, width=width * 0.95, color=colour, label=label)
        for at, value in zip(places, seconds, strict=True):
            panel.text(at, value * 1.15, f"{value:.3g}" if value < 1000 else f"{value:,.0f}", ha="center", fontsize=6)
    panel.set_xticks(range(len(times)), list(times))
    panel.set(yscale="log", ylabel="seconds of training (log)")
    panel.legend(ncols=5, loc="upper left")
    panel.set_ylim(top=3e5)
    return figure


def descents(results: StoredResults) -> dict[str, dict[str, tuple[list[float], list[float]]]]:
    """By collection and device: seconds, and η after each outer iteration."""
    found: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for row in results.rows("ranksvm_convergence", "cpu16"):
        case, steps = _CASE.fullmatch(row.case), _STEP.findall(row.note)
        if case and steps:
            seconds, eta = [float(second) for _, second in steps], [float(value) for value, _ in steps]
            found.setdefault(case["shape"], {})[case["device"]] = (seconds, eta)
    if not found:
        raise MissingResultError("ranksvm_convergence has no steps")
    return found


def draw_convergence(results: StoredResults) -> Any:
    lines = descents(results)
    names = {"cpu": "16 cores", "cuda": "H200"}
    figure = new_figure(8.0, 3.0)
    panels = figure.subplots(1, len(lines), squeeze=False)[0]
    for panel, (shape, by_device) in zip(panels, lines.items(), strict=True):
        for (device, (seconds, eta)), colour in zip(by_device.items(), COLOURS, strict=False):
            panel.plot(seconds, eta, marker="o", markersize=4, color=colour, label=names.get(device, device))
        panel.set(title=shape, xlabel="seconds of training", ylabel="η (equation 15, log)", yscale="log")
        panel.set_xlim(left=0)
        panel.legend()
    return figure


RANKSVM_TIMES = Drawing(
    "ranksvm-times",
    "ranksvm",
    "Table 2 of the RankSVM paper: seconds of training to a tolerance of 1e-5, on synthetic collections of its sizes; "
    "the paper's DCM, OST and GPU in grey (mslr with raw features)",
    draw_times,
)
RANKSVM_CONVERGENCE = Drawing(
    "ranksvm-convergence",
    "ranksvm",
    "Figure 1 of the RankSVM paper: the distance to the optimum against seconds of training",
    draw_convergence,
)
