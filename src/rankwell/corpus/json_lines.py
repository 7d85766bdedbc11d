"""JSON lines: one object per line, one document per object."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from rankwell.corpus.document import Document, Place, document_of, shown
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.text_lines import Line, read_lines
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream


def read_json_lines(
    stream: ByteStream, name: str, options: CorpusOptions, on_bad: Callable[[DataError], None]
) -> Iterator[list[Document]]:
    """The documents of a stream of JSON lines; a document keeps its line as it is."""
    ignored, encoding = frozenset(options.ignored), options.encoding_of_lines()

    def documents_of(lines: list[Line]) -> list[Document]:
        documents = []
        for line in lines:
            try:
                documents.append(_document(line, encoding, options.id_field, ignored))
            except DataError as error:
                on_bad(error)
        return documents

    # A map, unlike a generator, does not hold the lines while its caller uses the documents: some are large.
    return map(documents_of, read_lines(stream, options, on_bad))


def _document(line: Line, encoding: str, id_field: str, ignored: frozenset[str]) -> Document:
    text = line.text(encoding)
    stored = (line.data if encoding == "utf-8" else text.encode("utf-8")).strip()
    return document_of(parse_object(text, line.place), line.place, id_field=id_field, ignored=ignored, stored=stored)


def parse_object(text: str, place: Place) -> dict[str, Any]:
    """The JSON object of a line; if a name appears twice, the last value counts."""
    try:
        value = decode_json(JSON_DECODER.decode, text, place=str(place))
    except json.JSONDecodeError as cause:
        raise DataError(
            f"{place}, column {cause.colno}: not JSON ({cause.msg[:1].lower()}{cause.msg[1:]}), at "
            f'{_found(text, cause.pos)}. Each line must be one object: {{"id": ..., ...}}.'
        ) from cause
    if type(value) is not dict:
        raise DataError(f'{place}: each line must be one object, {{"id": ..., ...}}, got {shown(value)}.')
    return value


def decode_json(decode: Callable[..., Any], *arguments: Any, place: str) -> Any:
    """What `decode` makes of the arguments; all errors but those of syntax are a DataError."""
    try:
        return decode(*arguments)
    except json.JSONDecodeError:
        raise
    except RecursionError as cause:
        raise DataError(f"{place}: lists and objects are nested too deeply. Correct it.") from cause
    except _ConstantError as cause:
        raise DataError(f"{place}: {cause}. Correct it.") from cause
    except ValueError as cause:
        # Python does not read integers of more than 4,300 digits.
        raise DataError(f"{place}: an integer has too many digits. Correct it.") from cause


def _found(text: str, start: int) -> str:
    """The text at a place of a line, shortened for a message."""
    rest = text[start : start + 31].strip()
    return f"{rest[:30]!r}" if rest else "the end of the line"


class _ConstantError(ValueError):
    """A number that JSON does not have."""


def _no_constant(name: str) -> NoReturn:
    raise _ConstantError(f"{name} is not JSON; leave a field out if its value is missing")


JSON_DECODER = json.JSONDecoder(parse_constant=_no_constant)
