"""An index of every format version and word rule still opens, is sound, and answers as it did when it was written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.index.model import content_of, expected_content

from rankwell.index.analysis import Analysis
from rankwell.index.checking import check_index
from rankwell.index.reader import Index
from rankwell.index.writer import IndexWriter

GOLDEN = Path(__file__).resolve().parent
INDEXES = sorted(GOLDEN.glob("version*-index"))

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
    "version1-index": Analysis(stop_words=STOP_WORDS, word_rule="unicode-1"),
    "version1-pairs-index": Analysis(common_words=STOP_WORDS, word_rule="unicode-2"),
}


def write_golden_index(path: Path) -> None:
    """How they were written."""
    with IndexWriter(path, analysis=ANALYSES[path.name]) as writer:
        writer.add([*DOCUMENTS, REPLACED, DELETED])
        writer.commit()
        writer.add([LATER])
        writer.delete(["gone"])
        writer.commit()


def test_there_is_an_index_of_each_version() -> None:
    assert [path.name for path in INDEXES] == list(ANALYSES)


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
