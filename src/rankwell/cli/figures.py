"""Figures as text: metrics that name their convention, parameters, missing values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

# The least that a column of text is given.
_NARROWEST_TEXT = 12


def metric_text(value: float | None) -> str:
    """A metric with four digits, as papers print them; a dash where no query counts."""
    return "-" if value is None or math.isnan(value) else f"{value:.4f}"


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """Parameters as --set takes them, in one line."""
    return " ".join(f"{name}={value_text(value)}" for name, value in parameters.items())


def counted(number: int, noun: str) -> str:
    """A number of things: 1 input, 2 inputs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def value_text(value: Any) -> str:
    """One parameter's value as --set takes it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(value_text(item) for item in value)
    return str(value)


def jsonable(value: Any) -> Any:
    """The same with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return value


def make_table(title: str, columns: Sequence[str], *, left: Sequence[str] = ()) -> Table:
    """An empty table: the first column and those named in `left` are text, the others numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns):
        is_text = place == 0 or column in left
        table.add_column(column, justify="left" if is_text else "right", overflow="fold", no_wrap=not is_text)
    return table


def fit_table(table: Table, width: int) -> int:
    """How wide to draw `table` where `width` columns are there: more, if a number would be broken else.

    Headings of numbers are broken at blanks first, and text takes what is left, a few columns at least. If that is not
    enough, columns move together.
    """
    if _natural_width(table) > width:
        for column in table.columns:
            if column.no_wrap:
                column.header = "\n".join(str(column.header).split())
    if _natural_width(table, most_text=_NARROWEST_TEXT) > width:
        table.padding = 0
    return max(width, _natural_width(table, most_text=_NARROWEST_TEXT))


def _natural_width(table: Table, most_text: int | None = None) -> int:
    """The columns of the screen that `table` takes, its text cut to `most_text` where that is given."""
    _, right, _, left = table.padding
    total = 1
    for column in table.columns:
        lines = (line for cell in (column.header, *column.cells) for line in str(cell).split("\n"))
        needed = max(map(len, lines), default=0)
        # A column also takes its blanks, and a place between it and the next.
        total += left + right + 1 + (needed if most_text is None or column.no_wrap else min(needed, most_text))
    return total
