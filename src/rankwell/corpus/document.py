"""A document to be indexed: checked, its fields divided into texts and numbers."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rankwell.corpus.nested_fields import flat_fields, is_nested
from rankwell.errors import DataError, Parameter

LONGEST_ID = 1024


class Place(NamedTuple):
    """Where a document came from, for messages."""

    source: str
    line: int = 0  # from 1; 0 where the source is one document

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}" if self.line else self.source


UNKNOWN_PLACE = Place("a document")


@dataclass(slots=True)
class Document:
    """One document.

    Attributes
    ----------
    id : str
    texts : dict of str to str or list of str
        The text of each stream. The texts of a list are kept apart: no phrase extends from one into the next.
    numbers : dict of str to float
        The static features it has.
    stored : bytes
        Its fields as one line of JSON (UTF-8, no line feed), kept for captions.
    place : Place
    vectors : dict of str to list of numbers
        Fields that are lists of numbers; they are not among the stored fields.
    """

    id: str
    texts: dict[str, str | list[str]]
    numbers: dict[str, float] = field(default_factory=dict)
    stored: bytes = b"{}"
    place: Place = UNKNOWN_PLACE
    vectors: dict[str, Sequence[float]] = field(default_factory=dict)

    @property
    def n_characters(self) -> int:
        """Of all its texts."""
        return sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in self.texts.values())


def document_of(
    fields: Mapping[str, Any],
    place: Place,
    *,
    id_field: str = "id",
    ignored: Collection[str] = (),
    stored: bytes | None = None,
) -> Document:
    """The document that a dictionary of fields describes.

    A text, or a list of texts, is a stream; a number or a truth value (of Python or NumPy) is a static; a list of
    numbers (or an array of one dimension) is a vector; None is a field that is absent. Fields of an object have the
    names of both (`nested_fields`).

    Parameters
    ----------
    ignored : collection of str
        Fields that are neither indexed nor checked.
    stored : bytes or None
        The fields as one line of JSON, if the caller has it already.
    """
    texts: dict[str, str | list[str]] = {}
    numbers: dict[str, float] = {}
    vectors: dict[str, Sequence[float]] = {}
    document_id: str | None = None
    for name, value in fields.items():
        if name == id_field:
            document_id = checked_id(value, name, place)
        elif name in ignored:
            continue
        elif type(value) is str:
            texts[name] = value
        elif _is_vector(value):
            vectors[name] = value
        elif value is not None:
            _sort_value(name, value, place, ignored, texts, numbers)
    if document_id is None:
        raise DataError(
            f"{place}: the field {id_field!r} is missing. Every document needs its own id: add the field, or name "
            "the field that holds it with ",
            Parameter("id_field"),
            ".",
        )
    if vectors:
        stored = _stored({name: value for name, value in fields.items() if name not in vectors}, place)
    return Document(document_id, texts, numbers, _stored(fields, place) if stored is None else stored, place, vectors)


def _is_vector(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "iuf"
    numbers = int | float | np.integer | np.floating
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(one, numbers) and not isinstance(one, bool) for one in value)
    )


def checked_id(value: Any, name: str, place: Place) -> str:
    """An id as text: a text or an integer, without control characters, neither empty nor longer than `LONGEST_ID`."""
    if isinstance(value, np.integer | np.str_):
        value = value.item()
    if type(value) is int and value.bit_length() <= 8 * LONGEST_ID:
        value = str(value)
    if type(value) not in (str, int):
        raise DataError(f"{place}, field {name!r}: an id is a text or an integer, got {shown(value)}.")
    if type(value) is str and value.isascii() and value.isprintable() and 0 < len(value) <= LONGEST_ID:
        return value
    if value == "":
        raise DataError(f"{place}, field {name!r}: the id is empty. Give every document its own id.")
    if type(value) is int or len(value.encode("utf-8", "replace")) > LONGEST_ID:
        raise DataError(f"{place}, field {name!r}: an id has at most {LONGEST_ID} bytes, got {shown(value)}.")
    unfit = control_character(value)
    if unfit is not None:
        raise DataError(
            f"{place}, field {name!r}: an id must not contain control characters or line breaks, got {unfit!r} in "
            f"{shown(value)}. Leave them out."
        )
    return value


def control_character(text: str) -> str | None:
    """The first character of a text that would break a line or a message, or that UTF-8 cannot hold."""
    return next((one for one in text if unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp")), None)


def as_json(fields: Mapping[str, Any]) -> bytes:
    """Fields as one line of JSON; half of a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=_plain).encode("utf-8", "replace")


def _plain(value: Any) -> bool | int | float:
    """A number of NumPy as one of Python."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    raise TypeError(f"{shown(value)} is not a JSON value")


def _stored(fields: Mapping[str, Any], place: Place) -> bytes:
    try:
        return as_json(fields)
    except TypeError as cause:
        raise DataError(
            f"{place}: {cause}. The names of fields must be texts, and their values must be JSON values."
        ) from cause


def shown(value: Any) -> str:
    """A value for a message: its beginning, and its type where that is not obvious."""
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to write integers of many thousand digits.
        text = "a very large value"
    return (text if len(text) <= 60 else f"{text[:60]}...") + f" ({type(value).__name__})"


def _sort_value(
    name: str,
    value: Any,
    place: Place,
    ignored: Collection[str],
    texts: dict[str, str | list[str]],
    numbers: dict[str, float],
) -> None:
    """Add a value that is not a plain text to the texts or the numbers."""
    if isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise DataError(
                f"{place}, field {name!r}: a number must be finite and fit in 64-bit floating point, got "
                f"{shown(value)}. Leave the field out if the value is missing."
            )
        numbers[name] = number
    elif isinstance(value, str):
        texts[name] = str(value)
    elif isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        texts[name] = list(value)
    elif is_nested(value):
        _sort_nested(name, value, place, ignored, texts, numbers)
    else:
        raise DataError(
            f"{place}, field {name!r}: a field holds a text, a list of texts, a number, true, false, null or an object "
            f"of such, got {shown(value)}. Change it, or leave the field out (",
            Parameter("ignored", name),
            ").",
        )


def _sort_nested(
    name: str,
    value: Any,
    place: Place,
    ignored: Collection[str],
    texts: dict[str, str | list[str]],
    numbers: dict[str, float],
) -> None:
    """Add the fields of an object, or of the objects of a list."""
    try:
        flat = flat_fields(name, value)
    except DataError as cause:
        raise DataError(f"{place}, {cause}") from cause
    for inner, leaf in flat.items():
        if inner in texts or inner in numbers:
            raise DataError(f"{place}: there are two fields {inner!r}, one of them in an object. Rename one of them.")
        if inner not in ignored and leaf is not None:
            _sort_value(inner, leaf, place, ignored, texts, numbers)
