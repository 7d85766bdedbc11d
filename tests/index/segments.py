"""Small segments for tests: built, compared, and read back slowly."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rankwell.corpus.document import Document, Place, document_of
from rankwell.index.schema import Schema
from rankwell.index.segments.builder import SegmentBuilder
from rankwell.index.segments.segment import ARRAYS, Segment
from rankwell.index.segments.sink import MemorySink
from rankwell.index.segments.stored_fields import decode_stored
from rankwell.index.text.analysis import Analysis
from rankwell.kernels.postings.forward import read_document


class DocumentWords(NamedTuple):
    """The words of a document: int32 (n,) each. Those of a stream follow each other, positions ascending."""

    streams: np.ndarray
    terms: np.ndarray
    positions: np.ndarray


def document_words(segment: Segment, doc: int) -> DocumentWords:
    """The words of one document as its forward index has them."""
    start, stop = segment["forward.offsets"][doc : doc + 2].tolist()
    room = np.empty((4, 8 * (stop - start)), np.int32)
    n_words = read_document(segment["forward.data"], start, stop, segment.n_terms, segment.n_streams, *room)
    assert n_words >= 0
    return DocumentWords(*room[1:, :n_words])


def documents_of(rows: Iterable[dict[str, object]]) -> list[Document]:
    return [document_of(row, Place("rows", line)) for line, row in enumerate(rows, 1)]


def build(
    documents: Iterable[Document],
    schema: Schema | None = None,
    analysis: Analysis | None = None,
    n_jobs: int | None = None,
) -> Segment:
    builder = SegmentBuilder(Schema() if schema is None else schema, analysis or Analysis(), n_jobs=n_jobs)
    builder.add(documents)
    sink = MemorySink()
    builder.write(sink)
    return sink.segment()


def assert_same(one: Segment, other: Segment) -> None:
    """The same documents, terms and postings, byte for byte; stored fields may be cut into other blocks."""
    assert one.meta == other.meta
    for name in ARRAYS:
        if not name.startswith("stored"):
            assert one[name].dtype == ARRAYS[name]
            assert one[name].tobytes() == other[name].tobytes(), name
    assert stored_lines(one) == stored_lines(other)


def stored_lines(segment: Segment) -> list[bytes]:
    offsets, data = segment["stored.offsets"].tolist(), segment["stored.data"]
    lines = []
    for block, (start, stop) in enumerate(pairwise(offsets)):
        assert len(lines) == segment["stored.first_doc"][block]
        lines += decode_stored(data[start:stop])
    assert len(lines) == segment["stored.first_doc"][-1]
    return lines


def random_rows(generator: np.random.Generator, n_docs: int, vocabulary: int = 300) -> list[dict[str, object]]:
    """Documents of a few streams and statics that come and go, with words as frequent as words are."""

    def words(most: int) -> str:
        count = int(generator.integers(0, most))
        return " ".join(f"w{number}" for number in generator.zipf(1.3, count) % vocabulary)

    rows: list[dict[str, object]] = []
    for number in range(n_docs):
        row: dict[str, object] = {"id": f"d{number}", "title": words(5)}
        if number > n_docs // 5:
            row["body"] = words(60)
        if number % 3 == 2:
            row["url"] = words(3)
        if number % 2 == 1 and number > n_docs // 2:
            row["clicks"] = float(number)
        rows.append(row)
    return rows
