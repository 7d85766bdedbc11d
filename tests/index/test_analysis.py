"""Analysis: text to terms, and what an index records of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwell.errors import FileFormatError, ParameterError
from rankwell.index.text.analysis import _SHORT_TEXT, Analysis, fold
from rankwell.index.text.languages import LANGUAGES
from rankwell.kernels.words.character_kinds import LONGEST_WORD
from rankwell.kernels.words.reference import find_words


def test_terms_have_the_number_of_words_before_them():
    assert Analysis().cut("The cat, the DOG") == [(b"the", 0), (b"cat", 1), (b"the", 2), (b"dog", 3)]


def test_stop_words_leave_a_gap():
    assert Analysis(stop_words="english").cut("The cat and the dog") == [(b"cat", 1), (b"dog", 4)]
    assert Analysis(stop_words=["CAT"]).cut("The cat and") == [(b"the", 0), (b"and", 2)]


def test_stems():
    pytest.importorskip("Stemmer")
    assert Analysis("english").cut("Searching searches") == [(b"search", 0), (b"search", 1)]
    assert Analysis("german").cut("Häuser") == Analysis("german").cut("Haus")


def test_stop_words_are_left_out_before_stemming():
    pytest.importorskip("Stemmer")
    assert Analysis("english", stop_words=["being"]).cut("being beings") == [(b"be", 1)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("STRASSE", "straße"),
        ("cafe\u0301", "CAFÉ"),
        ("ＡＢＣ１", "abc1"),
        ("ﬁnd", "FIND"),
        ("co\u00adoperate", "cooperate"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ｶﾞ", "ガ"),
    ],
)
def test_words_that_fold_to_the_same_term(one, other):
    assert Analysis().cut(one) == Analysis().cut(other)


def test_words_that_stay_apart():
    assert Analysis().cut("resume") != Analysis().cut("résumé")


@given(st.text(max_size=20))
def test_lower_case_of_ascii_does_not_matter_to_folding(word):
    """The kernel's table knows words by their bytes with ASCII in lower case."""
    lowered = word.encode("utf-8", "replace").lower().decode()
    assert fold(lowered) == fold(word.encode("utf-8", "replace").decode())


@given(st.text(max_size=60))
def test_cut_is_words_folded(text):
    words = find_words(text.encode("utf-8", "replace").decode())
    assert Analysis().cut(text) == [(fold(word).encode(), position) for position, word in enumerate(words)]


def test_words_that_are_too_long_leave_a_gap():
    text = f"a {'x' * LONGEST_WORD} {'y' * (LONGEST_WORD + 1)} b"
    assert Analysis().cut(text) == [(b"a", 0), (b"x" * LONGEST_WORD, 1), (b"b", 3)]


@pytest.mark.parametrize("text", ["", " ", "\x00\x01", "\ud800", "…—!"])
def test_text_without_words(text):
    assert Analysis().cut(text) == []


def test_recorded_and_read_again():
    analysis = Analysis(stop_words="english")
    recorded = json.loads(json.dumps(analysis.to_json()))
    assert Analysis.from_json(recorded) == analysis
    assert recorded["stop_words"][:3] == ["a", "an", "and"]


def test_the_analysis_of_a_language():
    pytest.importorskip("Stemmer")
    english = Analysis.of_language("en")
    assert english == Analysis.of_language("English")
    assert english.cut("The cats") == [(b"the", 0), (b"cat", 1)]  # a common word is indexed
    assert {b"the", b"of", b"be"} <= english.common_terms
    assert Analysis.from_json(json.loads(json.dumps(english.to_json()))) == english
    assert Analysis.of_language("none") == Analysis.of_language(None) == Analysis()
    assert Analysis.of_language("th").stemmer is None
    with pytest.raises(ParameterError, match=r"language must be one of ar, .* or none, got 'klingon'"):
        Analysis.of_language("klingon")


def test_every_language_has_its_stemmer_and_no_other_is_there():
    Stemmer = pytest.importorskip("Stemmer")
    known = {language.stemmer for language in LANGUAGES.values() if language.stemmer}
    assert set(Stemmer.algorithms()) - known <= {"porter", "dutch_porter", "lovins", "german2", "kraaij_pohlmann"}
    for language in LANGUAGES.values():
        if language.stemmer is None or language.stemmer in Stemmer.algorithms():
            assert Analysis.of_language(language.code).language == language.code


def test_an_analysis_recorded_by_an_older_release():
    recorded = {"words": "unicode-1", "unicode": "14.0.0", "stemmer": None, "stop_words": ["the"]}
    analysis = Analysis.from_json(recorded)
    assert analysis.cut("the 日本語 ภาษา") == [
        (word.encode(), place) for place, word in enumerate(["日", "本", "語", "ภาษา"], start=1)
    ]
    assert analysis.to_json()["words"] == "unicode-1"
    assert analysis != Analysis(stop_words=["the"])
    assert Analysis().cut("日本語") == [("日本".encode(), 0), ("本語".encode(), 1)]


def test_a_rule_this_release_does_not_know():
    with pytest.raises(FileFormatError, match=r"rule 'unicode-9'.*build it again"):
        Analysis.from_json({**Analysis().to_json(), "words": "unicode-9"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_words": "klingon"}, "stop_words must be one of 'english'.*got 'klingon'"),
        ({"stop_words": [1]}, "stop_words must be words, got 1"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ParameterError, match=message):
        Analysis(**options)


def test_an_unknown_stemmer():
    pytest.importorskip("Stemmer")
    with pytest.raises(ParameterError, match=r"stemmer must be one of arabic, .*got 'klingon'"):
        Analysis("klingon")


@pytest.mark.parametrize(
    "text", ["", "a", "-a-", "Open a ZIP file", "x_y1 2.5e-3\tc++\x00d\x7fe", "".join(map(chr, range(128)))]
)
def test_short_texts_are_cut_as_long_ones(text):
    """A short text of ASCII characters takes another way than the kernel; a long one does not."""
    padding = " " * _SHORT_TEXT
    analysis = Analysis()
    assert analysis.cut(text) == analysis.cut(text + padding)
    assert [term for term, _ in analysis.cut(text)] == [fold(word).encode() for word in find_words(text)]
