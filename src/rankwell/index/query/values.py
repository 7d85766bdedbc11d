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
    return _between(low, high, found[1], found[2])


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
            return _between(above, below, low, high)
        if isinstance(value, tuple):
            what = (
                "keywords, which have no ranges" if kind == "keyword" else f"numbers or dates, got {len(value)} values"
            )
            raise ValueError(
                f"field {field!r}: a tuple is a range (low, high), the field holds {what}. Several values are a list."
            )
        if isinstance(value, Collection) and not isinstance(value, str):
            return either(*(_wanted(schema, field, one) for one in value)) if value else Or(())
        if kind == "keyword":
            if value is None:
                raise ValueError(f"field {field!r} holds keywords, got None.")
            return Keyword(field, str(value).encode("utf-8", "replace"))
        return _comparison(schema, field, "=", value)
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(str(error), parameter="filter") from error


def excludes_itself(*ranges: Range) -> bool:
    """Whether no value is in all of these ranges."""
    low, high = max(one.low for one in ranges), min(one.high for one in ranges)
    with_ends = all((one.with_low or one.low < low) and (one.with_high or one.high > high) for one in ranges)
    return low > high or (low == high and not with_ends)


def _between(above: Range, below: Range, low: Any, high: Any) -> Range:
    """The values that are in both ranges; low, high : how their ends were written"""
    if above.low > below.high:
        raise ValueError(
            f"field {above.field!r} has nothing between {low} and {high}: a range begins with its lower end."
        )
    return replace(above, high=below.high, with_high=below.with_high)


def _refuse_keyword(schema: Schema, field: str) -> None:
    if schema.kind_of(field) == "keyword":
        raise ValueError(f"a range needs a field with numbers or dates, {field!r} holds keywords.")


def _comparison(schema: Schema, field: str, sign: str, value: Any) -> Range:
    if schema.kind_of(field) == "date":
        first, after = _date_bounds(field, value)
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


def _date_bounds(field: str, value: Any) -> tuple[float, float]:
    """The first second that a value names, and the first after it."""
    if isinstance(value, date):
        seconds = seconds_of(value)
        is_day = type(value) is date
        return seconds, seconds + 86_400.0 if is_day else math.nextafter(seconds, math.inf)
    try:
        return date_span(_unquoted(value) if isinstance(value, str) else str(value))
    except ValueError as error:
        raise ValueError(f"field {field!r} holds dates: {error}") from error


def _number(field: str, value: Any) -> float:
    text = _unquoted(value) if isinstance(value, str) else value
    number = _TRUTHS[text] if text in ("true", "false") else number_of(text)
    if not math.isfinite(number):
        raise ValueError(f"field {field!r} holds numbers, got {text!r}.")
    return number


def number_of(value: Any) -> float:
    """A number, or the one that a text writes; NaN if it is none. A text has no underscores, as Python's may have."""
    try:
        return math.nan if isinstance(value, str) and "_" in value else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _unquoted(text: str) -> str:
    return text.strip('"').replace("\\", "")
