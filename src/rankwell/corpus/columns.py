"""Tables of documents: columns with names, and the values of a row."""

from __future__ import annotations

from typing import Any

from rankwell.corpus.document import Place, shown
from rankwell.corpus.options import CorpusOptions
from rankwell.errors import DataError, Parameter


def checked_columns(names: list[str], place: Place, options: CorpusOptions) -> list[str]:
    """The names of columns; a DataError if one is missing, empty or there twice."""
    remedy = ("Name the columns in the first line, or pass ", Parameter("columns"), ".")
    if options.id_field not in names:
        raise DataError(f"{place}: no column is called {options.id_field!r}, found {shown(names)}. ", *remedy)
    seen: set[str] = set()
    for number, column in enumerate(names, 1):
        if not column.strip():
            raise DataError(f"{place}: column {number} has no name. ", *remedy)
        if column in seen:
            raise DataError(f"{place}: two columns are called {column!r}. ", *remedy)
        seen.add(column)
    for column in options.statics:
        if column not in seen:
            raise DataError(
                f"{place}: ",
                Parameter("statics"),
                f" names {column!r}, which is not among the columns {shown(names)}.",
            )
    return names


def fields_of_columns(
    columns: list[str], values: list[str], place: Place, options: CorpusOptions, remedy: str
) -> dict[str, Any]:
    """The values of a row by their columns, those of statics as numbers."""
    if len(values) != len(columns):
        raise DataError(f"{place}: the line has {len(values)} columns, but {len(columns)} are named. {remedy}")
    fields: dict[str, Any] = dict(zip(columns, values, strict=True))
    for column in options.statics:
        text = fields[column].strip()
        try:
            fields[column] = float(text) if text else None
        except ValueError as cause:
            raise DataError(
                f"{place}, field {column!r}: a number was expected, got {shown(text)}. Correct it, or leave it "
                f"empty if it is missing."
            ) from cause
    return fields
