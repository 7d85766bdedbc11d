"""The plot of a training history: one panel per figure, the steps on the horizontal axis. Needs the extra `plot`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rankwell.errors import DataError, RankwellError


def new_figure(height: float) -> Any:
    """An empty figure of that many inches, or the error that says how to install Matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as cause:
        raise RankwellError("a plot needs Matplotlib. Install the extra: pip install 'rankwell[plot]'.") from cause
    return Figure(figsize=(7.0, height), layout="constrained")


def plot_history(
    history: Mapping[str, Sequence[float]],
    *,
    step_name: str = "step",
    best_step: int | None = None,
    title: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Draw a history, and save it if a path is given.

    Parameters
    ----------
    history : dict of str to list of float
        One value per step, as in `Ranker.history_`.
    step_name : str
        What a step is called: round, iteration, epoch.
    best_step : int, optional
        Marked by a vertical line; counted from 1.
    title : str
    path : path, optional
        Where to save the figure; its ending decides the format.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot, so no window opens and nothing has to be closed.
    """
    if not history:
        raise DataError("the history is empty: this ranker was not trained in steps, so there is nothing to plot.")
    figure = new_figure(height=0.6 + 2.0 * len(history))
    panels = figure.subplots(len(history), 1, sharex=True, squeeze=False)[:, 0]
    for panel, (name, values) in zip(panels, history.items(), strict=True):
        panel.plot(range(1, len(values) + 1), values, linewidth=1.2)
        panel.set_ylabel(name)
        panel.grid(alpha=0.3)
        if best_step:
            panel.axvline(best_step, color="0.4", linestyle="--", linewidth=1.0)
    panels[-1].set_xlabel(step_name if not best_step else f"{step_name} (best: {best_step})")
    if title:
        figure.suptitle(title)
    if path is not None:
        figure.savefig(path)
    return figure
