"""The values of a document by the kinds of fields: keywords and dates are taken out of its texts and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rankwell.corpus.document import Document, shown
from rankwell.errors import DataError
from rankwell.index.schema import Schema
from rankwell.index.segments.dates import date_span

LONGEST_KEYWORD = 1024


class FieldValues(NamedTuple):
    """The values of a document by the kinds of its fields; keywords are UTF-8."""

    texts: Mapping[str, str | list[str]]
    numbers: Mapping[str, float]
    keywords: Mapping[str, list[bytes]]


def field_values(document: Document, schema: Schema) -> FieldValues:
    """The texts, numbers and keywords of a document; dates are numbers."""
    if not schema.keywords and not schema.dates:
        return FieldValues(document.texts, document.numbers, {})
    keywords = {name: _keywords(document, name) for name in schema.keywords if _has(document, name)}
    dates = {name: _date(document, name) for name in schema.dates if _has(document, name)}
    texts = {name: text for name, text in document.texts.items() if name not in keywords and name not in dates}
    numbers = {name: number for name, number in document.numbers.items() if name not in keywords}
    return FieldValues(texts, numbers | dates, keywords)


def _has(document: Document, name: str) -> bool:
    return name in document.texts or name in document.numbers


def _keywords(document: Document, name: str) -> list[bytes]:
    given = document.texts.get(name)
    if given is None:
        number = document.numbers[name]
        given = str(int(number)) if number.is_integer() else repr(number)
    values = [value.encode("utf-8", "replace") for value in ([given] if isinstance(given, str) else given)]
    too_long = next((value for value in values if len(value) > LONGEST_KEYWORD), None)
    if too_long is not None:
        raise DataError(
            f"{document.place}, field {name!r}: a keyword has at most {LONGEST_KEYWORD:,} bytes, got "
            f"{len(too_long):,}: {shown(too_long[:40].decode('utf-8', 'replace'))}. Index the field as text."
        )
    return values


def _date(document: Document, name: str) -> float:
    given = document.texts.get(name, document.numbers.get(name))
    try:
        if not isinstance(given, str):
            raise ValueError(f"a date is a text such as 2024-05-31, got {shown(given)}.")
        return date_span(given)[0]
    except ValueError as cause:
        raise DataError(f"{document.place}, field {name!r}: {cause} Leave the field out if it is missing.") from cause
