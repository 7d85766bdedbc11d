"""Hits from an index are those of the documents it was built from."""

import numpy as np
import pytest
from tests.features.random_hits import FIVE_STREAMS, hits_of_documents, random_documents
from tests.features.small_index import index_of, text_of

from rankwell.errors import DataError
from rankwell.features.hit_reading import collect_hits
from rankwell.features.hits import Hits
from rankwell.index.query.query import parse_query

QUERIES = [[1, 2, 3], [4], [], [5, 5, -1, 1], [99, 2], [1, 2, 1]]


def parsed(index, queries):
    return [parse_query(text_of(words), index.analysis) for words in queries]


def assert_same(found: Hits, expected: Hits) -> None:
    assert (found.streams, found.static_names, found.n_docs) == (
        expected.streams,
        expected.static_names,
        expected.n_docs,
    )
    for name, array in expected.arrays().items():
        np.testing.assert_array_equal(getattr(found, name), array, err_msg=name)
        assert getattr(found, name).dtype == array.dtype, name


@pytest.mark.parametrize("streams", [FIVE_STREAMS, ("body",)])
@pytest.mark.parametrize(("n_docs", "cuts"), [(1, ()), (40, ()), (40, (7, 8, 30)), (300, ())])
def test_equal_to_the_documents(streams, n_docs, cuts):
    rng = np.random.default_rng(n_docs)
    documents = random_documents(rng, n_docs, streams=streams)
    statics = {"age": [float(number) if number % 3 else float("nan") for number in range(n_docs)]}
    candidates = [rng.permutation(n_docs)[: rng.integers(0, n_docs + 1)].tolist() for _ in QUERIES]
    index = index_of(documents, streams=streams, statics=statics, cuts=cuts)
    found = collect_hits(index, parsed(index, QUERIES), [np.array(docs, np.int64) for docs in candidates])
    expected = hits_of_documents(documents, QUERIES, streams=streams, candidates=candidates, statics=statics)
    assert_same(found.check(), expected)


def test_many_documents_and_wide_values():
    """More than two blocks a list, positions and frequencies beyond a byte."""
    rng = np.random.default_rng(5)
    documents = random_documents(rng, 1000, streams=("body", "title"), vocabulary=6, longest=8)
    for number in (3, 500, 999):
        documents[number] = {"body": np.where(np.arange(70_000) % 100 == 0, 1, 2), "title": np.array([2])}
    index = index_of(documents, streams=("body", "title"), cuts=(600,))
    queries, candidates = [[1, 2], [3]], [[*range(0, 1000, 7), 3, 500, 999], [999, 0, 128, 127]]
    found = collect_hits(index, parsed(index, queries), [np.array(docs) for docs in candidates])
    expected = hits_of_documents(documents, queries, streams=("body", "title"), candidates=candidates)
    assert_same(found.check(), expected)


def test_deleted_documents_do_not_count():
    rng = np.random.default_rng(2)
    documents = random_documents(rng, 30)
    deleted = [0, 4, 5, 21, 29]
    left = [number for number in range(30) if number not in deleted]
    index = index_of(documents, streams=FIVE_STREAMS, cuts=(12,), deleted=deleted)
    found = collect_hits(index, parsed(index, QUERIES), [np.array(left)] * len(QUERIES))
    expected = hits_of_documents([documents[number] for number in left], QUERIES)
    assert_same(found, expected)


def test_streams_that_a_segment_does_not_know_are_empty():
    documents = [{"title": np.array([1, 2])}, {"title": np.array([1]), "body": np.array([2, 1])}]
    index = index_of(documents, streams=("title",), cuts=(1,))
    assert index.schema.streams == ["title", "body"]
    found = collect_hits(index, parsed(index, [[1, 2]]), [np.array([1, 0])])
    expected = hits_of_documents(documents, [[1, 2]], streams=("title", "body"), candidates=[[1, 0]])
    assert_same(found, expected)


def test_the_same_on_any_number_of_threads():
    documents = random_documents(np.random.default_rng(9), 100)
    index = index_of(documents, streams=FIVE_STREAMS)
    queries = parsed(index, QUERIES)
    docs = [np.arange(100)] * len(QUERIES)
    assert_same(collect_hits(index, queries, docs, n_jobs=1), collect_hits(index, queries, docs, n_jobs=2))


def test_what_cannot_be_collected_is_refused():
    index = index_of([{"title": np.array([1])}], streams=("title",))
    queries = parsed(index, [[1]])
    with pytest.raises(DataError, match="candidates must be documents 0 to 0, got 5"):
        collect_hits(index, queries, [np.array([5])])
    with pytest.raises(DataError, match="1 queries, 2 lists"):
        collect_hits(index, queries, [np.array([0])] * 2)
    empty = index_of([], streams=())
    with pytest.raises(DataError, match="no streams"):
        collect_hits(empty, queries, [np.array([], np.int64)])
