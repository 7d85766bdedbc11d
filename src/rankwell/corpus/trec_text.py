"""TREC's documents: <DOC> elements one after another, as on TREC's disks and in many collections of ir_datasets.

    <DOC>
    <DOCNO> AP880212-0001 </DOCNO>
    <HEAD>Reports Former Saigon Officials</HEAD>
    <TEXT>
    ...
    </TEXT>
    </DOC>

DOCNO is the id, and each other element is a field, under its name in lower case; several of a name are a list. Tags
inside a field separate words. Such files are SGML without rules that anyone keeps: text outside elements is left out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator

from rankwell.corpus.document import Document, Place, document_of
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.text_lines import Line, read_lines, too_long
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream

_EDGE = re.compile(rb"<(/?)DOC>", re.IGNORECASE)
_TAG = re.compile(r"<(?P<name>[A-Za-z][\w.-]{0,63})(?:\s[^<>]*)?>")
_ANY_TAG = re.compile(r"<[^<>]*>")
_NUMBER = "docno"
# The end of a tag is looked for once for each name that has none: a document of many such names would take long.
_MOST_UNCLOSED = 100


def read_trec_text(
    stream: ByteStream, name: str, options: CorpusOptions, on_bad: Callable[[DataError], None]
) -> Iterator[list[Document]]:
    """The documents of a stream of <DOC> elements."""
    gathered = _GatheredDocuments(options, on_bad)
    for lines in read_lines(stream, options, on_bad):
        yield gathered.documents(lines)
    gathered.end()


class _GatheredDocuments:
    """Lines gathered to documents, which may extend over several blocks of lines."""

    def __init__(self, options: CorpusOptions, on_bad: Callable[[DataError], None]) -> None:
        self._options, self._on_bad = options, on_bad
        self._encoding = options.encoding_of_lines()
        # Where the open document began; None outside a document, and in one that is too long.
        self._place: Place | None = None
        self._lines: list[bytes] = []
        self._n_bytes = 0

    def documents(self, lines: list[Line]) -> list[Document]:
        """The documents that end in these lines."""
        found: list[Document] = []
        for line in lines:
            start = 0
            for edge in _EDGE.finditer(line.data):
                self._take(line.data[start : edge.start()])
                start = edge.end()
                if edge[1]:
                    found += self._close()
                else:
                    self._open(line.place)
            self._take(line.data[start:])
        return found

    def end(self) -> None:
        """The stream has ended."""
        if self._place is not None:
            self._on_bad(DataError(f"{self._place}: the document was cut short: it has no </DOC>."))

    def _open(self, place: Place) -> None:
        self.end()
        self._place, self._lines, self._n_bytes = place, [], 0

    def _take(self, data: bytes) -> None:
        if self._place is None or not data:
            return
        self._lines.append(data)
        self._n_bytes += len(data)
        if self._n_bytes > self._options.longest_document:
            self._on_bad(too_long(self._place, self._options.longest_document))
            self._place, self._lines = None, []

    def _close(self) -> list[Document]:
        """The open document, if there is one and it is a right one."""
        place, self._place = self._place, None
        if place is None:
            return []
        try:
            text = Line(place, b"\n".join(self._lines)).text(self._encoding)
            number = _NUMBER if self._options.id_field == "id" else self._options.id_field.lower()
            return [document_of(_fields(text, place), place, id_field=number, ignored=frozenset(self._options.ignored))]
        except DataError as error:
            self._on_bad(error)
            return []


def _fields(text: str, place: Place) -> dict[str, str | list[str]]:
    """The elements of a document that are not inside another one, by name."""
    found: dict[str, list[str]] = {}
    unclosed: set[str] = set()
    start = 0
    while (tag := _TAG.search(text, start)) is not None:
        name, start = tag["name"].lower(), tag.end()
        if name in unclosed:
            continue
        end = re.compile(f"</{re.escape(name)}>", re.IGNORECASE).search(text, start)
        if end is None:
            unclosed.add(name)
            if len(unclosed) > _MOST_UNCLOSED:
                raise DataError(f"{place}: the document has tags of more than {_MOST_UNCLOSED} names without an end.")
            continue
        found.setdefault(name, []).append(_words(text[start : end.start()]))
        start = end.end()
    return {name: texts[0] if len(texts) == 1 else texts for name, texts in found.items()}


def _words(text: str) -> str:
    return html.unescape(_ANY_TAG.sub(" ", text)).strip()
