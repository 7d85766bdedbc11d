"""The collection: queries that can be answered, and whose words are not left to be found again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rankwell.demo.collection import Collection, make_collection
from rankwell.demo.collection_files import part_files, write_documents, write_queries
from rankwell.demo.definitions import Definition
from rankwell.demo.known_items import fit_definitions
from rankwell.demo.library import Library
from rankwell.demo.sentences import meaningful_words, sentences

REST = "Whatever remains must mention several further things."


def defined(name: str, docstring: str, kind: str = "function") -> Definition:
    module = name.partition(".")[0]
    return Definition(name, module, kind, docstring, "" if kind == "module" else "(path)", 1)  # type: ignore[arg-type]


DEFINITIONS = (
    defined("pack", f"Pack several loose objects together tightly. {REST}", "module"),
    defined(
        "pack.Box", "Holds many small wooden toys inside. Filled with pack.fill() by children every morning.", "class"
    ),
    defined("pack.Box.shut", "Shut it."),
    defined(
        "pack.fill", "Put toys of pack.Box into boxes without breaking them. Needs shut() and patience afterwards."
    ),
    defined("pack.only", "Everything this function says stands right here."),
    defined("pack.first", f"Count apples, pears and plums. {REST}"),
    defined("pack.second", f"Another thing. Here we count red apples, green pears and blue plums. {REST}"),
    defined("pack.code", f"code(first, second) prints nicely formatted tables. {REST}"),
)
LIBRARY = Library(DEFINITIONS, Counter({"pack.fill": 3}))


def test_which_definitions_make_queries() -> None:
    # Not: `shut` (too short), `only` (nothing would be left), `first` (another sentence says all its words), `code`.
    # `second` starts with too short a sentence.
    assert [definition.name for definition in fit_definitions(DEFINITIONS)] == ["pack", "pack.Box", "pack.fill"]


@pytest.fixture
def collection() -> Collection:
    return make_collection(LIBRARY, n_queries=10, seed=1)


def test_the_sentence_a_query_was_made_from_is_nowhere(collection: Collection) -> None:
    assert {known.item for known in collection.known_items} == {"pack", "pack.Box", "pack.fill"}
    everything = "\n".join(json.dumps(document) for document in collection.documents)
    for known in collection.known_items:
        assert known.sentence not in everything
        query = known.query.split()
        assert 4 <= len(query) <= 6
        assert query == [word for word in meaningful_words(known.sentence) if word in query]
    # `fill` mentioned `Box` in its first sentence only, which was removed: it is not anchor text either.
    box = next(document for document in collection.documents if document["id"] == "pack.Box")
    assert (box["anchor"], box["mentions"]) == ("", 0)


def test_the_others_keep_theirs() -> None:
    kept = make_collection(LIBRARY, n_queries=0, seed=1)
    for definition, document in zip(DEFINITIONS, kept.documents, strict=True):
        assert document["body"].endswith("\n".join(sentences(definition.docstring)))
    box = kept.documents[1]
    assert (box["anchor"], box["mentions"]) == ("Put toys of pack.Box into boxes without breaking them.", 1)


def test_a_document(collection: Collection) -> None:
    fill = next(document for document in collection.documents if document["id"] == "pack.fill")
    assert fill == {
        "id": "pack.fill",
        "title": "fill",
        "url": "pack/fill",
        "body": "fill(path)\nNeeds shut() and patience afterwards.",
        "anchor": "Filled with pack.fill () by children every morning.",
        "docstring_words": 5,
        "mentions": 1,
        "uses": 3,
        "depth": 1,
        "parameters": 1,
    }


def test_grades(collection: Collection) -> None:
    grades = {known.item: known.grades for known in collection.known_items}
    assert grades["pack.fill"] == {"pack.fill": 2, "pack": 1}
    assert grades["pack.Box"] == {"pack.Box": 2, "pack": 1, "pack.Box.shut": 1}
    direct = {"pack.Box", "pack.code", "pack.fill", "pack.first", "pack.only", "pack.second"}
    assert grades["pack"] == {"pack": 2} | dict.fromkeys(direct, 1)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("m.ZipFile.open", "ZipFile.open (Zip File)"),
        ("m.XMLReader_of", "XMLReader_of (XML Reader)"),
        ("m.open", "open"),
    ],
)
def test_titles_part_the_words_of_a_name(name: str, title: str) -> None:
    made = make_collection(Library((defined(name, "Text."),), Counter()), n_queries=0, seed=1)
    assert made.documents[0]["title"] == title


def test_files(collection: Collection, tmp_path: Path) -> None:
    documents = write_documents(collection.documents, tmp_path)
    assert [json.loads(line) for line in documents.read_text("utf-8").splitlines()] == collection.documents
    write_queries("train", collection.known_items, [2, 0], tmp_path)
    queries, judgments = part_files("train", tmp_path)
    drawn = collection.known_items
    assert queries.name == "train.queries.tsv"
    assert queries.read_text() == f"3\t{drawn[2].query}\n1\t{drawn[0].query}\n"
    lines = judgments.read_text().splitlines()
    assert lines[0] == f"3 0 {drawn[2].item} 2"
    assert len(lines) == len(drawn[2].grades) + len(drawn[0].grades)


def test_the_installed_library_gives_enough_and_the_same_again(installed: Library) -> None:
    first, again, other = (make_collection(installed, n_queries=600, seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert first.known_items != other.known_items
    assert len({known.item for known in first.known_items}) == 600
    # No sentence of any document says all the words of a sentence that made a query.
    remaining = [set(meaningful_words(part)) for document in first.documents for part in document["body"].split("\n")]
    for known in first.known_items[:10]:
        assert not any(set(meaningful_words(known.sentence)) <= said for said in remaining)
