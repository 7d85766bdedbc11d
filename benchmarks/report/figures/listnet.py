"""ListNet's plots: losses side by side, epochs, sampling, bits."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.paper_numbers import (
    LISTNET_BATCH_8_BITS,
    LISTNET_BITS_WITHIN_4_PERCENT,
    LISTNET_BITS_WITHOUT_LOSS,
    LISTNET_EXACT_TOP_3,
    LISTNET_NDCG_10,
)
from benchmarks.report.drawing import COLOURS, PAPER, Drawing, new_figure
from benchmarks.report.figures.rankboost import horizontal_bars
from benchmarks.report.stored_results import MissingResultError, StoredResults
from rankwell.hardware.listnet.thesis import TABLE_3_4, TABLE_4_3

_LOSSES = ("ListNet Top-1", "ListNet Top-2", "ListNet Top-3", "RankNet", "LambdaRank", "ListMLE")
_CUTS = range(1, 11)
_BITS = re.compile(r"(?P<method>\w+), (?P<bits>\d+) bits: (?P<what>training loss above float32's|NDCG@10 lost)")
_FALL = re.compile(r"(-?[\d.]+)% of float32's fall")


def draw_losses(results: StoredResults) -> Any:
    """NDCG@1 to NDCG@10 of six losses on one plot."""
    figure = new_figure(9.0, 3.2)
    collections = ("MQ2007", "MQ2008")
    panels = figure.subplots(1, 2)
    for panel, collection in zip(panels, collections, strict=True):
        for loss, colour in zip(_LOSSES, COLOURS, strict=False):
            cases = [f"{loss}, {collection}, test ndcg@{cut} (letor4)" for cut in _CUTS]
            values = [results.row("listnet_quality", case).value for case in cases]
            panel.plot(list(_CUTS), values, marker="o", markersize=3, color=colour, label=loss)
        panel.set(title=collection, xlabel="k", ylabel="NDCG@k (letor4), test", xticks=list(_CUTS))
    panels[1].vlines(10, *LISTNET_NDCG_10, color=PAPER, linewidth=3, label="NDCG@10, LETOR 4.0 (thesis)")
    panels[0].legend()
    panels[1].legend(handles=panels[1].collections)
    return figure


def draw_epochs(results: StoredResults) -> Any:
    """Seconds of an epoch at MQ2008-list's size."""
    times: dict[str, float] = {}
    for k in (1, 2, 3):
        row = results.row("listnet_cpu", f"exact Top-{k} epoch, places as labels", "cpu2")
        device = results.row("listnet_cuda", f"per-query SGD epoch, Top-{k}, places as labels", "h200")
        times[f"2 cores, exact Top-{k}"], times[f"H200, exact Top-{k}"] = row.value, device.value
    times |= {
        "CPU, exact Top-3 (thesis)": LISTNET_EXACT_TOP_3,
        "CPU, exact Top-2 (thesis)": TABLE_3_4["cpu"].total,
        "FPGA, exact Top-2 (thesis)": TABLE_3_4["fpga"].total,
        "CPU, sampled Top-3 (thesis)": TABLE_4_3["cpu"],
        "GPU, sampled Top-3 (thesis)": TABLE_4_3["gpu"],
        "FPGA in float32, sampled Top-3 (thesis)": TABLE_4_3["float32"],
        "FPGA with 8 bits, sampled Top-3 (thesis)": TABLE_4_3["batch, 8 bits"],
    }
    figure = new_figure(8.0, 3.4)
    panel = figure.subplots()
    horizontal_bars(panel, dict(sorted(times.items(), key=lambda each: -each[1])), "s")
    panel.set_xlabel("seconds of an epoch, 471 queries, 540,679 documents (log)")
    return figure


def draw_sampling(results: StoredResults) -> Any:
    """NDCG against the time of an epoch, exact and sampled."""
    by_sampling: dict[str, dict[str, float]] = {}
    for row in results.rows("listnet_sampling"):
        name, _, what = row.case.partition(": ")
        by_sampling.setdefault(name, {})[what.split(",")[0]] = row.value
    figure = new_figure(8.0, 3.2)
    panel = figure.subplots()
    for number, (name, figures) in enumerate(by_sampling.items()):
        colour = COLOURS[number % len(COLOURS)]
        panel.plot(figures["epoch"], figures["NDCG@10"], "o", color=colour, label=name)
    panel.set(xscale="log", xlabel="seconds of an epoch, 48 queries of MQ2008-list's size (log)")
    panel.set_ylabel("NDCG@10 on MQ2008 (letor4)")
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_bits(results: StoredResults) -> Any:
    """What fewer bits lose: of the fall of the training loss, and of NDCG."""
    lost: dict[str, tuple[dict[int, float], dict[int, float]]] = {}
    for row in results.rows("listnet_fixed_point"):
        case = _BITS.fullmatch(row.case)
        if case is None:
            continue
        fall, ndcg = lost.setdefault(case["method"], ({}, {}))
        missing = _FALL.match(row.note)
        if missing:
            fall[int(case["bits"])] = float(missing[1])
        else:
            ndcg[int(case["bits"])] = row.value
    if not lost:
        raise MissingResultError("listnet_fixed_point has no figure by bits")
    figure = new_figure(9.0, 3.0)
    titles = ("float32's fall in training loss lost, %", "NDCG@10 lost, %")
    for which, (panel, title) in enumerate(zip(figure.subplots(1, 2), titles, strict=True)):
        for (method, both), colour in zip(lost.items(), COLOURS, strict=False):
            panel.plot(
                list(both[which]), list(both[which].values()), marker="o", markersize=3, color=colour, label=method
            )
        panel.axhline(0.0, color=PAPER, linewidth=0.8)
        panel.set(title=title, xlabel="bits in multiplications", ylim=(-10, 140) if which == 0 else (-10, 20))
    draw_bits_of_thesis(panel, dict(zip(lost, COLOURS, strict=False)))
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def draw_bits_of_thesis(panel: Any, colours: dict[str, str]) -> None:
    """Where the thesis loses at most 4 % of NDCG@10 and where nothing, by method, in the colours of ours."""
    panel.axhline(4.0, color=PAPER, linewidth=0.8, linestyle="--", label="4 % (thesis)")
    grey = {"color": PAPER, "linestyle": "none", "markersize": 8}
    panel.plot([], [], marker="v", label="bits for 4 % (thesis)", **grey)
    panel.plot([], [], marker="*", label="bits for no loss (thesis)", **grey)
    for method, colour in colours.items():
        for bits, lost, marker in (
            (LISTNET_BITS_WITHIN_4_PERCENT.get(method), 4.0, "v"),
            (LISTNET_BITS_WITHOUT_LOSS.get(method), 0.0, "*"),
        ):
            if bits is not None:
                panel.plot(bits, lost, marker, color=colour, markersize=8)
    panel.plot(8, 100 * (1 - LISTNET_BATCH_8_BITS), "D", color=PAPER, label="batch, 8 bits, all data (thesis)")


def draw_lengths(results: StoredResults) -> Any:
    """Seconds of an epoch against the length of lists, at the same number of documents."""
    figure = new_figure(5.0, 3.0)
    panel = figure.subplots()
    for k, colour in zip((1, 2, 3), COLOURS, strict=False):
        start = f"Top-{k}, lists of "
        rows = [row for row in results.rows("listnet_lengths") if row.case.startswith(start)]
        lengths = [int(row.case.removeprefix(start).split()[0].replace(",", "")) for row in rows]
        panel.plot(lengths, [row.value for row in rows], marker="o", markersize=3, color=colour, label=f"exact Top-{k}")
    panel.set(xscale="log", yscale="log", xlabel="documents of a list (log)", ylabel="ms of an epoch (log)")
    panel.legend()
    return figure


def draw_gradients(results: StoredResults) -> Any:
    """The largest component of any query's gradient, after each epoch."""
    figure = new_figure(5.0, 3.0)
    panel = figure.subplots()
    for k, colour in zip((1, 2, 3), COLOURS, strict=False):
        start = f"Top-{k}, epoch "
        rows = [row for row in results.rows("listnet_gradients") if row.case.startswith(start)]
        epochs = [int(row.case.removeprefix(start)) for row in rows]
        panel.plot(epochs, [row.value for row in rows], marker="o", markersize=3, color=colour, label=f"exact Top-{k}")
    panel.set(xlabel="epoch", ylabel="largest component (log)", yscale="log")
    panel.legend()
    return figure


LISTNET_LOSSES = Drawing(
    "listnet-losses",
    "listnet",
    "NDCG@1 to NDCG@10 of six losses on the same network, five folds, settings chosen on validation data. The thesis "
    "prints no numbers of its Figure 3.9; grey is the range of NDCG@10 on LETOR 4.0 that its section 4.3.4 names for "
    "RankSVM, RankBoost, ListNet and AdaRank, without saying how NDCG is counted",
    draw_losses,
)
LISTNET_EPOCHS = Drawing(
    "listnet-epochs",
    "listnet",
    "An epoch at MQ2008-list's size, and the thesis's (grey): Tables 3.4 and 4.3, and section 3.5 for exact Top-3",
    draw_epochs,
)
LISTNET_SAMPLING = Drawing(
    "listnet-sampling",
    "listnet",
    "Sampled Top-k losses: what an epoch costs, and what it reaches; differences of .005 are noise. The thesis prints "
    "no numbers of its Figures 4.3 and 4.4; the seconds of its sampled epochs are in the plot above",
    draw_sampling,
)
LISTNET_BITS = Drawing(
    "listnet-bits",
    "listnet",
    "What fewer bits in multiplications lose: Figure 4.9 of the thesis. Of that it prints the bits for a loss of at "
    "most 4 % and for none (section 4.3.4, marks in the colour of the method), and what 8 bits lose (Table 4.3)",
    draw_bits,
)
LISTNET_LENGTHS = Drawing(
    "listnet-lengths",
    "listnet",
    "The time of an epoch against the length of lists, the same documents. The thesis prints no numbers of its Figures "
    "3.2, 3.3 and 3.10",
    draw_lengths,
)
LISTNET_GRADIENTS = Drawing(
    "listnet-gradients",
    "listnet",
    "Gradients over epochs, on MQ2008. The thesis prints no numbers of its Figures 4.6 and 4.7",
    draw_gradients,
)
