"""CSV: one document per row, fields separated by commas and quoted where they hold commas, quotes or line breaks."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from rankwell.corpus.columns import checked_columns, fields_of_columns
from rankwell.corpus.document import Document, Place, document_of
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.text_lines import not_encoded, refuse_wide
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream

_BATCH = 256
_REMEDY = "A value with commas, quotes or line breaks is put in quotes, and a quote in it is doubled."


def read_comma_separated(
    stream: ByteStream, name: str, options: CorpusOptions, on_bad: Callable[[DataError], None]
) -> Iterator[list[Document]]:
    """The documents of a CSV stream; its first row names the columns, unless the options do."""
    refuse_wide(stream.peek(2), stream.name)
    ignored = frozenset(options.ignored)
    rows = _rows(stream, options)
    if options.columns is not None:
        columns = checked_columns(list(options.columns), Place("columns"), options)
    else:
        place, names = next(rows, (Place(stream.name), []))
        columns = checked_columns(names, place, options)
    while batch := list(islice(rows, _BATCH)):
        documents = []
        for place, values in batch:
            try:
                fields = fields_of_columns(columns, values, place, options, _REMEDY)
                documents.append(document_of(fields, place, id_field=options.id_field, ignored=ignored))
            except DataError as error:
                on_bad(error)
        yield documents


def _rows(stream: ByteStream, options: CorpusOptions) -> Iterator[tuple[Place, list[str]]]:
    """The rows that are not blank, each with the line that it starts in."""
    encoding = options.encoding_of_lines()
    text = io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig" if encoding == "utf-8" else encoding, newline="")
    reader = csv.reader(text, strict=True)
    while True:
        place = Place(stream.name, reader.line_num + 1)
        try:
            values = _next_row(reader, options.longest_document)
        except csv.Error as cause:
            raise DataError(f"{place}: not CSV ({cause}). {_REMEDY}") from cause
        except UnicodeDecodeError as cause:
            raise not_encoded(place, cause) from cause
        if values is None:
            text.detach()
            return
        if values:
            yield place, values


def _next_row(reader: Any, longest: int) -> list[str] | None:
    """The next row. Python's limit of a field's size is one for the whole process: it is set for this call only."""
    limit = csv.field_size_limit(longest)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(limit)
