"""Merging: the same segment as building the live documents at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.index.segments import assert_same, build, documents_of, random_rows

from rankwell.index.merging import document_merging, list_merging
from rankwell.index.merging.segment_merging import merge_segments
from rankwell.index.schema import Schema
from rankwell.index.segments.sink import MemorySink


def merge(segments, live=None):
    sink = MemorySink()
    meta = merge_segments(segments, live or [None] * len(segments), sink)
    assert meta == sink.segment().meta
    return sink.segment()


def cut(documents, bounds):
    """Segments of documents [bounds[i], bounds[i + 1]), over one growing schema."""
    schema = Schema(forward="all")
    return [build(documents[start:stop], schema) for start, stop in pairwise(bounds)], schema


@pytest.fixture
def tiny_windows(monkeypatch):
    """Windows and groups so small that every refill happens."""
    monkeypatch.setattr(list_merging, "WINDOW_BLOCKS", 2)
    monkeypatch.setattr(list_merging, "WINDOW_BYTES", 2 * 128 * 8)
    monkeypatch.setattr(list_merging, "TERMS_AT_A_TIME", 3)
    monkeypatch.setattr(list_merging, "OUTPUT_POSTINGS", 512)
    monkeypatch.setattr(document_merging, "DOCUMENTS_AT_A_TIME", 10)
    monkeypatch.setattr(document_merging, "STORED_BYTES_AT_A_TIME", 100)


@pytest.mark.parametrize("bounds", [[0, 600], [0, 100, 110, 300, 300, 301, 600], [0, 0, 600, 600]])
def test_segments_one_after_another(bounds):
    documents = documents_of(random_rows(np.random.default_rng(0), 600))
    segments, _ = cut(documents, bounds)
    assert_same(merge(segments), build(documents, Schema(forward="all")))


def test_through_tiny_windows(tiny_windows):
    rows = random_rows(np.random.default_rng(0), 500, vocabulary=40)
    # Lists of several blocks, and positions that need more room than a window and the output have.
    for number in range(0, 500, 100):
        rows[number]["title"] = "x " * 5000 + "common"
    documents = documents_of(rows)
    segments, _ = cut(documents, [0, 70, 260, 500])
    assert_same(merge(segments), build(documents, Schema(forward="all")))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.99])
def test_without_deleted_documents(share, tiny_windows):
    generator = np.random.default_rng(7)
    documents = documents_of(random_rows(generator, 400))
    segments, schema = cut(documents, [0, 60, 200, 400])
    live = [(generator.random(segment.n_docs) < share).astype(np.uint8) for segment in segments]
    live[1][:] = 1
    kept = np.concatenate(live).astype(bool)
    expected = build([one for one, is_kept in zip(documents, kept, strict=True) if is_kept], schema.copy())
    assert_same(merge(segments, live), expected)


def test_a_term_whose_documents_are_all_deleted_is_gone():
    segment = build(documents_of([{"id": 1, "body": "gone both"}, {"id": 2, "body": "both"}]))
    merged = merge([segment], [np.array([0, 1], dtype=np.uint8)])
    assert [merged.term(number) for number in range(merged.n_terms)] == [b"both"]


def test_everything_deleted():
    segment = build(documents_of([{"id": 1, "body": "x"}]))
    merged = merge([segment, segment], [np.zeros(1, dtype=np.uint8)] * 2)
    assert (merged.n_docs, merged.n_terms) == (0, 0)


def test_a_segment_with_one_stream_beside_one_with_more():
    """Its only list is that of its stream and of its whole document."""
    documents = documents_of([{"id": 1, "title": "a b a"}, {"id": 2, "title": "a", "body": "b", "year": 1}])
    segments, _ = cut(documents, [0, 1, 2])
    assert [segment.n_streams for segment in segments] == [1, 2]
    assert_same(merge(segments), build(documents, Schema(forward="all")))


def test_segments_without_text():
    documents = documents_of([{"id": 1, "year": 1}, {"id": 2, "title": "a"}])
    segments, _ = cut(documents, [0, 1, 2])
    assert_same(merge(segments), build(documents, Schema(forward="all")))
