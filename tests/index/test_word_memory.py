"""Words and their terms are remembered, also if more come than fit."""

import re

import pytest

from rankwell.index.query.query import parse_query
from rankwell.index.search.caption import find_caption
from rankwell.index.text import word_memory
from rankwell.index.text.analysis import Analysis
from rankwell.index.text.word_memory import WordMemory

LETTERS = "abcdefghij"


def make_memory(asked):
    def term_of(word):
        asked.append(word)
        return None if word == b"the" else word.lower().rstrip(b"s")

    return WordMemory(term_of)


def test_a_term_is_asked_for_once():
    asked = []
    memory = make_memory(asked)
    assert [memory.term(word) for word in (b"Cats", b"the", b"Cats", b"the")] == [b"cat", None, b"cat", None]
    assert memory.with_terms([b"Cats", b"cat", b"dogs", b"the"], {b"cat", b"cow"}) == {b"Cats": b"cat", b"cat": b"cat"}
    assert asked[:2] == [b"Cats", b"the"]
    assert sorted(asked[2:]) == [b"cat", b"dogs"]


def test_a_full_memory_starts_again_and_misses_nothing(monkeypatch):
    monkeypatch.setattr(word_memory, "_WORDS_REMEMBERED", 3)
    memory = make_memory([])
    words = [f"{letter}s".encode() for letter in LETTERS]
    for _ in range(2):
        assert memory.with_terms(words, {b"b", b"j"}) == {b"bs": b"b", b"js": b"j"}
        assert [memory.term(word) for word in words] == [letter.encode() for letter in LETTERS]
    assert len(memory._known[0]) <= len(words)


@pytest.mark.parametrize(
    "text",
    [
        "oil oils, foil; oil",  # a part of a longer word is another word
        "OIL\xa0oil",  # not ASCII
        "prices of oil. Oil prices! pricesoil",
        "oil",
        "",
    ],
)
def test_places_in_captions_are_those_of_the_words(text):
    analysis = Analysis("english")
    caption = find_caption({"body": text}, parse_query("oil price", analysis), analysis)
    expected = [match.span() for match in re.finditer(r"\b(oils?|prices?)\b", " ".join(text.split()), re.IGNORECASE)]
    assert list(caption.hits) == expected
