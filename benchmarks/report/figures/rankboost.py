"""RankBoost's plots: a round beside the papers' hardware, its growth by Table I, its energy."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.report.drawing import COLOURS, OURS, PAPER, Drawing, new_figure
from benchmarks.report.figures.paper_times import paper_times
from benchmarks.report.stored_results import MissingResultError, StoredResults
from benchmarks.table import write_figure

_WEAK_LEARNERS = ("m2", "m2.2dint", "m3", "m3.int")
_QUANTITIES = ("documents", "pairs", "features", "thresholds")
_JOULES = re.compile(r"FAR2 (\d+) J")


def draw_rounds(results: StoredResults) -> Any:
    """Seconds of a round at the FPGA paper's size and at the CUDA paper's."""
    cpu = results.row("rankboost_cpu", "far, a whole round", "cpu2")
    far = results.row("rankboost_cuda", "far, a whole round", "h200")
    cuda = results.row("rankboost_cuda", "cuda2010, a whole round", "h200")
    bars = {
        "1,196,711 documents, 646 features": {
            **{f"{what} (2009)": seconds for what, seconds in paper_times(cpu).items()},
            "2 cores": cpu.value / 1e3,
            "H200": far.value / 1e3,
        },
        "173,354 documents, 2,576 features": {
            **{f"{what} (2010)": seconds for what, seconds in paper_times(cuda).items()},
            "H200": cuda.value / 1e3,
        },
    }
    for times, name in zip(bars.values(), ("far", "cuda2010"), strict=True):
        if results.has("rankboost_opencl_cuda"):
            opencl = results.row("rankboost_opencl_cuda", f"{name}, a whole round with OpenCL")
            times["H200, OpenCL"] = opencl.value / 1e3
    figure = new_figure(9.0, 2.2)
    panels = figure.subplots(1, 2)
    for panel, (title, times) in zip(panels, bars.items(), strict=True):
        horizontal_bars(panel, dict(sorted(times.items(), key=lambda each: -each[1])), "s")
        panel.set(title=title, xlabel="seconds of a round (log)")
    return figure


def horizontal_bars(panel: Any, values: dict[str, float], unit: str) -> None:
    """Bars on a log axis with their numbers; what has a year in brackets is a paper's."""
    for place, (name, value) in enumerate(values.items()):
        panel.barh(place, value, color=PAPER if name.endswith(")") else OURS, height=0.7)
        panel.text(value * 1.15, place, f"{write_figure(value)} {unit}", va="center", fontsize=8)
    panel.set_yticks(range(len(values)), list(values))
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.set_xlim(min(values.values()) / 3, max(values.values()) * 12)


def draw_weak_learners(results: StoredResults) -> Any:
    """How much longer a search takes if one quantity is doubled, beside Table I's prediction."""
    figure = new_figure(9.0, 2.4)
    panels = figure.subplots(1, len(_WEAK_LEARNERS), sharey=True)
    for panel, learner in zip(panels, _WEAK_LEARNERS, strict=True):
        for place, quantity in enumerate(_QUANTITIES):
            row = results.row("rankboost_weak_learners", f"{learner}, twice the {quantity}", "cpu2")
            panel.plot(float(row.paper or 0), place, marker="|", markersize=16, color=PAPER)
            panel.plot(row.value, place, marker="o", color=OURS)
        panel.set(title=learner, xlim=(0.5, 2.6), xticks=(1, 2))
        panel.set_ylim(len(_QUANTITIES) - 0.5, -0.5)
    panels[0].set_yticks(range(len(_QUANTITIES)), [f"twice the {quantity}" for quantity in _QUANTITIES])
    figure.supxlabel("times as long (dot), and as Table I of the FAR paper predicts (line)", fontsize=9)
    return figure


def draw_energy(results: StoredResults) -> Any:
    row = results.row("rankboost_cuda", "far, energy of a round", "h200")
    printed = _JOULES.search(str(row.paper))
    energies = {"FAR2, the whole computer (2009)": float(printed[1])} if printed else {}
    energies["H200, power.draw"] = row.value
    of_cpu = [row for row in results.rows("rankboost_cpu", "cpu2") if row.case == "far, energy of a round"]
    if of_cpu:
        energies["2 cores, RAPL"] = of_cpu[0].value
    figure = new_figure(6.0, 1.4)
    panel = figure.subplots()
    horizontal_bars(panel, energies, "J")
    unknown = "" if of_cpu else "\n2 cores: unknown, the machine has no RAPL counters"
    panel.set_xlabel(f"joules of a round, 1,196,711 documents, 646 features (log){unknown}")
    return figure


def draw_routines(results: StoredResults) -> Any:
    """FAR's table IV: seconds of a round by routine, the paper's software beside ours, and more threads."""
    rows = results.rows("rankboost_routines", "cpu2")
    shares = {row.case: row for row in rows if row.case.startswith("routine: ")}
    threads = {int(row.case.split()[1]): row.value for row in rows if row.case.startswith("threads: ")}
    figure = new_figure(9.0, 2.6)
    left, right = figure.subplots(1, 2)
    names = [case.removeprefix("routine: ") for case in shares]
    for place, row in enumerate(shares.values()):
        left.barh(place - 0.27, row.value / 1e3, color=OURS, height=0.25, label="2 cores" if place == 0 else None)
        for number, (what, seconds) in enumerate(paper_times(row).items()):
            label = f"{what} (2009)" if place == 0 else None
            place_of_bar, alpha = place + 0.27 * number, 1.0 - 0.45 * number
            left.barh(place_of_bar, seconds, color=PAPER, alpha=alpha, height=0.25, label=label)
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.set(xscale="log", xlabel="seconds of a round (log)")
    left.legend()
    right.plot(list(threads), list(threads.values()), marker="o", color=OURS)
    right.set(xlabel="threads", ylabel="ms of a round", xticks=list(threads), ylim=(0, None))
    return figure


def draw_surface(results: StoredResults) -> Any:
    """The cost of a round as a fitted function of documents and features, predicted against measured."""
    figure = new_figure(5.0, 4.0)
    panel = figure.subplots()
    found = {"2 cores": ("rankboost_surface", "cpu2"), "H200": ("rankboost_surface_cuda", "h200")}
    stored = {title: results.rows(*where) for title, where in found.items() if results.has(*where)}
    if not stored:
        raise MissingResultError("there are no results of rankboost_surface")
    for (title, every), colour in zip(stored.items(), COLOURS, strict=False):
        rows = [row for row in every if row.case.startswith("round, ")]
        measured = [row.value for row in rows]
        predicted = [float(row.note.split()[1]) for row in rows]
        panel.plot(measured, predicted, "o", color=colour, label=title)
        ends = (min(measured), max(measured))
        panel.plot(ends, ends, color="black", linewidth=0.8)
    panel.set(xscale="log", yscale="log", xlabel="measured, ms of a round (log)", ylabel="predicted, ms (log)")
    panel.legend()
    return figure


def draw_gamma(results: StoredResults) -> Any:
    """γ, the share of the bins that stays on the device, against the time of a round."""
    rows = [row for row in results.rows("rankboost_gamma_cuda") if row.case.startswith("γ = ")]
    shares = [float(row.case.removeprefix("γ = ")) for row in rows]
    figure = new_figure(5.0, 3.0)
    panel = figure.subplots()
    panel.plot(shares, [row.value for row in rows], marker="o", color=OURS)
    panel.set(xlabel="γ, the share of the bins on the device", ylabel="ms of a round", ylim=(0, None), xlim=(0, 1.05))
    return figure


RANKBOOST_ROUNDS = Drawing(
    "rankboost-rounds", "rankboost", "A whole round of RankBoost, beside what the papers measured (grey)", draw_rounds
)
RANKBOOST_WEAK_LEARNERS = Drawing(
    "rankboost-weak-learners",
    "rankboost",
    "Table I of the FAR paper: how the search of each weak learner grows, measured and predicted",
    draw_weak_learners,
)
RANKBOOST_ENERGY = Drawing("rankboost-energy", "rankboost", "The energy of a round", draw_energy)
RANKBOOST_ROUTINES = Drawing(
    "rankboost-routines",
    "rankboost",
    "Table IV of the FAR paper: the time of a round by routine, and with more threads",
    draw_routines,
)
RANKBOOST_SURFACE = Drawing(
    "rankboost-surface",
    "rankboost",
    "Figures 7 and 9 of the FAR paper: the fitted cost of a round against the measured one",
    draw_surface,
)
RANKBOOST_GAMMA = Drawing(
    "rankboost-gamma", "rankboost", "The time of a round if a share of the bins does not fit on the device", draw_gamma
)
