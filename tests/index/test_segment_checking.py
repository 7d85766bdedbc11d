"""Every promise that a segment's arrays make, broken once: the check says which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rankwell.corpus.document import Place, document_of
from rankwell.index.schema import Schema
from rankwell.index.segments.builder import SegmentBuilder
from rankwell.index.segments.checking import segment_problems
from rankwell.index.segments.segment import ARRAYS, Segment
from rankwell.index.segments.sink import MemorySink
from rankwell.index.text.analysis import Analysis

Arrays = dict[str, np.ndarray]
N_DOCS = 300


@pytest.fixture(scope="module")
def sound() -> Segment:
    """Documents with a word that all have (three blocks), one of their own, and rising frequencies and lengths."""
    schema = Schema(["title", "body"], ["year"], ["kind", "tags"], forward="all", vectors={"vector": 2})
    builder = SegmentBuilder(schema, Analysis())
    builder.add(
        document_of(
            {
                "id": f"d{n}",
                "title": f"own{n}",
                "body": "all " * (1 + n % 5) + "pad " * (n % 3 + n % 5),
                "year": n,
                "kind": f"kind {n % 7}",
                "tags": [f"t{tag}" for tag in range(n % 4)],
                "vector": [n, 1.0],
            },
            Place("made"),
        )
        for n in range(N_DOCS)
    )
    sink = MemorySink()
    builder.write(sink)
    return sink.segment()


def list_of(segment: Segment, term: bytes, column: int) -> int:
    return segment.term_number(term) * segment.lists_per_term + column


def problems_after(sound: Segment, change: Callable[[Arrays, dict[str, Any]], None]) -> list[str]:
    arrays = {name: sound[name].copy() for name in ARRAYS}
    meta = dict(sound.meta)
    change(arrays, meta)
    return segment_problems(Segment.in_memory(arrays, meta))


def test_a_sound_segment(sound: Segment) -> None:
    assert segment_problems(sound) == []
    assert sound["lists.doc_freq"][list_of(sound, b"all", 1)] == N_DOCS


def test_segments_without_anything_in_them() -> None:
    for texts in ([], [{"id": "a"}], [{"id": "a", "body": ""}], [{"id": "a", "year": 3}]):
        builder = SegmentBuilder(Schema(), Analysis())
        builder.add(document_of(fields, Place("made")) for fields in texts)
        sink = MemorySink()
        builder.write(sink)
        assert segment_problems(sink.segment()) == []


@pytest.mark.parametrize("name", sorted(set(ARRAYS) - {"blocks.last_doc", "impacts.frequency"}))
def test_an_array_that_is_longer_is_found(sound: Segment, name: str) -> None:
    def lengthen(arrays: Arrays, meta: dict[str, Any]) -> None:
        arrays[name] = np.append(arrays[name], arrays[name][-1:])

    assert problems_after(sound, lengthen)


OFFSETS = [
    "terms.offsets",
    "lists.first_block",
    "blocks.first_impact",
    "documents.ids.offsets",
    "stored.offsets",
    "stored.first_doc",
    "blocks.data",
]


@pytest.mark.parametrize("name", OFFSETS)
def test_offsets_that_do_not_ascend(sound: Segment, name: str) -> None:
    def swap(arrays: Arrays, meta: dict[str, Any]) -> None:
        if name.startswith("stored"):
            arrays[name][0] = 1
        else:
            last = int(np.flatnonzero(np.diff(arrays[name]))[0])
            arrays[name][[last, last + 1]] = arrays[name][[last + 1, last]]

    assert f"{name} does not ascend from 0" in problems_after(sound, swap)[0]


def first_block(segment: Segment) -> int:
    return int(segment["lists.first_block"][list_of(segment, b"all", 1)])


def first_posting(segment: Segment) -> int:
    return int(segment["blocks.data"][first_block(segment)])


def put_widths(segment: Segment, arrays: Arrays, widths: list[int]) -> None:
    """Other widths for the first block of "all", which has 0 bits a document, 3 a frequency and 1 a position."""
    assert segment["blocks.widths"][first_block(segment)] == 3 << 5 | 1 << 10
    documents, frequencies, positions = widths
    arrays["blocks.widths"][first_block(segment)] = documents | frequencies << 5 | positions << 10


BROKEN: dict[str, tuple[Callable[[Segment, Arrays, dict[str, Any]], None], str]] = {
    "a term out of order": (
        lambda s, a, m: a["terms.text"].__setitem__(0, ord("z")),
        "does not come after the one before it",
    ),
    "document frequency": (
        lambda s, a, m: a["lists.doc_freq"].__setitem__(list_of(s, b"all", 1), 3 * 128 + 1),
        "its number of blocks does not match its document frequency",
    ),
    "widths that do not exist": (
        lambda s, a, m: a["blocks.widths"].__setitem__(first_block(s), 1 << 15),
        "a block has unknown widths",
    ),
    "a width of documents": (
        lambda s, a, m: put_widths(s, a, [31, 3, 1]),
        "do not end where the next block's begin",
    ),
    "a width of positions": (
        lambda s, a, m: put_widths(s, a, [0, 3, 2]),
        "do not end where the next block's begin",
    ),
    "a document that is not there": (
        # 128 distances of 3 bits instead of frequencies, which then have none.
        lambda s, a, m: put_widths(s, a, [3, 0, 1]),
        "a document that the segment does not have",
    ),
    "a last document": (
        lambda s, a, m: a["blocks.last_doc"].__setitem__(first_block(s) + 2, N_DOCS),
        "last document is not the recorded one",
    ),
    "a frequency": (
        lambda s, a, m: a["postings"].__setitem__(first_posting(s), a["postings"][first_posting(s)] ^ 4),
        "its occurrences are not the sum of its frequencies",
    ),
    "occurrences": (
        lambda s, a, m: a["lists.occurrences"].__setitem__(list_of(s, b"all", 1), 1),
        "its occurrences are not the sum of its frequencies",
    ),
    "positions that do not ascend": (
        # Document 1 has "all" twice, at 0 and 1, after document 0's one position.
        lambda s, a, m: a["postings"].__setitem__(first_posting(s) + 48, a["postings"][first_posting(s) + 48] ^ 4),
        "positions of a document do not ascend",
    ),
    "an impact below a posting": (
        lambda s, a, m: a["impacts.frequency"].__setitem__(int(a["blocks.first_impact"][first_block(s) + 1]) - 1, 4),
        "impact",
    ),
    "an impact that is too short": (
        lambda s, a, m: a["impacts.length"].__setitem__(int(a["blocks.first_impact"][first_block(s)]), 0),
        "an impact that no posting of it has",
    ),
    "a length": (
        # Of those with "all" three times it is among the longest: no impact tells.
        lambda s, a, m: a["documents.lengths"].__setitem__(3 * 17 + 1, 100),
        "documents.lengths of document 17, column 1, is 100, the posting lists have 7",
    ),
    "different terms": (
        lambda s, a, m: a["documents.distinct"].__setitem__(3 * 17 + 2, 9),
        "documents.distinct of document 17, column 2, is 9, the posting lists have 3",
    ),
    "tokens": (lambda s, a, m: m.__setitem__("tokens", [1, 2, 3]), "tokens are recorded as (1, 2, 3)"),
    "columns of tokens": (lambda s, a, m: m.__setitem__("tokens", [1, 2]), "tokens are counted for 2 list columns"),
    "an id": (
        lambda s, a, m: a["documents.ids.text"].__setitem__(0, ord("e")),
        "documents.id_hashes are not the sorted hashes of the ids",
    ),
    "the order of ids": (
        lambda s, a, m: a["documents.id_order"].__setitem__(0, a["documents.id_order"][1]),
        "documents.id_order does not name every document once",
    ),
    "two hashes out of order": (
        lambda s, a, m: (
            a["documents.id_hashes"].__setitem__([0, 1], a["documents.id_hashes"][[1, 0]]),
            a["documents.id_order"].__setitem__([0, 1], a["documents.id_order"][[1, 0]]),
        ),
        "documents.id_hashes are not the sorted hashes of the ids",
    ),
    "stored fields": (
        lambda s, a, m: a["stored.data"].__setitem__(slice(0, 4), 0),
        "the stored fields of documents 0 to",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_promise_is_named(sound: Segment, case: str) -> None:
    change, message = BROKEN[case]
    problems = problems_after(sound, lambda arrays, meta: change(sound, arrays, meta))
    assert any(message in problem for problem in problems), problems


def test_an_id_twice(sound: Segment) -> None:
    """Both the ids and their hashes say so, and the hashes are right."""
    from rankwell.index.segments.document_ids import encode_ids

    ids = [sound.id_of(doc).encode() for doc in range(N_DOCS)]
    ids[7] = ids[100]
    problems = problems_after(sound, lambda arrays, meta: arrays.update(encode_ids(ids)))
    assert problems == ["memory: two documents have the id 'd100'."]


def test_a_whole_document_that_differs_from_its_streams(sound: Segment) -> None:
    """Each list is sound, the sum of the streams' occurrences is not the whole document's."""
    one = list_of(sound, b"own2", 0)

    def exchange(arrays: Arrays, meta: dict[str, Any]) -> None:
        # The title's list of own2 becomes a second one of document 3, and the lengths follow.
        block = arrays["lists.first_block"][one]
        assert arrays["postings"][arrays["blocks.data"][block]] == 2
        arrays["postings"][arrays["blocks.data"][block]] = 3
        arrays["blocks.last_doc"][block] = 3
        arrays["documents.lengths"][[3 * 2, 3 * 3]] = [0, 2]
        arrays["documents.distinct"][[3 * 2, 3 * 3]] = [0, 2]

    assert problems_after(sound, exchange) == [
        "memory: document 2 has 8 words as a whole, its streams have 7.",
        "memory: the forward index has 1 words of document 2 in stream 0, documents.lengths says 0.",
    ]
