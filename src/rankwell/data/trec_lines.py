"""Lines of TREC's files, judgments and runs: columns that blanks separate."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rankwell.errors import DataError, ParameterError


def fields_of_line(line: bytes, columns: str, place: str) -> list[str]:
    """The fields of a line whose columns are called so; none if it is empty."""
    try:
        fields = line.decode("utf-8").split()
    except UnicodeDecodeError as cause:
        raise DataError(f"{place} is not UTF-8 ({cause.reason}). Convert the file to UTF-8.") from cause
    if fields and len(fields) != len(columns.split()):
        raise DataError(f"{place} must be: {columns}, got {line[:60]!r}.")
    return fields


def number_in(text: str, what: str, place: str) -> float:
    """The number in a field."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{place}: the {what} must be a finite number, got {text!r}.")
    return number


def check_tag(tag: str) -> None:
    """Refuse a run's name that cannot be a field."""
    if len(tag.split()) != 1 or tag != tag.strip():
        raise ParameterError(
            f"must not be empty or contain a blank, by which TREC's format separates fields, got {tag!r}.",
            parameter="tag",
        )


def check_ids(names: Iterable[str]) -> None:
    """Refuse ids that cannot be a field."""
    for name in names:
        if len(name.split()) != 1 or name != name.strip():
            raise DataError(
                f"TREC's format separates fields by blanks: the id {name!r} must not be empty or contain one."
            )
