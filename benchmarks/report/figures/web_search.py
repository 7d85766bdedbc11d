"""The web-search thesis's plots: rankers on a CPU and on a GPU, batches of queries, energy."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.paper_numbers import (
    SEARCH_CPU_MS,
    SEARCH_CROSSINGS,
    SEARCH_MEAN_SPEEDUP,
    SEARCH_MOST_COPIES,
    SEARCH_SPEEDUPS,
    SEARCH_WATTS,
)
from benchmarks.report.drawing import COLOURS, OURS, PAPER, RIVAL, Drawing, new_figure
from benchmarks.report.stored_results import StoredResults

_RANKERS = ("R-S-BLG", "R-M-BGD", "R-L-D")
_STAGES = {
    "copy to the device": COLOURS[0],
    "copy back": COLOURS[5],
    "transforms": COLOURS[1],
    "evaluation": COLOURS[2],
}
_BATCH = re.compile(r"ranking alone, batches of (\d+), 1,000 candidates a query: energy of a query, idle included")
_POWERS = re.compile(r"idle subtracted (?P<mj>[\d.]+) mJ; (?P<watts>[\d.]+) W at .*, idle (?P<idle>[\d.]+) W")
_SWEEP = re.compile(r"(?P<ranker>R-[A-Z-]+), (?P<documents>[\d,]+) documents, (?P<where>device|one thread|all cores)")


def draw_rankers(results: StoredResults) -> Any:
    """Milliseconds of 10,000 documents by ranker and device."""
    minima = results.minima("evaluate_rankers_cuda", "h200")
    kinds = {"one CPU thread": COLOURS[2], "all cores": OURS, "device": RIVAL}
    figure = new_figure(7.0, 3.4)
    panel = figure.subplots()
    for number, (kind, colour) in enumerate(kinds.items()):
        values = [minima[f"{ranker}, {kind}"] * 1e3 for ranker in _RANKERS]
        places = [place + (number - 1) * 0.27 for place in range(len(_RANKERS))]
        label = {"device": "H200, transfers included", "all cores": "16 cores"}.get(kind, kind)
        panel.bar(places, values, width=0.25, color=colour, label=label)
        for at, value in zip(places, values, strict=True):
            panel.text(at, value * 1.1, f"{value:.3g}", ha="center", fontsize=7)
    gains = {ranker: minima[f"{ranker}, one CPU thread"] / minima[f"{ranker}, device"] for ranker in _RANKERS}
    names = [
        f"{ranker}\nH200 {gain:.0f} x one thread"
        + (f"\npaper: GPU {SEARCH_SPEEDUPS[ranker]:.0f} x" if ranker in SEARCH_SPEEDUPS else "")
        for ranker, gain in gains.items()
    ]
    mean = len(gains) / sum(1 / gain for gain in gains.values())
    panel.set_xticks(range(len(_RANKERS)), names)
    panel.set(yscale="log", ylabel="ms of 10,000 documents (log)")
    panel.set_xlabel(f"harmonic mean of the gains: {mean:.3g} x; paper: {SEARCH_MEAN_SPEEDUP} x")
    panel.set_ylim(top=1500)
    panel.legend(ncols=3, loc="upper left")
    return figure


def draw_documents(results: StoredResults) -> Any:
    """Time against the number of documents, on a CPU and on the device, the crossing marked."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for row in results.rows("evaluate_rankers_cuda"):
        case = _SWEEP.fullmatch(row.case)
        if case:
            times = found.setdefault(case["ranker"], {}).setdefault(case["where"], {})
            times[int(case["documents"].replace(",", ""))] = row.value
    results.row("evaluate_rankers_cuda", "R-S-BLG, 1 documents, device")
    figure = new_figure(10.0, 3.4)
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for panel, (ranker, by_device) in zip(panels, found.items(), strict=True):
        for (where, points), colour in zip(by_device.items(), (RIVAL, COLOURS[2], OURS), strict=False):
            panel.plot(list(points), list(points.values()), marker="o", markersize=3, color=colour, label=where)
        device, thread = by_device["device"], by_device["one thread"]
        crossing = next((n for n in device if device[n] < thread[n]), None)
        if crossing is not None:
            panel.axvline(crossing, color="black", linewidth=0.8, linestyle=":", label="device is faster")
        panel.axvline(SEARCH_CROSSINGS[ranker], color=PAPER, linestyle="--", label="device is faster (paper)")
        if ranker in SEARCH_CPU_MS:
            panel.plot(*SEARCH_CPU_MS[ranker], "D", color=PAPER, label="CPU (paper)")
        panel.set(title=ranker, xscale="log", yscale="log", xlabel="documents (log)")
    panels[0].set_ylabel("ms (log)")
    handles = {label: line for panel in panels for line, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6)
    return figure


def draw_shares(results: StoredResults) -> Any:
    """What scoring consists of, by ranker and number of documents."""
    shares: dict[str, dict[str, float]] = {}
    for row in results.rows("scoring_shares_cuda"):
        ranker, documents, stage = row.case.split(", ")
        shares.setdefault(f"{ranker}, {documents}", {})[stage] = row.value
    figure = new_figure(8.5, 0.8 + 0.25 * len(shares))
    panel = figure.subplots()
    for place, stages in enumerate(shares.values()):
        whole, left = sum(stages.values()), 0.0
        # Both copies first, as one stretch: the thesis names their sum.
        for stage, colour in _STAGES.items():
            label, share = stage if place == 0 else None, stages[stage] / whole
            panel.barh(place, share, left=left, color=colour, height=0.7, label=label)
            left += share
        panel.text(1.01, place, f"{whole:.3g} ms", va="center", fontsize=8)
    for ranker, most in SEARCH_MOST_COPIES.items():
        places = [place for place, name in enumerate(shares) if name.startswith(f"{ranker}, ")]
        if places:
            ends = (places[0] - 0.5, places[-1] + 0.5)
            panel.vlines(most, *ends, color="black", linestyle="--", label="copies, at most (paper)")
    panel.set_yticks(range(len(shares)), list(shares))
    panel.invert_yaxis()
    panel.set(xlim=(0, 1.12), xlabel="share of the time on the device")
    figure.legend(ncols=5, loc="outside upper center")
    return figure


def draw_batches(results: StoredResults) -> Any:
    """Milliseconds from hits to scores against the queries of a batch."""
    sizes = (1, 2, 4, 8, 16, 32, 64)
    rows = [
        results.row("extract_features_cuda", f"{size} queries x 1,000 candidates: hits in, scores out", "h200")
        for size in sizes
    ]
    figure = new_figure(8.0, 2.8)
    left, right = figure.subplots(1, 2)
    left.plot(sizes, [row.value for row in rows], marker="o", color=OURS)
    left.set(xscale="log", xlabel="queries of a batch (log)", ylabel="ms of the batch", ylim=(0, None))
    right.plot(sizes, [row.value / size for row, size in zip(rows, sizes, strict=True)], marker="o", color=OURS)
    right.set(xscale="log", xlabel="queries of a batch (log)", ylabel="ms of a query", ylim=(0, None))
    for panel in (left, right):
        panel.set_xticks(sizes, [str(size) for size in sizes])
        panel.minorticks_off()
    return figure


def draw_energy(results: StoredResults) -> Any:
    """Millijoules of a query against the queries of a batch, and watts beside those that the thesis prints."""
    whole, without_idle, watts = {}, {}, {}
    for row in results.rows("serve_batches_cuda", "h200"):
        batch, powers = _BATCH.fullmatch(row.case), _POWERS.match(row.note)
        if batch and powers:
            size = int(batch[1])
            whole[size], without_idle[size] = row.value, float(powers["mj"])
            watts["H200, idle"] = float(powers["idle"])
            watts[f"H200, batches of {size}"] = float(powers["watts"])
    results.row(
        "serve_batches_cuda", "ranking alone, batches of 1, 1,000 candidates a query: energy of a query, idle included"
    )
    figure = new_figure(9.0, 3.2)
    energy, power = figure.subplots(1, 2)
    energy.plot(list(whole), list(whole.values()), marker="o", color=OURS, label="idle included")
    energy.plot(list(without_idle), list(without_idle.values()), marker="o", color=COLOURS[4], label="idle subtracted")
    energy.set(xscale="log", xlabel="queries of a batch (log)", ylabel="mJ of a query", ylim=(0, None))
    energy.set_xticks(list(whole), [str(size) for size in whole])
    energy.minorticks_off()
    energy.legend()
    bars = {**{f"{name} (paper)": each for name, each in SEARCH_WATTS.items()}, **watts}
    power.barh(list(bars), list(bars.values()), color=[PAPER] * len(SEARCH_WATTS) + [OURS] * len(watts))
    power.invert_yaxis()
    power.tick_params(axis="y", labelsize=7)
    power.set_xlabel("W")
    return figure


SEARCH_RANKERS = Drawing(
    "search-rankers",
    "features",
    "The thesis's rankers on 10,000 documents: one thread, all cores of the machine, and an H200. The thesis prints "
    "the gain of its GPU over its CPU for R-L-D (chapter 5) and the harmonic mean (abstract)",
    draw_rankers,
)
SEARCH_DOCUMENTS = Drawing(
    "search-documents",
    "features",
    "Figures 5.1, 5.3 and 5.5 of the web-search thesis: scoring 1 to 10,000 documents; the dotted line is where the "
    "device becomes faster than one thread. Of its curves the thesis prints these crossings and one time (chapter 5)",
    draw_documents,
)
SEARCH_SHARES = Drawing(
    "search-shares",
    "features",
    "Figures 5.2, 5.4 and 5.6 of the web-search thesis: what scoring on an H200 consists of. The thesis prints one of "
    "its shares, that copies take up to 68 % (R-S-BLG, chapter 5)",
    draw_shares,
)
SEARCH_BATCHES = Drawing(
    "search-batches",
    "features",
    "From hits to scores on an H200: 1,000 candidates a query, batches of queries. The thesis batches requests "
    "(section 3.3) and prints no numbers for it",
    draw_batches,
)
SEARCH_ENERGY = Drawing(
    "search-energy",
    "serving",
    "Energy of a query on an H200, by batch, and its power beside what the web-search thesis prints (section 5.1, "
    "Table 4.1); it prints no energies, and no numbers of its Figure 5.7",
    draw_energy,
)
