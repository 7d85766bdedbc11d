"""Lines of text files, decoded, with their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rankwell.corpus.document import Place
from rankwell.corpus.options import CorpusOptions
from rankwell.errors import DataError, Parameter
from rankwell.streams.decompression import ByteStream
from rankwell.streams.text_blocks import TextBlock, TextBlocks

WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Line(NamedTuple):
    """One line that is not blank, without its end."""

    place: Place
    data: bytes

    def text(self, encoding: str) -> str:
        """The line decoded; a DataError where it is not in the encoding."""
        try:
            return str(self.data, encoding)
        except UnicodeDecodeError as cause:
            raise not_encoded(self.place, cause) from cause


def read_lines(stream: ByteStream, options: CorpusOptions, on_bad: Callable[[DataError], None]) -> Iterator[list[Line]]:
    """The lines of a stream, a block at a time; blank ones are passed over.

    `on_bad` is called for a line that is too long.
    """
    refuse_wide(stream.peek(2), stream.name)
    blocks = TextBlocks(stream, longest_line=options.longest_document)

    def on_long_line(line: int, longest: int) -> None:
        on_bad(too_long(Place(stream.name, line), longest))

    for block in blocks.read(on_long_line):
        yield _lines_of(block, blocks, stream.name)


def _lines_of(block: TextBlock, blocks: TextBlocks, name: str) -> list[Line]:
    # Without the last line feed: a block of one long line is then not copied once more.
    data = bytes(memoryview(block.buffer)[: block.n_bytes - 1])
    blocks.release(block)
    return [
        Line(Place(name, number), line)
        for number, line in enumerate(data.split(b"\n"), block.first_line)
        if line and not line.isspace()
    ]


def refuse_wide(head: bytes, name: str) -> None:
    """UTF-16 would be taken for bad UTF-8 line by line."""
    if head.startswith(WIDE_MARKS):
        raise DataError(f"{name} is UTF-16 text. Convert it to UTF-8 first: iconv -f utf-16 -t utf-8.")


def not_encoded(place: Place, cause: UnicodeDecodeError) -> DataError:
    """The error for bytes that are not text of the encoding."""
    found = " ".join(f"0x{byte:02x}" for byte in cause.object[cause.start : cause.end][:4])
    return DataError(
        f"{place}, byte {cause.start + 1}: {found} is not {cause.encoding}. Convert the text to UTF-8, or name its "
        "encoding (",
        Parameter("encoding", "latin-1"),
        " takes any bytes).",
    )


def too_long(place: Place, longest: int) -> DataError:
    return DataError(
        f"{place}: the document has more than {longest:,} bytes. Part it into several documents",
        (", or raise ", Parameter("longest_document")),
        ".",
    )
