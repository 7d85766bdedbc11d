"""Values that a query compares fields with: numbers, dates, keywords, and ranges of numbers and dates.

A date means the whole year, month, day, hour, minute or second that it names: ``published:2024`` is any time of that
year, ``published:[2023 TO 2024]`` ends with its last second, and ``published:>2024`` begins after it. The functions
that get a match of the parser's patterns raise a ValueError that says what is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np

from rankwell.errors import ParameterError
from rankwell.index.query.tree import And, Exists, Keyword, Node, Or, Range, both, either
from rankwell.index.schema import Schema
from rankwell.index.segments.dates import date_span, seconds_of

_TRUTHS = {"true": 1.0, "false": 0.0}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def value_of(schema: Schema, field: str, found: re.Match[str]) -> Node:
    """``field:value``; ``field:*``: the field has a value; ``field:start*`` of a keyword field."""
    written = found[0]
    if written == "*":
        return Exists(field)
    if schema.kind_of(field) == "keyword":
        is_quoted = written.startswith('"')
        is_prefix = not is_quoted and written.endswith("*") and not written.endswith("\\*")
        text = found[1] if is_quoted else written[: -1 if is_prefix else None]
        if not is_quoted and "*" in text.replace("\\*", ""):
            raise ValueError(f"{written!r}: a wildcard is supported at the end of a keyword only.")
        return Keyword(field, _ESCAPED.sub(r"\1", text).encode("utf-8", "replace"), is_prefix)
    return _comparison(schema, field, "=", written)


def range_of(schema: Schema, field: str, found: re.Match[str]) -> Node:
    """``field:[low TO high]``; braces leave an end out, * is an open one."""
    _refuse_keyword(schema, field)
    lower = ">=" if found[0][0] == "[" else ">"
    upper = "<=" if found[0][-1] == "]" else "<"
    low = Range(field, -math.inf, math.inf) if found[1] == "*" else _comparison(schema, field, lower, found[1])
    high = Range(field, -math.inf, math.inf) if found[2] == "*" else _comparison(schema, field, upper, found[2])
    return replace(low, high=high.high, with_high=high.with_high)


def comparison(schema: Schema, field: str, found: re.Match[str]) -> Node:
    """``field:>value`` and the like."""
    _refuse_keyword(schema, field)
    return _comparison(schema, field, found[1], found[2])


def filter_of(schema: Schema, wanted: Mapping[str, Any]) -> Node:
    """The condition of a mapping: a field to a value, several of which one is enough, or a pair (low, high).

    Raises ParameterError if a field does not exist or a value does not suit it.
    """
    parts = [_wanted(schema, field, value) for field, value in wanted.items()]
    return both(*parts) if parts else And(())


def _wanted(schema: Schema, field: str, value: Any) -> Node:
    kind = schema.kind_of(field)
    if kind is None or kind == "stream":
        what = "holds text" if kind else "does not exist"
        allowed = ", ".join([*schema.statics, *schema.keywords]) or "none"
        raise ParameterError(
            f"field {field!r} {what}: statics, dates and keyword fields can be filtered by ({allowed}).",
            parameter="filter",
        )
    try:
        if isinstance(value, tuple) and len(value) == 2 and kind != "keyword":
            low, high = value
            above = Range(field, -math.inf, math.inf) if low is None else _comparison(schema, field, ">=", low)
            below = Range(field, -math.inf, math.inf) if high is None else _comparison(schema, field, "<=", high)
            return replace(above, high=below.high, with_high=below.with_high)
        if isinstance(value, Collection) and not isinstance(value, str):
            return either(*(_wanted(schema, field, one) for one in value)) if value else Or(())
        if kind == "keyword":
            return Keyword(field, str(value).encode("utf-8", "replace"))
        return _comparison(schema, field, "=", value)
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(str(error), parameter="filter") from error


def _refuse_keyword(schema: Schema, field: str) -> None:
    if schema.kind_of(field) == "keyword":
        raise ValueError(f"a range needs a field with numbers or dates, {field!r} holds keywords.")


def _comparison(schema: Schema, field: str, sign: str, value: Any) -> Range:
    if schema.kind_of(field) == "date":
        first, after = _date_bounds(value)
        if sign == "=":
            return Range(field, first, after, with_high=False)
        if sign[0] == ">":
            return Range(field, first if sign == ">=" else after, math.inf)
        return Range(field, -math.inf, after if sign == "<=" else first, with_high=False)
    number = _number(field, value)
    if sign == "=":
        return Range(field, number, number)
    if sign[0] == ">":
        return Range(field, number, math.inf, with_low=sign == ">=")
    return Range(field, -math.inf, number, with_high=sign == "<=")


def _date_bounds(value: Any) -> tuple[float, float]:
    """The first second that a value names, and the first after it."""
    if isinstance(value, date):
        seconds = seconds_of(value)
        is_day = type(value) is date
        return seconds, seconds + 86_400.0 if is_day else math.nextafter(seconds, math.inf)
    return date_span(value.strip('"').replace("\\", "") if isinstance(value, str) else str(value))


def _number(field: str, value: Any) -> float:
    text = value.strip('"').replace("\\", "") if isinstance(value, str) else value
    try:
        number = _TRUTHS[text] if text in ("true", "false") else float(text)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not np.isfinite(number):
        raise ValueError(f"field {field!r} holds numbers, got {text!r}.")
    return number
