"""The plot of a path over C: the validation metric, C on a logarithmic axis. Needs the extra `plot`."""

from __future__ import annotations

import os
from typing import Any

from rankwell.rankers.history_plot import new_figure
from rankwell.rankers.regularisation_path import RegularisationPath


def plot_path(path_over_C: RegularisationPath, path: str | os.PathLike[str] | None = None) -> Any:
    """Draw a path with its best C marked, and save it if a `path` is given.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot, so no window opens and nothing has to be closed.
    """
    figure = new_figure(height=3.0)
    panel = figure.subplots()
    points, best = path_over_C.points, path_over_C.best
    panel.semilogx([point.C for point in points], [point.validation for point in points], marker="o", linewidth=1.2)
    panel.axvline(best.C, color="0.4", linestyle="--", linewidth=1.0)
    panel.set_xlabel(f"C (best: {best.C:.6g})")
    panel.set_ylabel(f"validation {path_over_C.metric} ({path_over_C.convention})")
    panel.grid(alpha=0.3)
    if path is not None:
        figure.savefig(path)
    return figure
