"""Documents like another one: by hand, and the same from the forward index and from the stored text."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.index.segments import random_rows

from rankwell.errors import DataError, ParameterError
from rankwell.index.query.tree import Group, Word
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.search.more_like import like_query
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter

ROWS = [
    {"id": "a", "title": "grain", "body": "ships carry grain and the grain is dry", "year": 1},
    {"id": "b", "body": "grain on ships", "year": 1},
    {"id": "c", "body": "dry weather and the wind", "year": 2},
    {"id": "d", "body": "something else and the rest", "year": 2},
]


def make_index(path, rows, forward, analysis=None, parts=1):
    with IndexWriter(path, schema=Schema(["title", "body"], forward=forward), analysis=analysis) as writer:
        for part in np.array_split(np.arange(len(rows)), parts):
            writer.add(rows[number] for number in part.tolist())
            writer.commit()
    return Index.open(path)


@pytest.mark.parametrize("forward", ["all", ()])
def test_by_hand(tmp_path, forward):
    index = make_index(tmp_path / "index", ROWS, forward, Analysis(common_words=("the", "and")))
    # carry and is are in no other document; the and and are common words.
    shares = {b"grain": 3 / 4.2, b"ships": 1 / 2.2, b"dry": 1 / 2.2}
    query = like_query(index, index.find("a"))
    assert query.terms == (b"grain", b"dry", b"ships")
    words = [Word(term, place, boost=pytest.approx(2.2 * shares[term])) for place, term in enumerate(query.terms)]
    assert query.tree == Group(optional=tuple(words))
    found = index.more_like("a")
    assert found.ids == ["b", "c"]
    idf = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    length = 5 / (22 / 4)
    assert found.scores[1] == pytest.approx(idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * length)))
    assert index.more_like("a", k=1).ids == ["b"]
    assert index.more_like("a", filter="year:2").ids == ["c"]
    assert index.more_like("a", terms=1).ids == ["b"]
    assert index.more_like("d").ids == []


@pytest.mark.parametrize("parts", [1, 3])
def test_the_same_with_and_without_a_forward_index(tmp_path, parts):
    rows = random_rows(np.random.default_rng(1), 80)
    with_it, without = (
        make_index(tmp_path / name, rows, forward, parts=parts) for name, forward in (("w", "all"), ("o", ()))
    )
    for number in range(20, 80, 7):
        one, other = with_it.more_like(f"d{number}"), without.more_like(f"d{number}")
        assert f"d{number}" not in one.ids
        assert one.ids == other.ids
        np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize("parts", [1, 3])
def test_the_document_itself_is_not_counted(tmp_path, parts):
    found = make_index(tmp_path / "index", ROWS, (), Analysis(common_words=("the", "and")), parts).more_like("a")
    assert (found.n_matches, found.count_facets(["year"])) == (2, {"year": {1: 1, 2: 1}})


def test_what_makes_no_sense_is_refused(tmp_path):
    index = make_index(tmp_path / "index", ROWS, "all")
    with pytest.raises(DataError, match="there is no document with the id 'x'"):
        index.more_like("x")
    with pytest.raises(ParameterError, match="must be from 1 to 1,024, got 0"):
        index.more_like("a", terms=0)
    with pytest.raises(ParameterError, match="must be 1 or more, got 0"):
        index.more_like("a", k=0)
