"""Files that are one document each: plain text, Markdown, HTML. The path is the id, and its words the stream url."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from rankwell.corpus.document import Document, Place, document_of
from rankwell.corpus.markdown import split_markdown
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.text_lines import not_encoded, too_long
from rankwell.corpus.web_page import PageError, declared_encoding, split_page
from rankwell.errors import DataError
from rankwell.streams.decompression import CODECS, ByteStream

OnBad = Callable[[DataError], None]
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def read_plain_text(stream: ByteStream, name: str, options: CorpusOptions, on_bad: OnBad) -> Iterator[list[Document]]:
    """The document of a text file: its name is the title."""
    return _read(stream, name, options, on_bad, "utf-8", lambda text: ("", text))


def read_markdown(stream: ByteStream, name: str, options: CorpusOptions, on_bad: OnBad) -> Iterator[list[Document]]:
    """The document of a Markdown file: its first heading is the title."""
    return _read(stream, name, options, on_bad, "utf-8", split_markdown)


def read_html(stream: ByteStream, name: str, options: CorpusOptions, on_bad: OnBad) -> Iterator[list[Document]]:
    """The document of a page: its title, and the text a reader sees."""
    return _read(stream, name, options, on_bad, html_encoding(stream), split_page)


def html_encoding(stream: ByteStream) -> str:
    """The encoding that the beginning of a page names, or UTF-8."""
    return declared_encoding(stream.peek(1024)) or "utf-8"


def _read(
    stream: ByteStream,
    name: str,
    options: CorpusOptions,
    on_bad: OnBad,
    encoding: str,
    split: Callable[[str], tuple[str, str]],
) -> Iterator[list[Document]]:
    try:
        documents = [_document(stream, name, options, encoding, split)]
    except DataError as error:
        on_bad(error)
    else:
        yield documents


def _document(
    stream: ByteStream, name: str, options: CorpusOptions, encoding: str, split: Callable[[str], tuple[str, str]]
) -> Document:
    place = Place(stream.name)
    try:
        title, body = split(read_text(stream, place, options, encoding))
    except PageError as cause:
        raise DataError(f"{place}: {cause}. Correct it, or leave the file out.") from cause
    return document_of({"id": name, "title": title or _stem(name), "body": body, "url": name}, place)


def read_text(stream: ByteStream, place: Place, options: CorpusOptions, encoding: str) -> str:
    """The text of a file that is one document."""
    data = stream.read(options.longest_document + 1)
    if len(data) > options.longest_document:
        raise too_long(place, options.longest_document)
    marked = next((known for mark, known in MARKS.items() if data.startswith(mark)), None)
    try:
        return data.decode(options.encoding or marked or encoding)
    except UnicodeDecodeError as cause:
        raise not_encoded(place, cause) from cause


def _stem(name: str) -> str:
    """A file's name without its ending."""
    path = PurePosixPath(name)
    return (path.with_suffix("") if path.suffix in CODECS else path).stem
