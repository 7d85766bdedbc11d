"""Tables of your own features: a row for a query and a document, for a document, or for a query.

A query is known by its words as they are written: case, white space and operators make no difference. A table is read
whole; what it says about documents of an index is looked up when it is first used, by document or by query.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.errors import DataError
from rankwell.index.query.query import Query, without_operators
from rankwell.index.reader import Index
from rankwell.streams.decompression import ByteStream
from rankwell.streams.json_text import parse_json

_COLUMNAR = (".parquet", ".feather", ".arrow")
_LINES = (".jsonl", ".ndjson", ".json")
_COMPRESSED = (".gz", ".bz2", ".zst", ".xz")
_QUERY, _DOCUMENT = "query", "document"
_SHOWN = 60


class OwnTable:
    """The rows of a table.

    Parameters
    ----------
    names : the columns that are features
    queries : the query of each row, None if the table has none
    documents : the id of each row's document, None if the table has none
    values : float32 (n_rows, n_names), NaN where a row has no value
    place : what errors call the table
    """

    def __init__(
        self,
        names: Sequence[str],
        queries: Sequence[str] | None,
        documents: Sequence[str] | None,
        values: np.ndarray,
        place: str = "the table",
    ) -> None:
        self.names, self._values = tuple(names), values
        first = [
            f"{name} {column[0]!r}"
            for name, column in ((_QUERY, queries), (_DOCUMENT, documents))
            if column is not None and len(column)
        ]
        self.keys = f"the first key of {place} is {' and '.join(first)}" if first else f"{place} has no rows"
        keys = None if queries is None else [query_key(query) for query in queries]
        _refuse_repeated(keys, documents, place)
        self._documents = documents
        self._rows_of: dict[str, list[int]] | None = None
        if keys is not None:
            self._rows_of = {}
            for row, key in enumerate(keys):
                self._rows_of.setdefault(key, []).append(row)
        # By index: of each query (or of none) the numbers of the documents, ascending, and their rows.
        self._found: WeakKeyDictionary[Index, dict[str | None, tuple[np.ndarray, np.ndarray]]] = WeakKeyDictionary()

    def values(self, index: Index, query: Query, docs: np.ndarray) -> np.ndarray:
        """See `rankwell.features.own_features.OwnSource`."""
        values = np.full((len(docs), len(self.names)), np.nan, np.float32)
        key = None if self._rows_of is None else query_key(query.text)
        if self._documents is None:
            rows = [] if self._rows_of is None else self._rows_of.get(key or "", [])
            values[:] = self._values[rows[0]] if rows else np.nan
            return values
        numbers, rows_of_numbers = self._known(index, key)
        if len(numbers):
            places = np.minimum(np.searchsorted(numbers, docs), len(numbers) - 1)
            is_known = numbers[places] == docs
            values[is_known] = self._values[rows_of_numbers[places[is_known]]]
        return values

    def _known(self, index: Index, key: str | None) -> tuple[np.ndarray, np.ndarray]:
        """The documents of the index that the table has rows of for a query."""
        of_index = self._found.setdefault(index, {})
        known = of_index.get(key)
        if known is None:
            assert self._documents is not None
            rows = range(len(self._documents)) if self._rows_of is None else self._rows_of.get(key or "", [])
            pairs = [(index.find(self._documents[row]), row) for row in rows]
            found = np.array(sorted(pair for pair in pairs if pair[0] >= 0), np.int64).reshape(-1, 2)
            known = np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1])
            if rows:
                of_index[key] = known
        return known


def query_key(text: str) -> str:
    """What queries have in common that a table takes for the same."""
    return " ".join(without_operators(text).casefold().split())


def read_own_table(path: str | os.PathLike[str]) -> OwnTable:
    """Read a Parquet, Feather or JSON-lines file (which may be compressed).

    Raises DataError for a file without a column `query` or `document`, or with a feature that is not a number.
    """
    return _table_of(read_columns(path), os.fspath(path))


def read_columns(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """The columns of a Parquet, Feather or JSON-lines file, None where a row lacks a value."""
    name = Path(path).name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    if name.endswith(_COLUMNAR):
        return _columns_of_arrow(path)
    if name.endswith(_LINES):
        return _columns_of_lines(path)
    allowed = ", ".join((*_COLUMNAR, *_LINES))
    raise DataError(f"{path} is not a table that can be read: its name must end in one of {allowed}.")


def _columns_of_arrow(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    import pyarrow
    import pyarrow.feather
    import pyarrow.parquet

    read = pyarrow.parquet.read_table if Path(path).suffix.lower() == ".parquet" else pyarrow.feather.read_table
    try:
        table = read(os.fspath(path))
    except (OSError, pyarrow.ArrowInvalid) as cause:
        raise DataError(f"cannot read {path}: {cause}.") from cause
    return {name: table.column(name).to_pylist() for name in table.column_names}


def _columns_of_lines(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    n_rows = 0
    with ByteStream(os.fspath(path)) as stream:
        for number, line in enumerate(stream.read().splitlines(), start=1):
            if not line.strip():
                continue
            try:
                row = parse_json(line)
            except (LookupError, ValueError) as cause:
                raise DataError(f"{stream.name}, line {number} is not JSON: {cause}.") from cause
            if not isinstance(row, dict):
                raise DataError(f"{stream.name}, line {number} must be a JSON object, got {str(row)[:_SHOWN]!r}.")
            for name, value in row.items():
                columns.setdefault(name, [None] * n_rows).append(value)
            n_rows += 1
            for name in columns.keys() - row.keys():
                columns[name].append(None)
    return columns


def _table_of(columns: Mapping[str, list[Any]], place: str) -> OwnTable:
    names = [name for name in columns if name not in (_QUERY, _DOCUMENT)]
    if not columns.keys() & {_QUERY, _DOCUMENT} or not names:
        raise DataError(
            f"{place} must have a column {_QUERY!r} (a text), a column {_DOCUMENT!r} (an id) or both, and columns of "
            f"numbers besides; it has {', '.join(columns) or 'none'}."
        )
    n_rows = len(next(iter(columns.values())))
    values = np.empty((n_rows, len(names)), np.float32)
    for column, name in enumerate(names):
        values[:, column] = _numbers(columns[name], name, place)
    queries = read_texts(columns[_QUERY], _QUERY, place) if _QUERY in columns else None
    documents = read_texts(columns[_DOCUMENT], _DOCUMENT, place) if _DOCUMENT in columns else None
    return OwnTable(names, queries, documents, values, place)


def _numbers(values: Sequence[Any], name: str, place: str) -> np.ndarray:
    for row, value in enumerate(values, start=1):
        if value is not None and not isinstance(value, int | float):
            raise DataError(
                f"{place}, row {row}: {name!r} must be a number, or missing, got {str(value)[:_SHOWN]!r}. Leave out "
                f"columns that are no features."
            )
    with np.errstate(over="ignore"):
        return np.array([np.nan if value is None else float(value) for value in values]).astype(np.float32)


def read_texts(values: Iterable[Any], name: str, place: str) -> list[str]:
    """Texts, or whole numbers as ids are often written."""
    texts = []
    for row, value in enumerate(values, start=1):
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise DataError(f"{place}, row {row}: {name!r} must be a text, got {str(value)[:_SHOWN]!r}.")
        texts.append(str(value))
    return texts


def _refuse_repeated(keys: Sequence[str] | None, documents: Sequence[str] | None, place: str) -> None:
    """A query and a document have one row."""
    row_of: dict[tuple[str, str], int] = {}
    n_rows = len(keys or documents or ())
    for row in range(n_rows):
        key = "" if keys is None else keys[row], "" if documents is None else documents[row]
        if key in row_of:
            named = " and ".join(
                f"{name} {text!r}" for name, text in zip((_QUERY, _DOCUMENT), key, strict=True) if text
            )
            raise DataError(f"{place}, row {row + 1} is of {named}, as row {row_of[key] + 1} is: give each one row.")
        row_of[key] = row
