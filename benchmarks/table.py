"""The table a benchmark prints, and how a figure is written: the same on the screen and in docs/results.md."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.row import Row
from benchmarks.timing import Timing

PLAIN_WIDTH = 160


def make_console() -> Console:
    """Colours on a terminal; elsewhere plain text, wide enough that no cell is folded."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def write_figure(value: float) -> str:
    """Four significant digits, thousands apart, no exponent between 0.0001 and a million million."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e12 or size < 1e-4:
        return f"{value:.3e}"
    decimals = max(0, 3 - math.floor(math.log10(size)))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def write_target(row: Row) -> str:
    if row.target is None:
        return ""
    return f"{'≤' if row.better == 'lower' else '≥'} {write_figure(row.target)} {row.unit}"


def write_rival(row: Row) -> str:
    if row.rival is None:
        return ""
    if row.rival_value is None:
        return f"{row.rival}: not installed"
    ours = "" if row.advantage is None else f" (ours {write_figure(row.advantage)}x)"
    return f"{row.rival}: {write_figure(row.rival_value)} {row.unit}{ours}"


def write_paper(row: Row) -> str:
    if row.paper is None:
        return ""
    return row.paper if isinstance(row.paper, str) else f"{write_figure(row.paper)} {row.unit}"


def write_met(row: Row) -> str:
    return {None: "", True: "met", False: "missed"}[row.met]


def rows_table(rows: Sequence[Row], *, quick: bool, plain: bool) -> Table:
    """The figures. In the quick form a target is shown but not judged: its size is not the target's."""
    table = Table(box=box.ASCII2 if plain else box.SIMPLE_HEAD, show_lines=False)
    headings = ("case", "ours", "target", "", "rival, same run", "paper", "note")
    columns = [
        (
            row.case,
            f"{write_figure(row.value)} {row.unit}",
            write_target(row),
            "not judged" if quick and row.met is not None else write_met(row),
            write_rival(row),
            write_paper(row),
            row.note,
        )
        for row in rows
    ]
    colours = {"met": "green", "missed": "bold red"}
    for place, heading in enumerate(headings):
        if heading in ("case", "ours") or any(cells[place] for cells in columns):
            table.add_column(heading, justify="right" if heading == "ours" else "left", overflow="fold")
    for cells in columns:
        kept = [
            f"[{colours[cell]}]{cell}[/]" if cell in colours else escape(cell)
            for place, cell in enumerate(cells)
            if headings[place] in ("case", "ours") or any(other[place] for other in columns)
        ]
        table.add_row(*kept)
    return table


def timings_table(timings: Sequence[Timing], *, plain: bool) -> Table:
    """What was timed: the first call (compilation) apart, then minimum and median."""
    table = Table(box=box.ASCII2 if plain else box.SIMPLE_HEAD)
    table.add_column("timed")
    for heading in ("first call, s", "minimum, s", "median, s", "runs"):
        table.add_column(heading, justify="right")
    for timing in timings:
        seconds = (timing.first_s, timing.minimum, timing.median)
        table.add_row(escape(timing.name), *(write_figure(number) for number in seconds), str(len(timing.times)))
    return table
