"""The forward index: every word of every document, in order, after builds and merges; wrong records are found."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.index.segments import assert_same, build, document_words, documents_of, random_rows

from rankwell.errors import FileFormatError, ParameterError
from rankwell.index.checking import check_index
from rankwell.index.merging.segment_merging import merge_segments
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.segments import builder as segment_builder
from rankwell.index.segments import forward_writing
from rankwell.index.segments.forward_index import (
    count_terms,
    find_terms,
    forward_problems,
    has_every_stream,
    record_bytes,
    term_counts,
)
from rankwell.index.segments.segment import Segment
from rankwell.index.segments.sink import MemorySink
from rankwell.index.text.analysis import Analysis
from rankwell.index.text.text_batch import VALUE_GAP
from rankwell.index.writer import IndexWriter

ANALYSIS = Analysis(stop_words=("the", "of"))
ROWS = [
    {"id": "a", "title": "the cat of the cats", "body": "cat dog cat"},
    {"id": "b", "body": ["one two", "", "the three"], "title": "two"},
    {"id": "c"},
    {"id": "d", "title": "the of"},
    {"id": "e", "body": "x " * 300},
]


def words_of(segment, doc):
    """By stream: the terms and their positions."""
    words, found = document_words(segment, doc), {}
    for stream, term, position in zip(*(column.tolist() for column in words), strict=True):
        found.setdefault(stream, []).append((segment.term(term).decode(), position))
    return found


def test_words_and_positions_by_hand():
    segment = build(documents_of(ROWS), Schema(["title", "body"], forward="all"), ANALYSIS)
    assert has_every_stream(segment)
    assert words_of(segment, 0) == {0: [("cat", 1), ("cats", 4)], 1: [("cat", 0), ("dog", 1), ("cat", 2)]}
    gap = 2 + VALUE_GAP
    assert words_of(segment, 1) == {0: [("two", 0)], 1: [("one", 0), ("two", 1), ("three", gap + 1)]}
    assert words_of(segment, 2) == words_of(segment, 3) == {}
    assert words_of(segment, 4) == {1: [("x", place) for place in range(300)]}
    assert record_bytes(segment, np.array([2, 3])) == 0


def test_only_the_streams_that_were_named():
    schema = Schema(["title", "body"], forward=["body"])
    segment = build(documents_of(ROWS), schema, ANALYSIS)
    assert segment.forward_streams == (1,)
    assert not has_every_stream(segment)
    assert words_of(segment, 0) == {1: [("cat", 0), ("dog", 1), ("cat", 2)]}
    assert Schema.from_json(schema.to_json()) == schema == schema.copy()


def test_a_name_that_is_no_stream_yet_becomes_one():
    schema = Schema(forward=["body"])
    assert schema.streams == ["body"]
    with pytest.raises(ParameterError, match="'all' or a list of streams, got 'body'"):
        Schema(forward="body")


@pytest.mark.parametrize("batch_bytes", [2**21, 60])
def test_long_texts_in_several_batches(monkeypatch, batch_bytes):
    monkeypatch.setattr(segment_builder, "BATCH_BYTES", batch_bytes)
    rows = random_rows(np.random.default_rng(5), 80)
    schema = Schema(forward="all")
    segment = build(documents_of(rows), schema)
    for doc, row in enumerate(rows):
        expected = {
            number: [(word, place) for place, word in enumerate(row[name].split())]
            for number, name in enumerate(schema.streams)
            if row.get(name)
        }
        assert words_of(segment, doc) == expected
    assert forward_problems(segment) == []


@pytest.fixture(scope="module")
def segment():
    return build(documents_of(random_rows(np.random.default_rng(7), 120)), Schema(forward="all"))


def test_counts_are_those_of_the_words(segment):
    docs = np.array([119, 3, 60, 3], np.int64)
    counted, wanted = term_counts(segment, docs), np.arange(0, segment.n_terms, 3, dtype=np.int32)
    by_stream = count_terms(segment, docs, wanted)
    for i, doc in enumerate(docs.tolist()):
        words = document_words(segment, doc)
        own = slice(*counted.term_ptr[i : i + 2].tolist())
        found = dict(zip(counted.terms[own].tolist(), counted.counts[own].tolist(), strict=True))
        assert found == Counter(words.terms.tolist())
        pairs = Counter(zip(words.terms.tolist(), words.streams.tolist(), strict=True))
        for j, term in enumerate(wanted.tolist()):
            assert by_stream[i, j].tolist() == [pairs[term, stream] for stream in range(segment.n_streams)]


def test_terms_are_found_where_the_words_are(segment):
    generator = np.random.default_rng(3)
    for doc in range(segment.n_docs):
        words = document_words(segment, doc)
        wanted = np.flatnonzero(generator.random(segment.n_terms) < generator.choice([0.0, 0.05, 0.5, 1.0]))
        found = find_terms(segment, doc, wanted.astype(np.int32))
        for stream in range(segment.n_streams):
            own = (words.streams == stream) & np.isin(words.terms, wanted)
            assert (stream in found) == own.any()
            if stream in found:
                assert wanted[found[stream].places].tolist() == words.terms[own].tolist()
                assert found[stream].positions.tolist() == words.positions[own].tolist()


def test_positions_of_found_terms_count_what_is_skipped():
    segment = build(documents_of(ROWS), Schema(["title", "body"], forward="all"), ANALYSIS)
    number = {term: segment.term_number(term.encode()) for term in ("cats", "three", "two")}
    wanted = np.array(sorted(number.values()), np.int32)
    assert find_terms(segment, 0, wanted)[0].positions.tolist() == [4]  # the cat of the CATS
    found = find_terms(segment, 1, wanted)
    assert found[0].positions.tolist() == [0]
    assert found[1].positions.tolist() == [1, 2 + VALUE_GAP + 1]  # one TWO, the THREE
    assert found[1].places.tolist() == [wanted.tolist().index(number[term]) for term in ("two", "three")]
    assert find_terms(segment, 2, wanted) == find_terms(segment, 0, wanted[:0]) == {}


@pytest.mark.parametrize("bytes_at_a_time", [2**22, 100])
def test_merged_is_built_at_once(monkeypatch, bytes_at_a_time):
    monkeypatch.setattr(forward_writing, "_BYTES_AT_A_TIME", bytes_at_a_time)
    generator = np.random.default_rng(11)
    documents = documents_of(random_rows(generator, 150))
    schema = Schema(forward="all")
    # The streams body and url come with the second segment.
    parts = [build(documents[start:stop], schema) for start, stop in ((0, 20), (20, 90), (90, 150))]
    live = [
        None,
        generator.integers(0, 2, 70).astype(np.uint8),
        generator.integers(0, 4, 60).astype(np.uint8).clip(0, 1),
    ]
    alive = np.concatenate([np.ones(20, np.uint8), *live[1:]]) > 0
    sink = MemorySink()
    merge_segments(parts, live, sink)
    kept = [document for document, is_live in zip(documents, alive.tolist(), strict=True) if is_live]
    assert_same(sink.segment(), build(kept, Schema(schema.streams, schema.statics, forward="all")))
    assert forward_problems(sink.segment()) == []


def test_a_stream_that_one_segment_lacks_in_its_forward_index_is_lost_in_a_merge():
    documents = documents_of(ROWS)
    parts = [
        build(documents[:2], Schema(["title", "body"], forward=names), ANALYSIS) for names in ("all", ["body"], ())
    ]
    for chosen, streams in (((0, 1), (1,)), ((0, 2), ()), ((1, 0), (1,))):
        sink = MemorySink()
        merge_segments([parts[number] for number in chosen], [None, None], sink)
        merged = sink.segment()
        assert merged.forward_streams == streams
        assert forward_problems(merged) == []


def altered(segment, change):
    """The segment with a changed forward index."""
    arrays = {name: segment[name].copy() for name in segment.names}
    change(arrays)
    return Segment.in_memory(arrays, segment.meta)


def test_wrong_records_are_refused(segment):
    """Whatever byte is altered: other words, or an error that names the document."""
    generator, offsets, n_refused = np.random.default_rng(2), segment["forward.offsets"], 0
    docs = np.array([60], np.int64)
    for place in range(int(offsets[60]), int(offsets[61])):

        def change(arrays, place=place):
            arrays["forward.data"][place] ^= generator.integers(1, 256)

        forged = altered(segment, change)
        for read in (
            lambda: term_counts(forged, docs),  # noqa: B023
            lambda: count_terms(forged, docs, np.arange(forged.n_terms, dtype=np.int32)),  # noqa: B023
            lambda: find_terms(forged, 60, np.arange(forged.n_terms, dtype=np.int32)),  # noqa: B023
        ):
            try:
                read()
            except FileFormatError as error:
                assert "the forward index of document 60 is wrong" in str(error)  # noqa: PT017
                n_refused += 1
        problems = forward_problems(forged)
        assert not problems or "forward index" in problems[0]
    assert n_refused > 20


def test_the_check_compares_with_the_posting_lists(segment):
    def one_more(arrays):
        arrays["documents.lengths"][0] += 1

    def other_term(arrays):
        # The last term of document 60's list is the next one: its posting lists do not know.
        words = np.sort(document_words(segment, 60).terms)
        assert words[-1] < segment.n_terms - 1
        start = int(segment["forward.offsets"][60])
        n_terms = int(arrays["forward.data"][start])
        arrays["forward.data"][start + n_terms] += 1

    assert forward_problems(segment) == []
    assert "words of document 0 in stream 0, documents.lengths says" in forward_problems(altered(segment, one_more))[0]
    assert "lists.occurrences says" in forward_problems(altered(segment, other_term))[0]


def test_on_disk(tmp_path):
    rows = random_rows(np.random.default_rng(3), 60)
    path = tmp_path / "index"
    with IndexWriter(path, schema=Schema(forward="all")) as writer:
        for start in (0, 30):
            writer.add(rows[start : start + 30])
            writer.commit()
        writer.delete(["d3", "d40"])
        writer.merge()
    assert check_index(path).problems == []
    index = Index.open(path)
    assert index.schema.forward == "all"
    doc = index.find("d41")
    own = words_of(index.segments[0], doc)
    assert [term for term, _ in own[index.schema.streams.index("title")]] == rows[41]["title"].split()
    with pytest.raises(ParameterError, match=r"was built with forward='all', got \('body',\)"):
        IndexWriter(path, schema=Schema(forward=["body"]))
    with IndexWriter(path) as writer:
        writer.add([{"id": "new", "other": "a new stream"}])
        writer.commit()
    assert has_every_stream(Index.open(path).segments[-1])
