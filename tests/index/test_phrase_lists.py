"""Posting lists of phrases."""

import numpy as np
import pytest
from tests.index.segments import build, documents_of

from rankwell.errors import DataError
from rankwell.index.schema import Schema
from rankwell.index.search import phrase_lists as module
from rankwell.index.search.phrase_lists import PhraseTerms, phrase_lists

ROWS = [
    {"id": "a", "title": "new york new york", "body": "york new york"},
    {"id": "b", "title": "york"},
    {"id": "c", "body": "in new york, new york and new jersey"},
]
NEW_YORK = PhraseTerms((b"new", b"york"), (0, 1))


@pytest.fixture
def segment():
    return build(documents_of(ROWS), Schema(["title", "body"]))


def test_documents_frequencies_and_places(segment):
    title, body = phrase_lists(segment, NEW_YORK)
    assert (title.docs.tolist(), title.frequencies.tolist(), title.starts.tolist()) == ([0], [2], [0, 2])
    assert (body.docs.tolist(), body.frequencies.tolist(), body.starts.tolist()) == ([0, 2], [1, 2], [1, 1, 3])
    assert body.counts_in(np.array([2, 1, 0])).tolist() == [2, 0, 1]
    assert body.starts_in(2).tolist() == [1, 3]
    assert body.starts_in(1).tolist() == []


def test_a_term_that_the_phrase_repeats(segment):
    twice = PhraseTerms((b"new", b"york", b"new", b"york"), (0, 1, 2, 3))
    title, body = phrase_lists(segment, twice)
    assert (title.docs.tolist(), title.starts.tolist()) == ([0], [0])
    assert (body.docs.tolist(), body.starts.tolist()) == ([2], [1])


def test_a_gap_and_a_word_that_is_absent(segment):
    _, body = phrase_lists(segment, PhraseTerms((b"new", b"new"), (0, 2)))
    assert (body.docs.tolist(), body.starts.tolist()) == ([2], [1])
    assert [len(one.docs) for one in phrase_lists(segment, PhraseTerms((b"new", b"delhi"), (0, 1)))] == [0, 0]


def test_only_the_last_lists_are_kept(segment, monkeypatch):
    first = phrase_lists(segment, NEW_YORK)
    assert phrase_lists(segment, NEW_YORK) is first
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    phrase_lists(segment, PhraseTerms((b"york", b"new"), (0, 1)))
    assert phrase_lists(segment, NEW_YORK) is not first


def test_names_of_phrases():
    assert NEW_YORK.name == b'"0:new 1:york'
    assert PhraseTerms.of_name(NEW_YORK.name) == NEW_YORK
    for name in (b"new", b'"new york', b'"0:new x:york', b'"', b'"99999999999:x'):
        with pytest.raises(DataError, match="is not the name of a phrase"):
            PhraseTerms.of_name(name)
