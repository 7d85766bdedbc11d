"""Captions by the forward index are those of the text, whatever the text is."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("Stemmer", reason="words are indexed by their stems here: pip install PyStemmer")

from tests.index.segments import build, documents_of

from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.search import caption as caption_module
from rankwell.index.search.caption import CaptionTexts, WantedTerms
from rankwell.index.search.indexed_text import DocumentWords, IndexedText
from rankwell.index.text.analysis import Analysis

WORDS = ["oil", "Oils", "the", "of", "crude", "prices", "Prix", "7", "x" * 300, "Öl", "naïve", "石油価格", "e\u0301te"]
SEAMS = [" ", "  ", "\n", ", ", "\t- ", "\x00", "'", "\u00a0", " — ", "\u200d", "\u2028", "\ud800"]
QUERIES = [
    "oil",
    "crude oil prices",
    "oi* pri*",
    "prises~ the",
    "öl naive",
    "石油 価格",
    '"crude oil"',
    "absent",
    "7 été",
]


def index_of(rows: list[dict], analysis: Analysis, forward="all") -> Index:
    schema = Schema(["title", "body"], forward=forward)
    segments = [build(documents_of(part), schema, analysis) for part in (rows[:7], rows[7:]) if part]
    return Index(segments, [None] * len(segments), schema, analysis)


def random_text(rng: np.random.Generator, *, plain: bool) -> str:
    n_words = int(rng.integers(0, 60))
    words, seams = (WORDS[:9], SEAMS[:7]) if plain else (WORDS, SEAMS)
    return "".join(seams[rng.integers(len(seams))] + words[rng.integers(len(words))] for _ in range(n_words))


def captions(index: Index, query: str, doc: int, fields: dict | None = None):
    """By the text and by the forward index, and which texts are read by it."""
    fields = index.stored(doc) if fields is None else fields
    wanted = WantedTerms(index.parse(query))
    by_text = CaptionTexts(fields, index.analysis)
    by_index = CaptionTexts(fields, index.analysis, DocumentWords(index, doc))
    indexed = [one.text for one in by_index._texts if isinstance(one, IndexedText)]
    return by_text.caption(wanted, length=50), by_index.caption(wanted, length=50), indexed


@pytest.fixture
def _any_length(monkeypatch):
    monkeypatch.setattr(caption_module, "LEAST_INDEXED", 0)


@pytest.mark.usefixtures("_any_length")
@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(
    "analysis",
    [Analysis(), Analysis(stop_words=("the", "of")), Analysis.of_language("en")],
    ids=["plain", "stop", "en"],
)
def test_the_same_captions(plain, analysis):
    rng, n_hits = np.random.default_rng(3), 0
    rows = []
    for number in range(40):
        fields = {
            "title": random_text(rng, plain=plain),
            "body": random_text(rng, plain=plain),
            "tags": [random_text(rng, plain=plain) for _ in range(3)],
            "author": {"name": random_text(rng, plain=plain)},
        }
        # The order of the fields is that of the streams in a record.
        names = rng.permutation(list(fields))[: int(rng.integers(1, 5))].tolist()
        rows.append({"id": str(number), **{name: fields[name] for name in names}})
    index = index_of(rows, analysis)
    for query in QUERIES:
        for doc in range(len(rows)):
            by_text, by_index, _ = captions(index, query, doc)
            assert by_text == by_index, (query, rows[doc])
            n_hits += len(by_text.hits)
    assert n_hits > 100


def test_only_long_texts_that_it_has_whole(monkeypatch):
    long = "crude oil of the sea " * 60
    row = {"id": "a", "title": long, "body": "oil", "tags": [long], "author": {"name": long}, "note": long + "\u200d"}
    index = index_of([row], Analysis())
    by_text, by_index, indexed = captions(index, "oil sea", 0)
    assert by_text == by_index
    assert indexed == [long.strip()] * 2 + [long + "\u200d"]  # title, author.name, and the note with its joiner
    assert captions(index_of([row], Analysis(), forward=["body"]), "oil sea", 0)[2] == []
    monkeypatch.setattr(caption_module, "_LONGEST_TEXT", 1100)
    assert captions(index, "oil sea", 0)[2] == []


@pytest.mark.usefixtures("_any_length")
def test_a_text_that_was_cut_otherwise_is_read():
    """As by another version of Unicode: words that are not there, or others."""
    index = index_of([{"id": "a", "body": "é one two oil"}], Analysis())
    for text in ("é oil", "é one oil two", "oil é, the other oil"):
        by_text, by_index, indexed = captions(index, "oil", 0, {"body": text})
        assert indexed == [text]
        assert by_text == by_index
        assert len(by_text.hits) == text.count("oil")
