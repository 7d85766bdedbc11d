"""An index of every word rule still opens, is sound, and answers as it did when it was written.

Indexes of format versions 1 and 2 are not read any more: the message says what to do.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.index.model import content_of, expected_content
from tests.index.segments import document_words

from rankwell.errors import FileFormatError
from rankwell.index.checking import check_index
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter

GOLDEN = Path(__file__).resolve().parent
INDEXES = [GOLDEN / "version3-index", GOLDEN / "version3-pairs-index"]
WITH_COLUMNS = GOLDEN / "version3-columns-index"
FORWARD = GOLDEN / "version3-forward-index"

STOP_WORDS = ("a", "the")
DOCUMENTS = [
    {"id": "cat", "title": "The cat", "body": "a cat sat on the mat", "year": 1990},
    {"id": "Übung", "title": "Straße", "body": "naïve 東京 cat", "year": 2001.5},
    {"id": "empty", "body": ""},
    {"id": "dog", "title": "dog dog", "body": "the dog ate the cat", "url": "example.org/dog"},
]
REPLACED = {"id": "cow", "body": "an older cow"}
DELETED = {"id": "gone", "body": "cat cat cat"}
LATER = {"id": "cow", "title": "A cow", "body": "moo " * 300, "weight": -2.5}


ANALYSES = {
    "version3-index": Analysis(stop_words=STOP_WORDS, word_rule="unicode-1"),
    "version3-pairs-index": Analysis(common_words=STOP_WORDS, word_rule="unicode-2"),
}


def write_golden_index(path: Path) -> None:
    """How they were written."""
    with IndexWriter(path, analysis=ANALYSES[path.name]) as writer:
        writer.add([*DOCUMENTS, REPLACED, DELETED])
        writer.commit()
        writer.add([LATER])
        writer.delete(["gone"])
        writer.commit()


@pytest.mark.parametrize("version", [1, 2])
def test_earlier_versions_are_refused(tmp_path: Path, version: int) -> None:
    path = shutil.copytree(GOLDEN / f"version{version}-index", tmp_path / "index")
    with pytest.raises(FileFormatError, match=f"version {version}, this release reads version 3. Build it again"):
        Index.open(path)
    with pytest.raises(FileFormatError, match="Build it again"):
        IndexWriter(path)
    with IndexWriter(path, overwrite=True) as writer:
        writer.add(DOCUMENTS)
        writer.commit()
    assert Index.open(path).search("cat").ids == ["cat", "Übung", "dog"]
    assert check_index(path).problems == []


@pytest.mark.parametrize("path", INDEXES, ids=lambda path: path.name)
def test_it_holds_what_was_written(path: Path) -> None:
    index = Index.open(path)
    assert index.analysis == ANALYSES[path.name]
    assert content_of(index) == expected_content([*DOCUMENTS, LATER], index.analysis)
    assert (index.generation, index.n_docs, len(index.segments)) == (2, 5, 2)
    assert index.schema.to_json() == {"streams": ["title", "body", "url"], "statics": ["year", "weight"]}
    assert check_index(path).problems == []


@pytest.mark.parametrize("path", INDEXES, ids=lambda path: path.name)
def test_it_answers(path: Path) -> None:
    index = Index.open(path)
    assert index.search("cat").ids == ["cat", "Übung", "dog"]
    assert index.search("STRASSE").ids == ["Übung"]
    assert index.search("moo").ids == ["cow"]
    assert index.search('"ate the cat"').ids == ["dog"]
    assert index.search("older gone").ids == []
    assert index.search("東京").ids == ["Übung"]
    assert index.search("the cat").ids == index.search("cat").ids


@pytest.mark.parametrize("path", INDEXES, ids=lambda path: path.name)
def test_it_can_be_added_to_and_merged(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "index"
    shutil.copytree(path, copy)
    with IndexWriter(copy) as writer:
        writer.add([{"id": "new", "body": "new"}])
        writer.merge()
    expected = expected_content([*DOCUMENTS, LATER, {"id": "new", "body": "new"}], ANALYSES[path.name])
    assert content_of(Index.open(copy)) == expected
    assert check_index(copy).problems == []


WITH_KEYWORDS = [
    {"id": "a", "body": "one two", "kind": "book", "tags": ["x", "y"], "day": "2020-01-31", "price": 3},
    {"id": "b", "body": "two", "kind": "film", "tags": [], "day": "2021"},
    {"id": "c", "body": "two three", "tags": "y"},
]


def write_golden_columns(path: Path) -> None:
    """How it was written."""
    schema = Schema(keywords=["kind", "tags"], dates=["day"])
    with IndexWriter(path, schema=schema, analysis=Analysis()) as writer:
        writer.add([*WITH_KEYWORDS[:2], {"id": "gone", "body": "two", "kind": "gone"}])
        writer.commit()
        writer.add(WITH_KEYWORDS[2:])
        writer.delete(["gone"])
        writer.commit()


def test_columns_filter_sort_and_count(tmp_path: Path) -> None:
    assert check_index(WITH_COLUMNS).problems == []
    copy = tmp_path / "index"
    shutil.copytree(WITH_COLUMNS, copy)
    for _ in range(2):
        index = Index.open(copy)
        result = index.search("two", sort="day:desc", facets=["kind", "tags"])
        assert result.ids == ["b", "a", "c"]
        assert result.facets == {"kind": {"book": 1, "film": 1}, "tags": {"y": 2, "x": 1}}
        assert index.search("two", filter="day:2020 tags:x price:3").ids == ["a"]
        with IndexWriter(copy) as writer:
            writer.merge()


def write_golden_forward_index(path: Path) -> None:
    """How it was written."""
    with IndexWriter(path, schema=Schema(forward="all"), analysis=Analysis(stop_words=STOP_WORDS)) as writer:
        writer.add(DOCUMENTS)
        writer.commit()
        writer.add([LATER])
        writer.commit()


def test_a_forward_index_is_read() -> None:
    index = Index.open(FORWARD)
    assert check_index(FORWARD).problems == []
    assert index.schema.forward == "all"
    segment, doc = index.locate(index.find("dog"))
    words = document_words(segment, doc)
    named = [
        (index.schema.streams[stream], segment.term(term).decode()) for stream, term in zip(*words[:2], strict=True)
    ]
    assert named == [
        *(("title", "dog"), ("title", "dog")),
        *(("body", word) for word in ("dog", "ate", "cat")),
        *(("url", word) for word in ("example", "org", "dog")),
    ]
    assert words.positions.tolist() == [0, 1, 1, 2, 4, 0, 1, 2]


def test_a_forward_index_is_merged(tmp_path: Path) -> None:
    path = shutil.copytree(FORWARD, tmp_path / "index")
    with IndexWriter(path) as writer:
        writer.merge()
    assert check_index(path).problems == []
    assert Index.open(path).segments[0].forward_streams == (0, 1, 2)
    assert Index.open(path).more_like("cat").ids == ["Übung", "dog"]
