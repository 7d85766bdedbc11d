"""Figures as text: metrics that name their convention, parameters, missing values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def metric_text(value: float | None) -> str:
    """A metric with four digits, as papers print them; a dash where no query counts."""
    return "-" if value is None or math.isnan(value) else f"{value:.4f}"


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """Parameters as --set takes them, in one line."""
    return " ".join(f"{name}={value_text(value)}" for name, value in parameters.items())


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
        table.add_column(column, justify="left" if place == 0 or column in left else "right", overflow="fold")
    return table
