"""The segment builder: its arrays against the slow definition, on any number of threads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.index.segments import assert_same, build, documents_of, random_rows, stored_lines

from rankwell.corpus.document import Place, document_of
from rankwell.errors import DataError, ParameterError
from rankwell.index.schema import Schema
from rankwell.index.segments import builder as segment_builder
from rankwell.index.segments import encoding as segment_encoding
from rankwell.index.segments.builder import SegmentBuilder
from rankwell.index.segments.document_ids import hash_id
from rankwell.index.segments.segment import ARRAYS
from rankwell.index.segments.sink import MemorySink
from rankwell.index.text import word_table
from rankwell.index.text.analysis import Analysis
from rankwell.index.text.text_batch import text_pieces
from rankwell.kernels.postings.reference import build_postings, decode_list
from rankwell.kernels.postings.rules import BLOCK


def cut_all(analysis, text):
    """The terms of a text, or of a list of texts, and their positions: the words before them, and 100 between texts."""
    terms, start = [], 0
    for value in [text] if isinstance(text, str) else text:
        # What is not a word to this analysis counts as well.
        n_words = len(Analysis().cut(re.sub(r"\w{256,}", "x", value)))
        terms += [(term, start + position) for term, position in analysis.cut(value)]
        start += n_words + 100 if n_words else 0
    return terms


def check_against_definition(rows, analysis=None):
    analysis = analysis or Analysis()
    schema = Schema()
    segment = build(documents_of(rows), schema, analysis)
    words = [[cut_all(analysis, row.get(name, "")) for name in schema.streams] for row in rows]
    for name, wanted in build_postings(words, schema.n_streams).items():
        assert np.array_equal(segment[name], wanted), name
    return segment


@pytest.mark.parametrize("n_docs", [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 700])
def test_arrays_are_those_of_the_definition(n_docs):
    segment = check_against_definition(random_rows(np.random.default_rng(n_docs), n_docs))
    assert segment.n_docs == n_docs


def test_one_stream_has_one_list_a_term():
    segment = check_against_definition([{"id": 1, "body": "b a b"}, {"id": 2, "body": ""}])
    assert segment.lists_per_term == 1
    assert segment.tokens == (3,)
    assert [segment.term(number) for number in range(segment.n_terms)] == [b"a", b"b"]


def test_documents_without_any_text():
    segment = check_against_definition([{"id": 1, "year": 3}, {"id": 2}])
    assert (segment.n_streams, segment.n_terms, segment.tokens) == (0, 0, (0,))
    assert segment["documents.statics"].tolist()[0] == 3
    assert np.isnan(segment["documents.statics"][1])


def test_stop_words_count_in_positions_but_not_in_lengths():
    segment = check_against_definition([{"id": 1, "body": "the cat and the dog"}], Analysis(stop_words="english"))
    assert segment.tokens == (2,)
    arrays = {name: segment[name] for name in ARRAYS}
    assert [decode_list(arrays, number, has_positions=True) for number in range(2)] == [[(0, 1, [1])], [(0, 1, [4])]]


def test_a_huge_frequency_and_a_long_word():
    segment = check_against_definition([{"id": 1, "body": "x " * 70_000 + "y" * 300 + " z"}])
    assert segment["lists.occurrences"].tolist() == [70_000, 1]
    # The word of 300 letters is not indexed and keeps its place.
    assert decode_list({name: segment[name] for name in ARRAYS}, 1, has_positions=True) == [(0, 1, [70_001])]


def test_the_texts_of_a_list_lie_apart():
    rows = [
        {"id": 1, "tags": ["b c", "", "the", "c b", "y" * 300], "title": "c"},
        {"id": 2, "tags": []},
        {"id": 3, "tags": ["", "b"]},
        {"id": 4, "title": ["c", "c"], "tags": ["the"]},
    ]
    segment = check_against_definition(rows, Analysis(stop_words="english"))
    first = decode_list(segment, segment.term_number(b"b") * 3, has_positions=True)
    # b c | the | c b: 0 and 1, then 2 + 100, then 103 + 100 and 204.
    assert first == [(0, 2, [0, 204]), (2, 1, [0])]
    assert segment["documents.lengths"].reshape(4, 3).tolist() == [[4, 1, 5], [0, 0, 0], [1, 0, 1], [0, 2, 2]]


@pytest.mark.parametrize(
    "text", ["ab, c-d " * 50, "ab cd" * 50, "一二三四五六七八九 " * 20, "x" * 600, " " * 600 + "x"]
)
def test_long_texts_are_cut_into_words_piece_by_piece(monkeypatch, text):
    rows = [
        {"id": n, "title": text[n:], "tags": ["a " * 30, text[n:], " " * 99, "b"], "body": f"{n} {text}"}
        for n in range(9)
    ]
    expected = check_against_definition(rows)
    monkeypatch.setattr(segment_builder, "BATCH_BYTES", 17)
    pieces = list(text_pieces(text, 17))
    assert "".join(pieces) == text
    assert len(pieces) > 1 or " " not in text
    assert_same(build(documents_of(rows), n_jobs=1), expected)
    assert_same(build(documents_of(rows), n_jobs=3), expected)


def test_a_list_of_more_texts_than_there_are_positions(monkeypatch):
    monkeypatch.setattr(segment_builder, "MOST_POSITIONS", 1000)
    builder = SegmentBuilder(Schema(), Analysis())
    builder.add(documents_of([{"id": 1, "tags": ["a"] * 9}]))
    with pytest.raises(DataError, match=r"rows, line 1, field 'tags': the text is too long. .* room for 1,000 words"):
        builder.add(documents_of([{"id": 2, "new": "x", "tags": ["a"] * 10}]))
    assert (builder.n_docs, builder.schema.streams) == (1, ["tags"])


def test_control_characters_and_half_surrogates_part_words():
    segment = check_against_definition([{"id": 1, "body": "a\x00b\ud800c\x1bd"}])
    assert segment.tokens == (4,)


def test_ids_statics_and_stored_fields():
    rows = [{"id": f"d{n}", "title": f"word {n}", "rank": n, **({"extra": 0.5} if n == 3 else {})} for n in range(50)]
    segment = build(documents_of(rows))
    assert [segment.id_of(doc) for doc in range(50)] == [row["id"] for row in rows]
    assert segment["documents.id_hashes"].tolist() == sorted(hash_id(f"d{n}".encode()) for n in range(50))
    assert [hash_id(segment.id_of(doc).encode()) for doc in segment["documents.id_order"]] == segment[
        "documents.id_hashes"
    ].tolist()
    statics = segment["documents.statics"].reshape(50, 2)
    assert statics[:, 0].tolist() == list(range(50))
    assert np.flatnonzero(~np.isnan(statics[:, 1])).tolist() == [3]
    assert [json.loads(line) for line in stored_lines(segment)] == rows


def test_the_hash_of_an_id_stays_what_it_is():
    """It is kept in files. FNV-1a of nothing is its offset basis, of "a" af63dc4c8601ec8c; then MurmurHash3's mix."""

    def mix(value: int) -> int:
        value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD % 2**64
        value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
        return value ^ value >> 33

    assert hash_id(b"") == mix(0xCBF29CE484222325)
    assert hash_id(b"a") == mix(0xAF63DC4C8601EC8C)


def test_threads_batches_and_pieces_change_nothing(monkeypatch):
    documents = documents_of(random_rows(np.random.default_rng(1), 500))
    expected = build(documents)
    monkeypatch.setattr(segment_builder, "BATCH_BYTES", 1000)
    monkeypatch.setattr(segment_encoding, "PIECE", 100)
    monkeypatch.setattr(segment_encoding, "PIECE_LISTS", 30)
    monkeypatch.setattr(word_table, "FIRST_CAPACITY", 4)
    assert_same(build(documents, n_jobs=1), expected)
    assert_same(build(documents, n_jobs=3), expected)


def test_how_documents_are_handed_over_changes_nothing(monkeypatch):
    monkeypatch.setattr(segment_builder, "BATCH_BYTES", 1000)
    documents = documents_of(random_rows(np.random.default_rng(1), 300))
    builder = SegmentBuilder(Schema(), Analysis())
    for document in documents:
        builder.add([document])
    sink = MemorySink()
    builder.write(sink)
    assert_same(sink.segment(), build(documents))


def test_full_after_the_same_document_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(segment_builder, "BATCH_BYTES", 1000)
    documents = documents_of(random_rows(np.random.default_rng(1), 300))

    def first_full(n_jobs: int) -> int:
        builder = SegmentBuilder(Schema(), Analysis(), 100_000, n_jobs=n_jobs)
        for number, document in enumerate(documents):
            if builder.is_full:
                return number
            builder.add([document])
        return len(documents)

    assert 0 < first_full(1) < 300
    assert len({first_full(n_jobs) for n_jobs in (1, 2, 2, 3)}) == 1


MEMORY = """
import resource
from rankwell.index.text.analysis import Analysis
from rankwell.index.schema import Schema
from rankwell.index.segments.builder import SegmentBuilder
from rankwell.index.segments.sink import MemorySink
from tests.index.segments import build, documents_of

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

class NoSink(MemorySink):
    def append(self, name, values):
        self.n_lists = getattr(self, "n_lists", 0) + (len(values) if name == "lists.doc_freq" else 0)

schema = Schema([f"stream {number}" for number in range(200)], [f"static {number}" for number in range(500)])
build(documents_of([{"id": 1, "stream 0": "a"}]), schema, n_jobs=2)
before = peak()
builder = SegmentBuilder(schema, Analysis(), 64 * 2**20, n_jobs=2)
while not builder.is_full:
    first = 1000 * builder.n_docs
    words = " ".join(f"w{number}" for number in range(first, first + 1000))
    builder.add(documents_of([{"id": str(first), "stream 7": words}]))
sink = NoSink()
builder.write(sink)
print(peak() - before, sink.n_lists)
"""


def test_many_streams_count_in_the_memory():
    """Every term has a list for every stream, most of them empty."""
    folder = Path(__file__).parents[2]
    search_path = os.pathsep.join(filter(None, (str(folder), str(folder / "src"), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", MEMORY],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": search_path},
    )
    growth, n_lists = map(int, done.stdout.split())
    # 24 bytes a list is what the builder counts for it.
    assert 24 * n_lists > 20 * 2**20
    assert growth < 96 * 2**20


def test_an_id_twice_names_both_places():
    builder = SegmentBuilder(Schema(), Analysis())
    builder.add([document_of({"id": "a"}, Place("one.jsonl", 3))])
    with pytest.raises(DataError, match=r"two.jsonl, line 9: id 'a' exists already, at one.jsonl, line 3"):
        builder.add([document_of({"id": "a"}, Place("two.jsonl", 9))])


def test_a_refused_document_leaves_nothing_behind():
    builder = SegmentBuilder(Schema(["title"], ["year"]), Analysis())
    builder.add(documents_of([{"id": "a", "title": "one"}]))
    with pytest.raises(DataError, match="field 'year' holds a text"):
        builder.add(documents_of([{"id": "b", "title": "two", "year": "x"}]))
    builder.add(documents_of([{"id": "c", "title": "three"}]))
    sink = MemorySink()
    builder.write(sink)
    segment = sink.segment()
    assert [segment.term(number) for number in range(segment.n_terms)] == [b"one", b"three"]
    assert [place.line for place in builder.places] == [1, 1]
    assert segment["documents.lengths"].tolist() == [1, 1]


def test_memory_must_be_positive():
    with pytest.raises(ParameterError, match="memory_bytes must be at least 1, got 0"):
        SegmentBuilder(Schema(), Analysis(), 0)


def test_pairs_of_characters_are_numbered_as_words_while_the_table_grows():
    characters = [chr(0x4E00 + number) for number in range(20_000)]
    text = "".join(characters)
    table = word_table.WordTable()
    numbered = table.number(np.frombuffer(text.encode(), np.uint8), np.array([0, 3 * len(text)], np.int64))
    assert table.n_words == len(characters) - 1  # more than the table holds at first
    assert numbered.tokens.tolist() == list(range(len(characters) - 1))
    words = [numbered.new_text[6 * n : 6 * n + 6].decode() for n in range(table.n_words)]
    assert words == [first + second for first, second in pairwise(characters)]
