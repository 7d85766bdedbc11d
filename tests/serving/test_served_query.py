"""Queries as they are served mean what they mean in a search of the index."""

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

from tests.serving.test_shards_as_one_index import QUERIES, documents_of, index_of

from rankwell.errors import QueryError
from rankwell.index.text.synonyms import Synonyms
from rankwell.serving.served_query import parse_served

SYNONYMS = Synonyms.of(["w1, w4, w2 w3", "w7 w8 => w9", "w5 => w6"])
MORE = [
    "w1 w2 (w3 w4)",
    "w1 -(w2 w3)",
    "w1 OR (w2 w3)",
    "w1 NOT w2 w3",
    "+w1 w2",
    "w1 kind:k1",
    "w7 w8 w1",
    "year:>3 kind:k1",
]


@pytest.fixture(scope="module")
def index():
    return index_of(documents_of(7, 60), 2, {"d3", "d9"}, forward=())


@pytest.mark.parametrize("match", ["any", "all"])
@pytest.mark.parametrize("typos", [False, True])
@pytest.mark.parametrize("synonyms", [None, SYNONYMS])
def test_a_query_finds_what_a_search_of_the_index_finds(index, match, typos, synonyms):
    settings = {"typos": typos, "synonyms": synonyms, "filter": "visits:>1"}
    for text in (*QUERIES, *MORE):
        expected = index.search(text, k=60, match=match, **settings)
        found = index.search(parse_served(index, text, match=match, **settings), k=60)
        assert (found.ids, found.n_matches) == (expected.ids, expected.n_matches), text
        np.testing.assert_array_equal(found.scores, expected.scores, err_msg=text)
        assert found.query.terms == expected.query.terms


def test_all_words_are_fewer_documents_than_any(index):
    n_any, n_all = (index.search(parse_served(index, "w1 w2", match=match)).n_matches for match in ("any", "all"))
    assert 0 < n_all < n_any


def test_a_mistake_in_a_filter_names_the_filter(index):
    with pytest.raises(QueryError, match="the filter cannot be read, column 1: '\\(' is not closed") as told:
        parse_served(index, "w1", filter="(year")
    assert told.value.parameter == "filter"
    with pytest.raises(QueryError, match="the query cannot be read") as told:
        parse_served(index, "(w1", filter="year:>1")
    assert told.value.parameter is None
