"""TSV: one document per line, fields separated by tabs. There is no quoting: no field has a tab or a line break."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rankwell.corpus.columns import checked_columns, fields_of_columns
from rankwell.corpus.document import Document, Place, document_of
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.text_lines import Line, read_lines
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream

_REMEDY = "Columns are separated by single tabs, and no value may contain one."


def read_tab_separated(
    stream: ByteStream, name: str, options: CorpusOptions, on_bad: Callable[[DataError], None]
) -> Iterator[list[Document]]:
    """The documents of a TSV stream; its first line names the columns, unless the options do."""
    columns: list[str] | None = None
    ignored, encoding = frozenset(options.ignored), options.encoding_of_lines()
    if options.columns is not None:
        columns = checked_columns(list(options.columns), Place("columns"), options)

    def documents_of(lines: list[Line]) -> list[Document]:
        nonlocal columns
        documents = []
        for line in lines:
            if columns is None:
                columns = checked_columns(_values(line, encoding), line.place, options)
                continue
            try:
                fields = fields_of_columns(columns, _values(line, encoding), line.place, options, _REMEDY)
                documents.append(document_of(fields, line.place, id_field=options.id_field, ignored=ignored))
            except DataError as error:
                on_bad(error)
        return documents

    # A map, unlike a generator, does not hold the lines while its caller uses the documents: some are large.
    return map(documents_of, read_lines(stream, options, on_bad))


def _values(line: Line, encoding: str) -> list[str]:
    return line.text(encoding).rstrip("\r").split("\t")
