"""RankBoost's plots: a round beside the papers' hardware, its routines and growth, its energy."""

from __future__ import annotations

from typing import Any

from benchmarks.paper_numbers import (
    CUDA_N_DOCS,
    CUDA_N_FEATURES,
    CUDA_ROUND_SECONDS,
    CUDA_SPEEDUPS,
    FAR_SPEEDUPS,
    FAR_THREADS_LIKE_FAR1,
)
from benchmarks.report.drawing import COLOURS, OURS, PAPER, RIVAL, Drawing, new_figure
from benchmarks.report.stored_results import MissingResultError, StoredResults
from benchmarks.table import write_figure
from rankwell.hardware.rankboost.far_paper import (
    ENERGY_ROUNDS,
    N_DOCS,
    N_FEATURES,
    RUN_HOURS,
    RUN_ROUNDS,
    TABLE_IV,
    TABLE_V,
)

_WEAK_LEARNERS = ("m2", "m2.2dint", "m3", "m3.int")
_QUANTITIES = ("documents", "pairs", "features", "thresholds")
# The columns of the FAR paper's Table IV, and the rows of its Table V.
_COLUMNS = {"software": "software", "optimised software": "optimised", "far1": "FAR1", "far2": "FAR2"}
_COMPUTERS = {
    "naive": "naive software",
    "far1": "FAR1",
    "far2": "FAR2",
    "distributed": "2 computers",
    "distributed, 52 threads": "26 computers",
}


def draw_rounds(results: StoredResults) -> Any:
    """Seconds of a round at the FPGA paper's size and at the CUDA paper's."""
    cpu = results.row("rankboost_cpu", "far, a whole round", "cpu2")
    far = results.row("rankboost_cuda", "far, a whole round", "h200")
    cuda = results.row("rankboost_cuda", "cuda2010, a whole round", "h200")
    bars = {
        "1,196,711 documents, 646 features": {
            **{f"{name} (2009)": TABLE_IV[column].total for column, name in _COLUMNS.items()},
            "naive software (2009)": seconds_of_run("naive"),
            "4 threads (2009)": seconds_of_run("distributed"),
            "2 cores": cpu.value / 1e3,
            "H200": far.value / 1e3,
        },
        "173,354 documents, 2,576 features": {
            **{f"{what} (2010)": seconds for what, seconds in CUDA_ROUND_SECONDS.items()},
            "H200": cuda.value / 1e3,
        },
    }
    for times, name in zip(bars.values(), ("far", "cuda2010"), strict=True):
        if results.has("rankboost_opencl_cuda"):
            opencl = results.row("rankboost_opencl_cuda", f"{name}, a whole round with OpenCL")
            times["H200, OpenCL"] = opencl.value / 1e3
    figure = new_figure(9.0, 2.8)
    panels = figure.subplots(1, 2)
    for panel, (title, times) in zip(panels, bars.items(), strict=True):
        horizontal_bars(panel, dict(sorted(times.items(), key=lambda each: -each[1])), "s")
        panel.set(title=title, xlabel="seconds of a round (log)")
    return figure


def seconds_of_run(implementation: str) -> float:
    """A round of the FAR paper's Table III, which prints the hours of a run."""
    return RUN_HOURS[implementation] * 3600 / RUN_ROUNDS


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
    joules = {name: TABLE_V[line].kilowatt_hours * 3.6e6 / ENERGY_ROUNDS for line, name in _COMPUTERS.items()}
    energies = {f"{name} (2009)": each for name, each in sorted(joules.items(), key=lambda each: -each[1])}
    energies["H200, power.draw"] = row.value
    of_cpu = [row for row in results.rows("rankboost_cpu", "cpu2") if row.case == "far, energy of a round"]
    if of_cpu:
        energies["2 cores, RAPL"] = of_cpu[0].value
    figure = new_figure(6.0, 2.2)
    panel = figure.subplots()
    horizontal_bars(panel, energies, "J")
    unknown = "" if of_cpu else "\n2 cores: unknown, the machine has no RAPL counters"
    panel.set_xlabel(f"joules of a round, 1,196,711 documents, 646 features (log){unknown}")
    return figure


def draw_routines(results: StoredResults) -> Any:
    """FAR's table IV: seconds of a round by routine, the paper's software and boards beside ours, and more threads."""
    rows = results.rows("rankboost_routines", "cpu2")
    ours = {row.case.removeprefix("routine: "): row.value / 1e3 for row in rows if row.case.startswith("routine: ")}
    threads = {int(row.case.split()[1]): row.value / 1e3 for row in rows if row.case.startswith("threads: ")}
    figure = new_figure(9.0, 3.4)
    left, right = figure.subplots(1, 2)
    bars = {"2 cores": ours, **{f"{name} (paper)": printed_routines(column) for column, name in _COLUMNS.items()}}
    greys = (OURS, "#555555", "#888888", "#AAAAAA", "#CCCCCC")
    for number, ((who, seconds), colour) in enumerate(zip(bars.items(), greys, strict=True)):
        places = [place + (number - 2) * 0.17 for place in range(len(ours))]
        left.barh(places, [seconds[routine] for routine in ours], color=colour, height=0.16, label=who)
    left.set_yticks(range(len(ours)), list(ours))
    left.invert_yaxis()
    left.set(xscale="log", xlabel="seconds of a round (log)")
    figure.legend(loc="outside lower left", ncols=5)
    right.plot(list(threads), list(threads.values()), marker="o", color=OURS)
    printed = {
        1: TABLE_IV["software"].total,
        4: seconds_of_run("distributed"),
        FAR_THREADS_LIKE_FAR1: TABLE_IV["far1"].total,
    }
    right.plot(list(printed), list(printed.values()), marker="s", linestyle="--", color=PAPER)
    right.annotate("distributed software (paper)", (4, printed[4]), (5, -2), textcoords="offset points", va="bottom")
    right.annotate("ours", (max(threads), threads[max(threads)]), (7, 0), textcoords="offset points", va="center")
    right.set(xscale="log", yscale="log", xlabel="threads (log)", ylabel="seconds of a round (log)")
    every = sorted({*threads, *printed})
    right.set_xticks(every, [str(number) for number in every])
    right.minorticks_off()
    return figure


def printed_routines(column: str) -> dict[str, float]:
    """A column of the FAR paper's Table IV, by our names of the routines; the search includes the transfer."""
    times = TABLE_IV[column]
    search = times.search + times.transfer
    return {"π": times.potentials, "search": search, "new weights": times.weights, "whole round": times.total}


def draw_surface(results: StoredResults) -> Any:
    """The cost of a round as a fitted function of documents and features, and what a device gains."""
    found = {"2 cores": ("rankboost_surface", "cpu2"), "H200": ("rankboost_surface_cuda", "h200")}
    stored = {title: results.rows(*where) for title, where in found.items() if results.has(*where)}
    if not stored:
        raise MissingResultError("there are no results of rankboost_surface")
    rounds = {who: [row for row in every if row.case.startswith("round, ")] for who, every in stored.items()}
    figure = new_figure(9.0, 3.6)
    fitted, gained = figure.subplots(1, 2)
    for (who, rows), colour in zip(rounds.items(), COLOURS, strict=False):
        measured = [row.value for row in rows]
        fitted.plot(measured, [float(row.note.split()[1]) for row in rows], "o", color=colour, label=who)
        ends = (min(measured), max(measured))
        fitted.plot(ends, ends, color="black", linewidth=0.8)
    fitted.set(xscale="log", yscale="log", xlabel="measured, ms of a round (log)", ylabel="predicted, ms (log)")
    fitted.legend()
    draw_gains(gained, *({row.case: row.value for row in rounds.get(who, [])} for who in found))
    return figure


def draw_gains(panel: Any, cores: dict[str, float], device: dict[str, float]) -> None:
    """The quantity of the papers' figures: how many times faster a device's round is, against documents × features."""
    both = [case for case in cores if case in device]
    if both:
        gains = [cores[case] / device[case] for case in both]
        panel.plot([n_values(case) for case in both], gains, "o", color=OURS, label="H200 over 2 cores")
    optimised = TABLE_IV["optimised software"].total / TABLE_IV["far1"].total
    far = {f"{board} over software": gain for board, gain in FAR_SPEEDUPS.items()}
    far["FAR1 over optimised"] = optimised
    gpus = {f"{gpu} over CPU": gain for gpu, gain in CUDA_SPEEDUPS.items()}
    sizes = {N_DOCS * N_FEATURES: far, CUDA_N_DOCS * CUDA_N_FEATURES: gpus}
    printed = [(size, who, gain) for size, each in sizes.items() for who, gain in each.items()]
    for (size, who, gain), marker in zip(printed, "sD^vP", strict=True):
        panel.plot(size, gain, marker, color=PAPER, label=f"{who} (paper)")
    panel.set(xscale="log", yscale="log", xlabel="documents x features (log)", ylabel="times as fast (log)")
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def n_values(case: str) -> int:
    """Of "round, 30,000 documents, 160 features": documents × features."""
    documents, features = case.removeprefix("round, ").removesuffix(" features").split(" documents, ")
    return int(documents.replace(",", "")) * int(features)


def draw_gamma(results: StoredResults) -> Any:
    """γ, the share of the bins that stays on the device, against the time of a round."""
    rows = [row for row in results.rows("rankboost_gamma_cuda") if row.case.startswith("γ = ")]
    shares = [float(row.case.removeprefix("γ = ")) for row in rows]
    figure = new_figure(5.0, 3.0)
    panel = figure.subplots()
    panel.plot(shares, [row.value for row in rows], marker="o", color=OURS, label="CUDA")
    opencl = opencl_shares(results)
    if opencl:
        panel.plot(list(opencl), list(opencl.values()), marker="s", color=RIVAL, label="OpenCL")
        panel.legend()
    panel.set(xlabel="γ, the share of the bins on the device", ylabel="ms of a round", ylim=(0, None), xlim=(0, 1.05))
    return figure


def opencl_shares(results: StoredResults) -> dict[float, float]:
    """ms of a round with OpenCL by γ; empty if that was not measured."""
    rows = results.rows("rankboost_opencl_cuda") if results.has("rankboost_opencl_cuda") else []
    begin, end = "γ = ", ", a round with OpenCL"
    return {float(row.case[len(begin) : -len(end)]): row.value for row in rows if row.case.startswith(begin)}


RANKBOOST_ROUNDS = Drawing(
    "rankboost-rounds",
    "rankboost",
    "A whole round of RankBoost, beside what the papers measured (grey): Tables III and IV of the FAR paper, Table II "
    "of the CUDA paper",
    draw_rounds,
)
RANKBOOST_WEAK_LEARNERS = Drawing(
    "rankboost-weak-learners",
    "rankboost",
    "Table I of the FAR paper: how the search of each weak learner grows, measured and predicted",
    draw_weak_learners,
)
RANKBOOST_ENERGY = Drawing(
    "rankboost-energy",
    "rankboost",
    "The energy of a round, beside Table V of the FAR paper (grey: of whole computers, 10,000 rounds divided)",
    draw_energy,
)
RANKBOOST_ROUTINES = Drawing(
    "rankboost-routines",
    "rankboost",
    "Table IV of the FAR paper: the time of a round by routine, beside the paper's software and boards; and with more "
    "threads, beside the paper's distributed software (1: Table IV; 4: Table III; 52: section 4.4 estimates that "
    "they are as fast as FAR1)",
    draw_routines,
)
RANKBOOST_SURFACE = Drawing(
    "rankboost-surface",
    "rankboost",
    "Figures 7 and 9 of the FAR paper, 3 and 4 of the CUDA paper: the fitted cost of a round against the measured one, "
    "and the speed-up by size. The papers draw surfaces without printing their constants; grey are the speed-ups that "
    "they measured (FAR: sections 4.3 and 4.4, Table IV; CUDA and ATI: Table II)",
    draw_surface,
)
RANKBOOST_GAMMA = Drawing(
    "rankboost-gamma",
    "rankboost",
    "The time of a round if only the share γ of the bins fits on the device: section VII.C of the CUDA paper, which "
    "prints no numbers for it",
    draw_gamma,
)
