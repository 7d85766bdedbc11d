"""What more data costs: documents to score, documents to train on, words in a query."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.report.drawing import COLOURS, OURS, RIVAL, Drawing, new_figure
from benchmarks.report.stored_results import MissingResultError, StoredResults
from rankwell.data.shapes import SHAPES

_SCORED = re.compile(r"(?P<library>[\w ]+?)(?:, form \d+)?, (?P<documents>\d+) documents(?: \((?P<calls>\d+) calls\))?")
_FOUND = re.compile(r"varied, (?P<library>\w+), top 10, (?P<words>\d) words")
_QUERIES_OF_A_LENGTH = 100
# What was timed: its share of the documents, and its rounds.
_ROUNDS = {
    "far, 20 rounds": (1.0, 20),
    "a tenth of far, base": (0.1, 20),
    "a tenth of far, half the documents": (0.05, 20),
}
_DEVICE_ROUNDS = {"far: 96 rounds": (1.0, 96), "far, half the documents": (0.5, 96)}

Points = dict[float, float]


def scoring_seconds(results: StoredResults) -> dict[str, Points]:
    """By library: documents to seconds, each at its best number of threads."""
    found: dict[str, Points] = {}
    for name, seconds in results.minima("evaluate_trees").items():
        case = _SCORED.fullmatch(name)
        if case:
            points = found.setdefault(case["library"], {})
            documents, each = int(case["documents"]), seconds / int(case["calls"] or 1)
            points[documents] = min(each, points.get(documents, each))
    return found


def finding_seconds(results: StoredResults) -> dict[str, Points]:
    """By library: words of a query to seconds of a query, the best ten documents."""
    found: dict[str, Points] = {}
    for name, seconds in results.minima("select_documents").items():
        case = _FOUND.fullmatch(name)
        if case:
            found.setdefault(case["library"], {})[int(case["words"])] = seconds / _QUERIES_OF_A_LENGTH
    if not found:
        raise MissingResultError("select_documents has no times by number of words")
    return found


def training_seconds(results: StoredResults) -> dict[str, Points]:
    """By what is trained: documents to seconds."""
    far = SHAPES["far"].n_docs
    found: dict[str, Points] = {}
    for title, question, machine, rounds in (
        ("RankBoost round, 2 cores", "rankboost_cpu", "cpu2", _ROUNDS),
        ("RankBoost round, H200", "rankboost_cuda", "h200", _DEVICE_ROUNDS),
    ):
        times = {timed: results.minimum(question, timed, machine) for timed in rounds}
        found[title] = {far * share: times[timed] / count for timed, (share, count) in rounds.items()}
    for title, question, machine, end in (
        ("RankSVM, 2 cores", "ranksvm_cpu", "cpu2", "standardised"),
        ("RankSVM, H200", "ranksvm_cuda", "h200", "transfer included"),
    ):
        found[title] = {
            SHAPES[shape].n_docs: results.row(question, f"to tolerance, `{shape}` shape, {end}", machine).value
            for shape in ("mslr10k", "mslr30k")
        }
    return found


def draw(results: StoredResults) -> Any:
    scoring, training, finding = scoring_seconds(results), training_seconds(results), finding_seconds(results)
    figure = new_figure(10.0, 3.2)
    left, middle, right = figure.subplots(1, 3)
    _lines(left, scoring)
    left.set(title="score 1,000 trees of 64 leaves", xlabel="documents", ylabel="seconds (log)")
    for number, (title, points) in enumerate(training.items()):
        colour, style = (OURS, RIVAL)[number // 2], ("-", "--")[number % 2]
        middle.plot(*_sorted(points), marker="o", markersize=3, color=colour, linestyle=style, label=title)
    middle.set(title="train", xlabel="documents", ylabel="seconds (log)")
    _lines(right, finding)
    right.set(title="best 10 of 431,560 documents", xlabel="words of the query", ylabel="seconds (log)")
    for panel in (left, middle, right):
        panel.set_yscale("log")
        panel.legend()
    left.set_xscale("log")
    middle.set_xscale("log")
    middle.set_ylim(top=100.0)
    return figure


def _lines(panel: Any, by_library: dict[str, Points]) -> None:
    ordered = sorted(by_library, key=lambda library: library != "rankwell")
    for library, colour in zip(ordered, COLOURS, strict=False):
        panel.plot(*_sorted(by_library[library]), marker="o", markersize=3, color=colour, label=library)


def _sorted(points: Points) -> tuple[list[float], list[float]]:
    places = sorted(points)
    return places, [points[place] for place in places]


GROWTH = Drawing(
    "growth",
    "",
    "What more data costs: scoring more documents, training on more, and longer queries, on two cores unless an H200 "
    "is named",
    draw,
)
