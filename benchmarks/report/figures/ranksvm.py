"""RankSVM's plots: the paper's Table 2 and Figure 1."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.paper_numbers import RANKSVM_TABLE_2
from benchmarks.report.drawing import COLOURS, OURS, PAPER, Drawing, new_figure
from benchmarks.report.figures.paper_times import paper_times, printed_times
from benchmarks.report.stored_results import MissingResultError, StoredResults, rows_of

_SHAPES = ("mq2007-list", "mq2008-list", "mslr10k", "mslr30k")
_STEP = re.compile(r"([\d.e+-]+) \(([\d.]+) s\)")
_CASE = re.compile(r"`(?P<shape>[\w-]+)` shape on (?P<way>\w+(?:, \w+)?): to a relative gradient of 1e-5")
_LEAST_ETA = 1e-16
# Different labels: from few to many, which is where the two ways of counting differ.
_LABELS = {"mq2007": "3", "mslr10k": "5", "mq2007-list": "1,268"}


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
    """By collection and by who: seconds, and η after each outer iteration; of all machines whose rows have steps."""
    found: dict[str, dict[str, tuple[list[float], list[float]]]] = {shape: {} for shape in _LABELS}
    for document in results.documents:
        for row in rows_of(document) if document["name"] == "ranksvm_convergence" else ():
            case, steps = _CASE.fullmatch(row.case), _STEP.findall(row.note)
            if case and steps:
                seconds, eta = [float(second) for _, second in steps], [float(value) for value, _ in steps]
                who = _who(case["way"], document["machine"]["short_name"])
                found[case["shape"]][who] = (seconds, eta)
    if not any(found.values()):
        raise MissingResultError("ranksvm_convergence has no steps")
    return {shape: by_way for shape, by_way in found.items() if by_way}


def _who(way: str, machine: str) -> str:
    if way == "cuda":
        return "H200"
    cores = f"{machine.removeprefix('cpu')} cores"
    return f"{cores}, {way.partition(', ')[2] or 'chosen way'}"


def draw_convergence(results: StoredResults) -> Any:
    by_shape = descents(results)
    figure = new_figure(4.0 * len(by_shape), 3.4)
    panels = figure.subplots(1, len(by_shape), squeeze=False, sharey=True)[0]
    for panel, (shape, by_way) in zip(panels, by_shape.items(), strict=True):
        for who, (seconds, eta) in by_way.items():
            panel.plot(seconds, [max(value, _LEAST_ETA) for value in eta], label=who, **_line(who))
        printed = printed_times(RANKSVM_TABLE_2[shape])
        for (who, second), style in zip(printed.items(), ("--", "-.", ":"), strict=True):
            panel.axvline(second, color=PAPER, linewidth=1.2, linestyle=style, label=f"{who} (paper)")
        panel.set(title=f"{shape}, {_LABELS[shape]} labels", xscale="log", yscale="log")
        panel.set_xlabel("seconds of training (log)")
    panels[0].set_ylabel("η (equation 15, log)")
    # One legend: the lines of all panels, each once.
    handles = {label: line for panel in panels for line, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=8)
    return figure


def _line(who: str) -> dict[str, Any]:
    """The chosen way lies on one of the other two: it is drawn over them, with open marks. 16 cores have triangles."""
    if who == "H200":
        return {"marker": "s", "markersize": 3, "color": COLOURS[3]}
    marker, line = ("o", "-") if who.startswith("2 ") else ("^", ":")
    if who.endswith("chosen way"):
        colour = OURS if who.startswith("2 ") else COLOURS[5]
        return {"marker": marker, "markersize": 6, "fillstyle": "none", "linestyle": "--", "color": colour}
    colour = COLOURS[1] if who.endswith("DCM") else COLOURS[2]
    return {"marker": marker, "markersize": 3, "linestyle": line, "color": colour}


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
    "Figure 1 of the RankSVM paper: the distance to the optimum against seconds of training, pairs counted directly "
    "(DCM) and by an order-statistic tree (OST). The paper prints no numbers of its curves; the grey lines are the "
    "seconds at which its trainings ended (Table 2; mslr with raw features)",
    draw_convergence,
)
