from __future__ import annotations

import numpy as np
import pytest
from tests.index.searching import make_index

from rankwell.index.query.query import parse_query
from rankwell.index.schema import Schema
from rankwell.index.search.caption import CaptionTexts, WantedTerms, _best_piece, find_caption, make_caption
from rankwell.index.text.analysis import Analysis

PLAIN = Analysis()


def caption(fields: dict, query: str, length: int = 40) -> str:
    return make_caption(fields, parse_query(query, PLAIN), PLAIN, length=length)


def test_the_piece_with_most_of_the_terms() -> None:
    text = "Nothing here about it. " * 5 + "Crude oil prices rose today. " + "And oil again, much later on. " * 3
    assert "Crude oil prices" in caption({"id": "oil prices", "body": text}, "oil prices", 60)
    assert caption({"title": "Oil", "body": "oil and prices"}, "oil prices") == "oil and prices"
    assert caption({"title": "Oil", "body": "oil"}, "oil") == "Oil"  # equally good: the first field


def test_the_texts_of_a_list_are_looked_at_one_by_one() -> None:
    assert caption({"body": "oil", "tags": ["crude oil", "prices", 7]}, "crude oil prices") == "crude oil"
    assert caption({"tags": []}, "oil") == ""


def test_a_caption_ends_with_a_word() -> None:
    assert caption({"body": "oil prices rose sharply today"}, "oil", 20) == "oil prices rose …"
    assert caption({"body": "oil prices rose sharply today"}, "oil", 15) == "oil prices rose …"
    assert caption({"body": "oil" + "x" * 50}, "oil", 10) == "oilxxxxxxx"


def test_a_word_that_is_longer_than_a_caption() -> None:
    assert caption({"body": "crude " + "o" * 50}, "oo*", 20) == "crude …"
    assert caption({"body": "o" * 50 + " crude"}, "oo*", 20) == "o" * 20 + " …"


def test_without_a_hit_the_beginning() -> None:
    assert caption({"id": "x", "title": "", "body": "A short text.", "year": 1987}, "zzz") == "A short text."
    assert caption({"id": "x"}, "zzz") == ""


def test_one_harmless_line() -> None:
    assert caption({"body": "a\x1b[31m\n\n  oil\tb\x00c"}, "oil") == "a [31m oil b c"


@pytest.mark.parametrize("joiner", ["\u00ad", "\u200c", "\u200d", "\u2060", "\ufeff"])
def test_words_with_joiners_are_shown_whole(joiner: str) -> None:
    text = f"an OIL{joiner}WELL\nwith  oil\x07 and\u2028more"
    for query, words in (("oilwell", [f"OIL{joiner}WELL"]), ("oil", ["oil"]), ("well", []), ("oil*", None)):
        found = find_caption({"body": text}, parse_query(query, PLAIN, Schema(["body"])), PLAIN)
        assert found.text == f"an OIL{joiner}WELL with oil and more"
        highlighted = [found.text[start:stop] for start, stop in found.hits]
        assert highlighted == ([f"OIL{joiner}WELL", "oil"] if words is None else words)
    persian = f"من می{joiner}خواهم کتاب"
    found = find_caption({"body": persian}, parse_query(f"می{joiner}خواهم", PLAIN), PLAIN)
    assert [found.text[start:stop] for start, stop in found.hits] == [f"می{joiner}خواهم"]


def test_one_line_has_single_blanks() -> None:
    """Of texts of ASCII characters, which are not cut for it, as of others."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        text = "".join(
            rng.choice(["a", "bc", " ", "  ", "\t", "\r\n", "\x1b", "\x7f", "\x1f", "-"], rng.integers(0, 12))
        )
        shown = "".join(character if character.isprintable() else " " for character in text)
        assert caption({"body": text}, "none", 100) == " ".join(shown.split())


def test_characters_of_several_bytes() -> None:
    text = "ä" * 300 + " Öl steigt"
    found = caption({"body": text}, "öl", 20)
    assert "Öl steigt" in found
    assert len(found) <= 20 + len("…  …")


def test_texts_of_objects_are_shown():
    fields = {"id": "x", "author": {"name": "Ada Lovelace", "born": 1815}, "notes": [{"text": "an engine"}]}
    assert make_caption(fields, parse_query("lovelace", PLAIN), PLAIN) == "Ada Lovelace"
    assert make_caption(fields, parse_query("engine", PLAIN), PLAIN) == "an engine"


def test_where_the_words_are() -> None:
    """Prefixes and similar words are highlighted, too."""
    index = make_index([{"body": "Crude oils: prices of crude oil fell"}])
    for query, words in (
        ("crude prices", ["Crude", "prices", "crude"]),
        ("oi*", ["oils", "oil"]),
        ("prixes~", ["prices"]),
    ):
        caption = find_caption({"body": "Crude oils: prices of crude oil fell"}, index.parse(query), PLAIN)
        assert [caption.text[start:stop] for start, stop in caption.hits] == words
    text = "word " * 100 + "crude oil " + "word " * 100
    caption = find_caption({"body": text}, index.parse("crude oil"), PLAIN, length=60)
    assert caption.text.startswith("… ")
    assert [caption.text[start:stop] for start, stop in caption.hits] == ["crude", "oil"]


def test_words_of_short_texts_are_those_of_the_rule() -> None:
    """Words are found in a text by what is around them: the same as those that the text is cut into, in every place."""
    rng = np.random.default_rng(11)
    words, between = ["oil", "Oil", "oils", "foil", "oil7", "7", "a"], [" ", "-", "_", "'", ", ", "...", " (", "/"]
    for _ in range(300):
        n_words = int(rng.integers(0, 12))
        pieces = rng.choice(words, n_words).tolist()
        seams = rng.choice(between, n_words + 1).tolist()
        text = "".join(seam + word for seam, word in zip(seams, pieces, strict=False))
        text += str(rng.choice(["", seams[-1]]))
        line = " ".join(text.split())
        query = parse_query(" ".join(rng.choice(["oil", "oils", "7", "a", "none"], 3)), PLAIN)
        expected = [
            (start, stop)
            for start, stop in PLAIN.word_spans(line.encode())
            if PLAIN.memory.term(line[start:stop].encode()) in query.terms
        ]
        assert find_caption({"body": text}, query, PLAIN, length=1000).hits == tuple(expected)


def test_what_was_prepared_serves_every_query() -> None:
    """Also prefixes, which look at all terms of a text, and texts that are not ASCII."""
    for text in ("Crude oils: prices of crude oil fell", "Crude oils: prices of crude oil fell — Öl"):
        texts = CaptionTexts({"title": "On oil", "body": text}, PLAIN)
        for query in ("crude prices", "oi*", "oi* crude", "nothing", "fell oil on"):
            parsed = parse_query(query, PLAIN)
            expected = find_caption({"title": "On oil", "body": text}, parsed, PLAIN)
            assert texts.caption(WantedTerms(parsed)) == expected
            wanted = {"crude prices": 3, "oi*": 2, "oi* crude": 4, "nothing": 0, "fell oil on": 2}[query]
            assert len(expected.hits) == wanted


def test_the_piece_has_as_many_terms_as_any() -> None:
    """Against a search of all pieces; a caption may begin before the piece, and then lack its end."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        words = rng.choice(["a", "b", "c", "x", "yy", "zzz"], rng.integers(1, 60)).tolist()
        text, length = " ".join(words), int(rng.integers(5, 40))
        starts = np.cumsum([0, *(len(word) + 1 for word in words)]).tolist()
        hits = [(start, start + 1, word.encode()) for start, word in zip(starts, words, strict=False) if word in "abc"]
        _, most = _best_piece(text, hits, length)
        pieces = [
            {term for place, stop, term in hits if first <= place and stop - first <= length} for first, *_ in hits
        ]
        assert most == max(map(len, pieces), default=0)
