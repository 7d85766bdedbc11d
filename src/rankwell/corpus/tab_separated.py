"""TSV: one document a line, its fields parted by tabs. There is no quoting, so no field holds a tab or a line break."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rankwell.corpus.document import Document, Place, document_of, shown
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.text_lines import Line, read_lines
from rankwell.errors import DataError, Parameter
from rankwell.streams.decompression import ByteStream


def read_tab_separated(
    stream: ByteStream, name: str, options: CorpusOptions, on_bad: Callable[[DataError], None]
) -> Iterator[list[Document]]:
    """The documents of a TSV stream; its first line names the columns, unless the options do."""
    columns: list[str] | None = None
    ignored, encoding = frozenset(options.ignored), options.encoding_of_lines()
    if options.columns is not None:
        columns = _checked_columns(list(options.columns), Place("columns"), options)

    def documents_of(lines: list[Line]) -> list[Document]:
        nonlocal columns
        documents = []
        for line in lines:
            if columns is None:
                columns = _checked_columns(_values(line, encoding), line.place, options)
                continue
            try:
                fields = _fields(columns, _values(line, encoding), line, options)
                documents.append(document_of(fields, line.place, id_field=options.id_field, ignored=ignored))
            except DataError as error:
                on_bad(error)
        return documents

    # A map, unlike a generator, holds no lines while its caller has the documents: some are large.
    return map(documents_of, read_lines(stream, options, on_bad))


def _values(line: Line, encoding: str) -> list[str]:
    return line.text(encoding).rstrip("\r").split("\t")


def _checked_columns(names: list[str], place: Place, options: CorpusOptions) -> list[str]:
    remedy = ("Name the columns in the first line, or pass ", Parameter("columns"), ".")
    if options.id_field not in names:
        raise DataError(f"{place}: no column is called {options.id_field!r}, found {shown(names)}. ", *remedy)
    for number, column in enumerate(names, 1):
        if not column.strip():
            raise DataError(f"{place}: column {number} has no name. ", *remedy)
        if column in names[: number - 1]:
            raise DataError(f"{place}: two columns are called {column!r}. ", *remedy)
    for column in options.statics:
        if column not in names:
            raise DataError(
                f"{place}: ",
                Parameter("statics"),
                f" names {column!r}, which is not among the columns {shown(names)}.",
            )
    return names


def _fields(columns: list[str], values: list[str], line: Line, options: CorpusOptions) -> dict[str, Any]:
    if len(values) != len(columns):
        raise DataError(
            f"{line.place}: the line has {len(values)} columns, but {len(columns)} are named. Columns are parted by "
            f"single tabs, and no value may hold one."
        )
    fields: dict[str, Any] = dict(zip(columns, values, strict=True))
    for column in options.statics:
        text = fields[column].strip()
        try:
            fields[column] = float(text) if text else None
        except ValueError as cause:
            raise DataError(
                f"{line.place}, field {column!r}: a number was expected, got {shown(text)}. Correct it, or leave it "
                f"empty where it is missing."
            ) from cause
    return fields
