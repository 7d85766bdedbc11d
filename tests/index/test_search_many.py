"""Many queries searched together find what each finds by itself."""

import numpy as np
import pytest

from rankwell.errors import ParameterError
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.search import selection, selector
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.pruning import Pruning
from rankwell.index.search.selection import search, search_many
from rankwell.index.writer import IndexWriter

QUERIES = [
    "w1",
    "",
    "w1 w2 w3",
    "absent",
    "w4 w4 absent w5",
    '"w1 w2"',
    "+w3 -w1",
    "title:w2^3 w1",
    "w1*",
    "w2 year:[3 TO 6]",
    *(f"w{number} w{number + 1} w7" for number in range(20)),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Three segments, with deleted documents, in a static order."""
    folder = tmp_path_factory.mktemp("many") / "index"
    rng = np.random.default_rng(0)
    with IndexWriter(folder, schema=Schema(static_order="year")) as writer:
        for start in (0, 300, 450):
            writer.add(
                {
                    "id": str(start + number),
                    "body": " ".join(f"w{word}" for word in rng.zipf(1.5, 30) % 30),
                    "title": " ".join(f"w{word}" for word in rng.integers(0, 30, 3)),
                    "year": int(rng.integers(0, 10)),
                }
                for number in range(300 if start == 0 else 150)
            )
            writer.commit()
        writer.delete(["3", "310", "599"])
        writer.commit()
    return Index.open(folder)


def assert_same(found, alone):
    assert len(found) == len(alone)
    for one, expected in zip(found, alone, strict=True):
        np.testing.assert_array_equal(one.docs, expected.docs)
        np.testing.assert_array_equal(one.scores, expected.scores)
        assert one.n_examined == expected.n_examined
        assert one.stopped_early == expected.stopped_early
        assert one.n_matches == expected.n_matches
        assert one.query is expected.query


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("model", [None, BM25F({"body": 1.0, "title": 2.0}), BM25(k1=0.5)])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_the_same_as_one_after_another(index, k, model, n_jobs, monkeypatch):
    monkeypatch.setattr(selection, "_LEAST_QUERIES", 1)
    queries = [index.parse(text) for text in QUERIES]
    alone = [search(index, query, k=k, model=model) for query in queries]
    assert sum(len(one) for one in alone) > len(queries) / 2
    assert_same(search_many(index, queries, k=k, model=model, n_jobs=n_jobs), alone)


@pytest.mark.parametrize("pruning", Pruning)
@pytest.mark.parametrize("match", ["any", "all"])
def test_with_every_way_of_skipping(index, pruning, match, monkeypatch):
    monkeypatch.setattr(selection, "_LEAST_QUERIES", 1)
    queries = [index.parse(text) for text in QUERIES]
    alone = [search(index, query, k=20, match=match, prune=False) for query in queries]
    monkeypatch.setattr(selector, "choose_pruning", lambda *sizes: pruning)
    assert_same(search_many(index, queries, k=20, match=match, n_jobs=2), alone)


def test_some_stop_early_and_some_have_filters(index, monkeypatch):
    monkeypatch.setattr(selection, "_LEAST_QUERIES", 1)
    filters = [None, "year:[2 TO 5]", {"year": (None, 3)}]
    queries = [index.parse(text, filter=filters[number % 3]) for number, text in enumerate(QUERIES)]
    stops = [None if number % 4 else 5 + number for number in range(len(queries))]
    alone = [search(index, query, k=7, stop_after=stop) for query, stop in zip(queries, stops, strict=True)]
    assert any(one.stopped_early for one in alone)
    assert_same(search_many(index, queries, k=7, stop_after=stops, n_jobs=2), alone)


def test_no_queries(index):
    assert search_many(index, [], k=3) == []


def test_what_one_search_refuses_is_refused(index):
    with pytest.raises(ParameterError, match="must be 'any' or 'all', got 'some'"):
        search_many(index, [index.parse("w1")], k=3, match="some")
    with pytest.raises(ParameterError, match="must be 1 or more, got 0"):
        search_many(index, [], k=0)
