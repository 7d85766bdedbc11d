"""LETOR / SVMlight text, one line at a time: slow, obvious, and the definition of what is right.

    line    = [ label [ "qid:" id ] { index ":" value } ] [ "#" comment ]

- Lines end in a line feed. Tokens are separated by blanks: space, tab, carriage return, vertical tab, form feed.
- A line without a token is not a row. `#` always starts a comment.
- A label is a finite number; a value is one that float32 can hold, or `nan` or `NULL` (as in LETOR's files) for a
  missing value, in capitals or not.
- A number is `[+-] digits [. digits] [e [+-] digits]`, with a digit before or after the dot. It is rounded to float64,
  as by C's `strtod`, and a value then to float32: as scikit-learn's `load_svmlight_file` does.
- An id is any text. Every row has one if the first row does.
- An index is an integer of 0 or more. Indices come in any order, each at most once in a line. If 0 appears in any row
  of a file, its indices count from 0, otherwise from 1. Features that a line does not name are 0.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

from rankwell.errors import DataError

BLANKS = b" \t\r\v\f"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
QID = b"qid:"

# Possessive quantifiers (`++`) never backtrack: any line takes one pass.
TOKEN = re.compile(rb"[^ \t\r\v\f]++")
NUMBER = re.compile(rb"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
NOT_A_NUMBER = re.compile(rb"[+-]?nan", re.IGNORECASE)
NULL = re.compile(rb"null", re.IGNORECASE)
INDEX = re.compile(rb"[0-9]++")
LONGEST_SHOWN = 40


class LineError(DataError):
    """A line that breaks the format: in which column (bytes, from 1), what was expected there and what was found."""

    def __init__(self, column: int, expected: str, found: bytes) -> None:
        shown = repr(found[:LONGEST_SHOWN].decode("utf-8", "backslashreplace"))
        self.column = column
        self.expected = expected
        self.found = (shown if len(found) <= LONGEST_SHOWN else shown + "...") if found else "nothing"
        super().__init__(f"column {column}: expected {expected}, found {self.found}.")


@dataclass(frozen=True)
class Row:
    """The content of one line; an empty comment is the same as no comment."""

    label: float
    qid: bytes | None
    values: dict[int, np.float32]
    comment: bytes


def parse_line(line: bytes, *, limit: int, has_qid: bool | None) -> Row | None:
    """The row of one line (without its line feed), or None for a line without a row.

    Parameters
    ----------
    limit : int
        The largest feature index allowed.
    has_qid : bool, optional
        Whether the rows before this one have query ids; None for the first row.
    """
    before, _, comment = line.partition(b"#")
    tokens = TOKEN.finditer(before)
    first = next(tokens, None)
    if first is None:
        return None
    label = parse_label(first.start() + 1, first.group())
    qid = None
    values: dict[int, np.float32] = {}
    second = next(tokens, None)
    column, token = (second.start() + 1, second.group()) if second else (first.end() + 1, b"")
    if token.startswith(QID):
        qid = parse_qid(column, token, has_qid)
    elif has_qid:
        raise LineError(column, "qid:ID, because the rows before have one", token)
    elif second:
        parse_feature(column, token, limit, values)
    for match in tokens:
        parse_feature(match.start() + 1, match.group(), limit, values)
    return Row(label, qid, values, comment.strip(BLANKS))


def is_letor_line(line: bytes) -> bool:
    """Whether a line is a row of this format with at least one feature, and so unlikely to be of another format."""
    try:
        row = parse_line(line, limit=2**31, has_qid=None)
    except LineError:
        return False
    return row is not None and len(row.values) > 0


def parse_label(column: int, token: bytes) -> float:
    if not NUMBER.fullmatch(token) or not math.isfinite(float(token)):
        raise LineError(column, "a label (a finite number)", token)
    return float(token)


def parse_qid(column: int, token: bytes, has_qid: bool | None) -> bytes:
    if has_qid is False:
        raise LineError(column, "index:value, because the rows before have no qid", token)
    if token == QID:
        raise LineError(column + len(QID), "a query id after 'qid:'", b"")
    return token[len(QID) :]


def parse_feature(column: int, token: bytes, limit: int, values: dict[int, np.float32]) -> None:
    """Add the feature `index:value` to the values of its line, by index."""
    digits, colon, number = token.partition(b":")
    if not colon or not INDEX.fullmatch(digits):
        raise LineError(column, "index:value", token)
    # The length first: Python refuses to convert very long integers.
    significant = digits.lstrip(b"0") or b"0"
    if len(significant) > len(str(limit)) or int(significant) > limit:
        raise LineError(column, f"a feature index of at most {limit}", token)
    index = int(significant)
    if index in values:
        raise LineError(column, f"feature {index} at most once in a line", token)
    value = parse_value(number)
    if np.isinf(value):
        raise LineError(column + len(digits) + 1, "a number that float32 can hold, or nan or NULL", number)
    values[index] = value


def parse_value(number: bytes) -> np.float32:
    """A feature's value; infinity for what is not one."""
    if NULL.fullmatch(number):
        return np.float32(math.nan)
    if not NUMBER.fullmatch(number) and not NOT_A_NUMBER.fullmatch(number):
        return np.float32(math.inf)
    with np.errstate(over="ignore"):
        return np.float32(float(number))


@dataclass
class ParsedText:
    """The content of a whole text: one entry per row, and one per bad line (its number and what is wrong with it)."""

    labels: list[float] = field(default_factory=list)
    qids: list[bytes] = field(default_factory=list)
    values: list[dict[int, np.float32]] = field(default_factory=list)
    comments: list[bytes] = field(default_factory=list)
    bad_lines: list[tuple[int, LineError]] = field(default_factory=list)

    def dense_features(self, n_features: int | None = None) -> np.ndarray:
        """The values as float32 (n_rows, n_features), indices counted from 0 or from 1 as the text does."""
        indices = [index for row in self.values for index in row]
        base = 0 if 0 in indices else 1
        width = max(indices, default=base - 1) - base + 1 if n_features is None else n_features
        features = np.zeros((len(self.values), width), dtype=np.float32)
        for row, values in enumerate(self.values):
            for index, value in values.items():
                features[row, index - base] = value
        return features


def parse_text(text: bytes, *, limit: int) -> ParsedText:
    """Every row of a text, and every bad line of it."""
    parsed = ParsedText()
    has_qid = None
    for number, line in enumerate(text.removeprefix(BYTE_ORDER_MARK).split(b"\n"), start=1):
        try:
            row = parse_line(line, limit=limit, has_qid=has_qid)
        except LineError as bad:
            parsed.bad_lines.append((number, bad))
            continue
        if row is None:
            continue
        has_qid = row.qid is not None
        parsed.labels.append(row.label)
        parsed.values.append(row.values)
        parsed.comments.append(row.comment)
        if row.qid is not None:
            parsed.qids.append(row.qid)
    return parsed
