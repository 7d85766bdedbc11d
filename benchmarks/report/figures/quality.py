"""How good rankers are without a parameter set, as differences to BM25 and LightGBM with confidence intervals."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.report.drawing import OURS, RIVAL, Drawing, new_figure
from benchmarks.report.stored_results import MissingResultError, StoredResults
from benchmarks.row import Row

COLLECTIONS = ("cranfield", "cisi", "cacm", "demo", "MQ2007", "MQ2008")
RANKERS = ("lambdamart", "rankboost", "ranksvm", "listnet", "least-squares")
_CASE = re.compile(r"(?P<collection>[\w-]+), (?P<ranker>[\w-]+), ndcg@10")


def compared(results: StoredResults) -> dict[tuple[str, str], Row]:
    """The rows by collection and ranker."""
    found = {}
    for row in results.rows("untuned_rankers"):
        case = _CASE.fullmatch(row.case)
        if case and row.rival_value is not None:
            found[case["collection"], case["ranker"]] = row
    return found


def draw(results: StoredResults) -> Any:
    rows = compared(results)
    collections = [name for name in COLLECTIONS if any(collection == name for collection, _ in rows)]
    rankers = [name for name in RANKERS if any(ranker == name for _, ranker in rows)]
    if not rows:
        raise MissingResultError("untuned_rankers has no figure beside a rival")
    figure = new_figure(10.0, 2.6)
    panels = figure.subplots(1, len(collections), sharey=True, squeeze=False)[0]
    for panel, collection in zip(panels, collections, strict=True):
        rival = None
        for place, ranker in enumerate(rankers):
            row = rows.get((collection, ranker))
            if row is not None:
                rival = row.rival
                _point(panel, place, row)
        panel.axvline(0.0, color="black", linewidth=0.8)
        panel.set_title(f"{collection}\nbeside {rival}")
        panel.set_ylim(len(rankers) - 0.5, -0.5)
        panel.margins(x=0.15)
    panels[0].set_yticks(range(len(rankers)), rankers)
    figure.supxlabel("difference of NDCG@10, 95 % confidence interval", fontsize=9)
    return figure


def _point(panel: Any, place: int, row: Row) -> None:
    assert row.rival_value is not None
    difference = row.value - row.rival_value
    worse = row.interval is not None and row.interval[1] < 0
    colour = RIVAL if worse else OURS
    if row.interval is not None:
        panel.plot(row.interval, (place, place), color=colour, linewidth=1.5)
    panel.plot(difference, place, marker="o", color=colour, markersize=5)


QUALITY = Drawing(
    "quality",
    "",
    "Quality without a parameter set: NDCG@10 (burges) of test queries, less that of BM25 (text) or of LightGBM's "
    "defaults (LETOR), with paired 95 % confidence intervals",
    draw,
)
