"""The web-search thesis's plots: rankers on a CPU and on a GPU, batches of queries, energy."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.report.drawing import COLOURS, OURS, PAPER, RIVAL, Drawing, new_figure
from benchmarks.report.stored_results import StoredResults

_RANKERS = ("R-S-BLG", "R-M-BGD", "R-L-D")
_BATCH = re.compile(r"ranking alone, batches of (\d+), 1,000 candidates a query: energy of a query, idle included")
_SUBTRACTED = re.compile(r"idle subtracted ([\d.]+) mJ")
_SWEEP = re.compile(r"(?P<ranker>R-[A-Z-]+), (?P<documents>[\d,]+) documents, (?P<where>device|one thread|all cores)")


def draw_rankers(results: StoredResults) -> Any:
    """Milliseconds of 10,000 documents by ranker and device."""
    minima = results.minima("evaluate_rankers_cuda", "h200")
    kinds = {"one CPU thread": PAPER, "all cores": OURS, "device": RIVAL}
    figure = new_figure(7.0, 2.8)
    panel = figure.subplots()
    for number, (kind, colour) in enumerate(kinds.items()):
        values = [minima[f"{ranker}, {kind}"] * 1e3 for ranker in _RANKERS]
        places = [place + (number - 1) * 0.27 for place in range(len(_RANKERS))]
        label = {"device": "H200, transfers included", "all cores": "16 cores"}.get(kind, kind)
        panel.bar(places, values, width=0.25, color=colour, label=label)
        for at, value in zip(places, values, strict=True):
            panel.text(at, value * 1.1, f"{value:.3g}", ha="center", fontsize=7)
    panel.set_xticks(range(len(_RANKERS)), list(_RANKERS))
    panel.set(yscale="log", ylabel="ms of 10,000 documents (log)")
    panel.set_ylim(top=1500)
    panel.legend(ncols=3, loc="upper left")
    return figure


def draw_documents(results: StoredResults) -> Any:
    """Time against the number of documents, on a CPU and on the device, the crossing marked."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for row in results.rows("evaluate_rankers_cuda"):
        case = _SWEEP.fullmatch(row.case)
        if case:
            by_device = found.setdefault(case["ranker"], {}).setdefault(case["where"], {})
            by_device[int(case["documents"].replace(",", ""))] = row.value
    results.row("evaluate_rankers_cuda", "R-S-BLG, 1 documents, device")
    figure = new_figure(10.0, 3.0)
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for panel, (ranker, by_device) in zip(panels, found.items(), strict=True):
        for (where, points), colour in zip(by_device.items(), (RIVAL, PAPER, OURS), strict=False):
            panel.plot(list(points), list(points.values()), marker="o", markersize=3, color=colour, label=where)
        device, thread = by_device["device"], by_device["one thread"]
        crossing = next((n for n in device if device[n] < thread[n]), None)
        if crossing is not None:
            panel.axvline(crossing, color="black", linewidth=0.8, linestyle=":")
        panel.set(title=ranker, xscale="log", yscale="log", xlabel="documents (log)")
    panels[0].set_ylabel("ms (log)")
    panels[0].legend()
    return figure


def draw_shares(results: StoredResults) -> Any:
    """What scoring consists of, by ranker and number of documents."""
    shares: dict[str, dict[str, float]] = {}
    for row in results.rows("scoring_shares_cuda"):
        ranker, documents, stage = row.case.split(", ")
        shares.setdefault(f"{ranker}, {documents}", {})[stage] = row.value
    figure = new_figure(8.0, 0.8 + 0.25 * len(shares))
    panel = figure.subplots()
    for place, stages in enumerate(shares.values()):
        whole, left = sum(stages.values()), 0.0
        for (stage, value), colour in zip(stages.items(), COLOURS, strict=False):
            label = stage if place == 0 else None
            panel.barh(place, value / whole, left=left, color=colour, height=0.7, label=label)
            left += value / whole
        panel.text(1.01, place, f"{whole:.3g} ms", va="center", fontsize=8)
    panel.set_yticks(range(len(shares)), list(shares))
    panel.invert_yaxis()
    panel.set(xlim=(0, 1.12), xlabel="share of the time on the device")
    panel.legend(ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0))
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
    """Millijoules of a query against the queries of a batch."""
    whole, without_idle = {}, {}
    for row in results.rows("serve_batches_cuda", "h200"):
        batch, subtracted = _BATCH.fullmatch(row.case), _SUBTRACTED.match(row.note)
        if batch and subtracted:
            whole[int(batch[1])], without_idle[int(batch[1])] = row.value, float(subtracted[1])
    results.row(
        "serve_batches_cuda", "ranking alone, batches of 1, 1,000 candidates a query: energy of a query, idle included"
    )
    figure = new_figure(5.5, 2.8)
    panel = figure.subplots()
    panel.plot(list(whole), list(whole.values()), marker="o", color=OURS, label="idle included")
    panel.plot(list(without_idle), list(without_idle.values()), marker="o", color=COLOURS[4], label="idle subtracted")
    panel.set(xscale="log", xlabel="queries of a batch (log)", ylabel="mJ of a query", ylim=(0, None))
    panel.set_xticks(list(whole), [str(size) for size in whole])
    panel.minorticks_off()
    panel.legend()
    return figure


SEARCH_RANKERS = Drawing(
    "search-rankers",
    "features",
    "The thesis's rankers on 10,000 documents: one thread, all cores of the machine, and an H200",
    draw_rankers,
)
SEARCH_DOCUMENTS = Drawing(
    "search-documents",
    "features",
    "Scoring 1 to 10,000 documents; the dotted line is where the device becomes faster than one thread",
    draw_documents,
)
SEARCH_SHARES = Drawing(
    "search-shares",
    "features",
    "What scoring on an H200 consists of: copies, transforms, evaluation",
    draw_shares,
)
SEARCH_BATCHES = Drawing(
    "search-batches",
    "features",
    "From hits to scores on an H200: 1,000 candidates a query, batches of queries",
    draw_batches,
)
SEARCH_ENERGY = Drawing("search-energy", "serving", "Energy of a query on an H200, by batch", draw_energy)
