"""A plot made from stored results: its name, the page it is on, and how it is written as SVG.

The same results give the same bytes with the same Matplotlib; text stays text, so that it can be searched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report.stored_results import MissingResultError, StoredResults

# Distinct also for colour-blind readers (Okabe and Ito), ours first.
OURS, RIVAL, PAPER = "#0072B2", "#D55E00", "#999999"
COLOURS = (OURS, RIVAL, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rankwell",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
}


@dataclass(frozen=True)
class Drawing:
    """A plot.

    Attributes
    ----------
    name : str
        Of its file, without the ending, and of the command that draws it: ``python -m benchmarks.report NAME``.
    page : str
        The subject whose page shows it; empty for the overview.
    caption : str
    draw : function
        From stored results to Matplotlib's figure; raises MissingResultError if something was not measured.
    """

    name: str
    page: str
    caption: str
    draw: Callable[[StoredResults], Any]

    @property
    def file(self) -> str:
        return f"{self.name}.svg"

    def write(self, results: StoredResults, folder: Path) -> Path:
        import matplotlib

        with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE}):
            figure = self.draw(results)
            path = folder / self.file
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata={"Date": None, "Creator": None})
        # Matplotlib ends lines of paths with blanks.
        path.write_text(re.sub(r"[ \t]+\n", "\n", path.read_text(encoding="utf-8")), encoding="utf-8")
        return path

    def can_be_drawn(self, results: StoredResults) -> bool:
        try:
            self.draw(results)
        except MissingResultError:
            return False
        return True


def new_figure(width: float, height: float) -> Any:
    """A figure without a window; its panels come from `subplots`."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
