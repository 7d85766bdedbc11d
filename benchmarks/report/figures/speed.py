"""How many times as fast as other libraries: of each question and library the worst case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.report.drawing import OURS, RIVAL, Drawing, new_figure
from benchmarks.report.stored_results import MissingResultError, StoredResults, rows_of
from benchmarks.report.subjects import activity_of
from benchmarks.row import Row
from benchmarks.table import write_figure

TIMES_AND_RATES = ("s", "ms", "µs", "ns", "ms/query", "µs/query", "MB/s", "queries/s", "answers/s")
LIBRARIES = {
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "scikit-learn": "scikit-learn",
    "onnx runtime": "ONNX Runtime",
    "treelite": "treelite",
    "lleaves": "lleaves",
    "torch": "PyTorch",
    "tantivy": "tantivy",
    "bm25s": "bm25s",
    "pytrec_eval": "pytrec_eval",
    "ir-measures": "ir-measures",
    "scipy": "SciPy",
    "cupy": "CuPy",
}


@dataclass(frozen=True)
class Duel:
    """A row of a question beside a library."""

    question: str
    library: str
    row: Row

    @property
    def label(self) -> str:
        return f"{activity_of(self.question)} · {self.library}"

    @property
    def advantage(self) -> float:
        assert self.row.advantage is not None
        return self.row.advantage


def duels(results: StoredResults) -> list[Duel]:
    """Every time and rate beside a library's, in the order of the results."""
    found = []
    for document in results.documents:
        for row in rows_of(document):
            library = library_of(row.rival)
            if library and row.unit in TIMES_AND_RATES and row.advantage is not None:
                found.append(Duel(document["name"], library, row))
    return found


def library_of(rival: str | None) -> str | None:
    """The library that a rival's name mentions; what is no library ("only reading the bins") has none."""
    name = (rival or "").lower()
    return next((library for part, library in LIBRARIES.items() if part in name), None)


def worst_duels(results: StoredResults) -> list[Duel]:
    """One of each question and library, the best first."""
    worst: dict[tuple[str, str], Duel] = {}
    for duel in duels(results):
        place = duel.question, duel.library
        if place not in worst or duel.advantage < worst[place].advantage:
            worst[place] = duel
    return sorted(worst.values(), key=lambda duel: -duel.advantage)


def draw(results: StoredResults) -> Any:
    shown = worst_duels(results)
    if not shown:
        raise MissingResultError("nothing was timed beside another library")
    half = (len(shown) + 1) // 2
    figure = new_figure(10.0, 0.7 + 0.21 * half)
    panels = figure.subplots(1, 2)
    widest = max(duel.advantage for duel in shown) * 3
    narrowest = min(0.5, min(duel.advantage for duel in shown) * 0.7)
    for panel, part in zip(panels, (shown[:half], shown[half:]), strict=True):
        _bars(panel, part)
        panel.set(xscale="log", xlim=(narrowest, widest))
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        panel.set_xlabel("times as fast as the library (log)")
        panel.axvline(1.0, color="black", linewidth=0.8)
    return figure


def _bars(panel: Any, part: list[Duel]) -> None:
    for place, duel in enumerate(part):
        colour = OURS if duel.advantage >= 1 else RIVAL
        panel.barh(place, duel.advantage - 1, left=1.0, color=colour, height=0.7)
        at = max(duel.advantage, 1.0) * 1.08
        panel.text(at, place, write_figure(float(f"{duel.advantage:.3g}")), va="center", fontsize=8, color=colour)
    panel.set_yticks(range(len(part)), [duel.label for duel in part])
    panel.invert_yaxis()


SPEED = Drawing(
    "speed",
    "",
    "Speed beside other libraries, as a ratio: of each question and library the worst case that was measured; "
    "orange is slower",
    draw,
)
