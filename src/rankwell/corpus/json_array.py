"""JSON: one array of objects, one document per object; read piece by piece, so that it may be larger than memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from rankwell.corpus.document import Document, Place, document_of
from rankwell.corpus.json_lines import JSON_DECODER, decode_json, read_json_lines
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.text_lines import not_encoded, refuse_wide, too_long
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream

_PIECE = 2**20
_BATCH = 1024
_BLANKS = re.compile(r"[ \t\r\n]*")
_MARK = b"\xef\xbb\xbf"


def read_json(
    stream: ByteStream, name: str, options: CorpusOptions, on_bad: Callable[[DataError], None]
) -> Iterator[list[Document]]:
    """The documents of a JSON file: of its array, or of its lines if it does not begin with one."""
    if not stream.peek(_PIECE).removeprefix(_MARK).lstrip().startswith(b"["):
        if not is_one_object(stream, options):
            return read_json_lines(stream, name, options, on_bad)
        on_bad(
            DataError(
                f"{stream.name}: one object over several lines, neither an array of documents nor lines of JSON. Write "
                "[ and ] around it if it is a document, or leave the file out."
            )
        )
        return iter(())
    return _read_array(stream, options, on_bad)


def is_one_object(stream: ByteStream, options: CorpusOptions) -> bool:
    """Whether JSON begins with an object over several lines, which no line of documents does."""
    text = stream.peek(_PIECE).removeprefix(_MARK).decode(options.encoding_of_lines(), "replace")
    start = _BLANKS.match(text).end()  # type: ignore[union-attr]
    try:
        return text.startswith("{", start) and "\n" in text[start : JSON_DECODER.raw_decode(text, start)[1]]
    except (ValueError, RecursionError):
        return False  # the reader says what is wrong


def _read_array(
    stream: ByteStream, options: CorpusOptions, on_bad: Callable[[DataError], None]
) -> Iterator[list[Document]]:
    ignored = frozenset(options.ignored)
    batch: list[Document] = []
    for number, value in enumerate(_Elements(stream, options), start=1):
        place = Place(f"{stream.name}, element {number}")
        try:
            if type(value) is not dict:
                raise DataError(f'{place}: each element must be an object, {{"id": ..., ...}}, got {value!r:.60}.')
            batch.append(document_of(value, place, id_field=options.id_field, ignored=ignored))
        except DataError as error:
            on_bad(error)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    yield batch


class _Elements:
    """The elements of an array, one after another."""

    def __init__(self, stream: ByteStream, options: CorpusOptions) -> None:
        refuse_wide(stream.peek(2), stream.name)
        self._stream = stream
        self._longest = options.longest_document
        self._decoder = codecs.getincrementaldecoder(options.encoding_of_lines())()
        self._text = ""
        self._place = 0  # in the text
        self._is_complete = False

    def __iter__(self) -> Iterator[Any]:
        self._expect("[", 0)
        number = 0
        if self._next() == "]":
            self._place += 1
        else:
            while True:
                number += 1
                yield self._element(number)
                if self._next() == "]":
                    self._place += 1
                    break
                self._expect(",", number)
        if self._next():
            raise DataError(f"{self._stream.name} has more after the end of its array: {self._shown()}.")

    def _element(self, number: int) -> Any:
        """The next element; more is read until it is complete."""
        self._next()
        while True:
            try:
                value, self._place = decode_json(
                    JSON_DECODER.raw_decode, self._text, self._place, place=f"{self._stream.name}, element {number}"
                )
            except json.JSONDecodeError as cause:
                if len(self._text) - self._place > self._longest:
                    raise too_long(Place(f"{self._stream.name}, element {number}"), self._longest) from cause
                if self._is_complete:
                    raise DataError(
                        f"{self._stream.name}, element {number}: not JSON ({cause.msg[:1].lower()}{cause.msg[1:]}), at "
                        f"{self._text[cause.pos : cause.pos + 30]!r}. The file must be one array of objects."
                    ) from cause
                # Twice as much each time, so that a large element is not parsed again and again.
                self._read(max(_PIECE, len(self._text) - self._place))
            else:
                return value

    def _next(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            self._place = _BLANKS.match(self._text, self._place).end()  # type: ignore[union-attr]
            if self._place < len(self._text):
                return self._text[self._place]
            if self._is_complete:
                return ""
            self._read(_PIECE)

    def _expect(self, wanted: str, number: int) -> None:
        if self._next() != wanted:
            raise DataError(
                f"{self._stream.name}, after element {number}: expected {wanted!r}, found {self._shown()}. The file "
                f"must be one array of objects."
            )
        self._place += 1

    def _shown(self) -> str:
        return repr(self._text[self._place : self._place + 30]) if self._next() else "the end of the file"

    def _read(self, n_bytes: int) -> None:
        data = self._stream.read(n_bytes)
        try:
            more = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as cause:
            raise not_encoded(Place(self._stream.name), cause) from cause
        self._is_complete = not data
        self._text = self._text[self._place :] + more.removeprefix("\ufeff")
        self._place = 0
