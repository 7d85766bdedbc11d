"""How long each ranker trains as it comes, against the number of documents."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.report.drawing import COLOURS, PAPER, Drawing, new_figure
from benchmarks.report.stored_results import StoredResults

_CASE = re.compile(r"mslr10k x [\d.]+, (?P<ranker>[\w-]+)")
_DOCUMENTS = re.compile(r"([\d,]+) documents")


def draw(results: StoredResults) -> Any:
    by_ranker: dict[str, dict[int, float]] = {}
    for row in results.rows("training_seconds"):
        case, documents = _CASE.fullmatch(row.case), _DOCUMENTS.match(row.note)
        if case and documents:
            count = int(documents[1].replace(",", ""))
            by_ranker.setdefault(case["ranker"], {})[count] = row.value
            if row.rival_value is not None:
                by_ranker.setdefault("LightGBM", {})[count] = row.rival_value
    figure = new_figure(7.0, 3.6)
    panel = figure.subplots()
    rival = by_ranker.pop("LightGBM", {})
    for (ranker, points), colour in zip(by_ranker.items(), COLOURS, strict=False):
        panel.plot(list(points), list(points.values()), marker="o", markersize=3, color=colour, label=ranker)
    panel.plot(list(rival), list(rival.values()), marker="o", markersize=3, color=PAPER, ls="--", label="LightGBM")
    panel.set(xscale="log", yscale="log", xlabel="documents, 136 features (log)", ylabel="seconds of training (log)")
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


TRAINING = Drawing(
    "training-growth",
    "training",
    "Rankers without a parameter set, trained on more and more of a collection of MSLR-WEB10K's shape; LightGBM with "
    "its own defaults",
    draw,
)
