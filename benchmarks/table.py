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
_RIGHT = ("ours", "first call, s", "minimum, s", "median, s", "runs")
_COLOURS = {"met": "green", "missed": "bold red"}


def make_console() -> Console:
    """Colours on a terminal; elsewhere plain text, wide enough that no cell is folded."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def write_figure(value: float) -> str:
    """Four significant digits, thousands separated, no exponent between 0.0001 and a million million."""
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
    difference = "" if row.interval is None else f", difference {row.interval[0]:+.4f} to {row.interval[1]:+.4f}"
    return f"{row.rival}: {write_figure(row.rival_value)} {row.unit}{ours}{difference}"


def write_paper(row: Row) -> str:
    if row.paper is None:
        return ""
    return row.paper if isinstance(row.paper, str) else f"{write_figure(row.paper)} {row.unit}"


def write_met(row: Row) -> str:
    return {None: "", True: "met", False: "missed"}[row.met]


def row_cells(rows: Sequence[Row], *, quick: bool = False) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of the figures; an empty column is left out.

    In the quick form a target is shown but not judged: its size is not the target's.
    """
    headings = ["case", "ours", "target", "", "rival, same run", "paper", "note"]
    lines = [
        [
            row.case,
            f"{write_figure(row.value)} {row.unit}".rstrip(),
            write_target(row),
            "not judged" if quick and row.met is not None else write_met(row),
            write_rival(row),
            write_paper(row),
            row.note,
        ]
        for row in rows
    ]
    filled = [place for place in range(len(headings)) if any(line[place] for line in lines)]
    return [headings[place] for place in filled], [[line[place] for place in filled] for line in lines]


def timing_cells(timings: Sequence[Timing]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of what was timed: the first call (compilation) separately, then minimum and median."""
    headings = ["timed", "first call, s", "minimum, s", "median, s", "runs"]
    lines = [
        [
            timing.name,
            *(write_figure(seconds) for seconds in (timing.first_s, timing.minimum, timing.median)),
            str(len(timing.times)),
        ]
        for timing in timings
    ]
    return headings, lines


def rich_table(headings: Sequence[str], lines: Sequence[Sequence[str]], *, plain: bool) -> Table:
    """The same cells for a terminal (colours, no frame) or for a log (ASCII)."""
    table = Table(box=box.ASCII2 if plain else box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in _RIGHT else "left", overflow="fold")
    for line in lines:
        table.add_row(*(f"[{_COLOURS[cell]}]{cell}[/]" if cell in _COLOURS else escape(cell) for cell in line))
    return table


def markdown_table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """The same cells as a table of a Markdown page, without a newline at its end."""
    rule = ["---:" if heading in _RIGHT else "---" for heading in headings]
    escaped = [[" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in [headings, *lines]]
    return "\n".join(f"| {' | '.join(line)} |" for line in [escaped[0], rule, *escaped[1:]])
