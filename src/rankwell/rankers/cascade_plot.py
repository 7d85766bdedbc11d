"""The plot of quality against cost of a cascade. Needs the extra `plot`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rankwell.errors import RankwellError


def plot_curve(report: Mapping[str, Any], *, title: str = "", path: str | os.PathLike[str] | None = None) -> Any:
    """Draw the curve of a trained cascade, and save it if a path is given.

    Parameters
    ----------
    report : dict
        ``metrics_["cascade"]`` of a `Cascade`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as cause:
        raise RankwellError("a plot needs Matplotlib. Install the extra: pip install 'rankwell[plot]'.") from cause
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    panel = figure.subplots()
    curve, full, chosen = report["curve"], report["full"], report["chosen"]
    panel.step(
        [point["cost"] for point in curve], [point["metric"] for point in curve], where="post", marker="o", markersize=4
    )
    panel.plot([chosen["cost"]], [chosen["metric"]], "*", markersize=14, label="chosen")
    panel.plot([full["cost"]], [full["metric"]], "s", markersize=8, label="full ranker")
    panel.axhline(full["metric"], color="0.6", linestyle="--", linewidth=1.0)
    panel.axvline(full["cost"] / 4, color="0.6", linestyle=":", linewidth=1.0, label="a quarter of its cost")
    panel.set_xscale("log")
    panel.set_xlabel("microseconds a query")
    panel.set_ylabel(f"{report['metric']}, validation")
    panel.grid(alpha=0.3)
    panel.legend()
    if title:
        figure.suptitle(title)
    if path is not None:
        figure.savefig(path)
    return figure
