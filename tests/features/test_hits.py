"""Hits: what a cell is, and which arrays are refused."""

from dataclasses import replace

import numpy as np
import pytest
from tests.features.random_hits import hits_of_documents, random_hits

from rankwell.errors import DataError


def test_a_cell_holds_the_places_of_a_term_in_a_stream():
    documents = [{"title": [7, 8]}, {"title": [8], "body": [8, -1, 7, 8]}]
    hits = hits_of_documents(documents, [[8, 7, 8]], streams=("title", "body"))
    assert hits.cell(0, 1, 0, 1).tolist() == [0, 3]
    assert hits.cell(0, 1, 1, 1).tolist() == [2]
    assert hits.cell(0, 0, 1, 1).tolist() == []
    assert hits.query_frequency.tolist() == [2, 1]
    assert hits.words.tolist() == [0, 1, 0]
    assert hits.lengths.tolist() == [2, 0, 1, 3]
    assert hits.distinct.tolist() == [2, 0, 2, 1, 2, 2]
    assert hits.doc_freq.tolist() == [2, 1, 2, 1, 1, 2]
    assert hits.occurrences.tolist() == [2, 2, 4, 1, 1, 2]
    assert hits.stream_tokens.tolist() == [3, 3, 6]


def test_a_batch_knows_its_sizes():
    hits = random_hits(1)
    assert hits.n_queries == 8
    assert hits.n_candidates == len(hits.lengths) // 4
    assert hits.n_hits == hits.cell_ptr[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positions": np.zeros(3, np.int64)}, "positions must be a flat array of int32"),
        ({"query_ptr": np.array([0, 5, 3], np.int64)}, "query_ptr must begin with 0 and not decrease"),
        ({"term_ptr": np.array([0, 2], np.int64)}, "term_ptr must have one number per query"),
        ({"streams": ("title", "whole")}, "a stream called 'whole'"),
        ({"streams": ("title", "title")}, "streams must have different names"),
        ({"cell_base": np.array([0, 1, 2], np.int64)}, "cell_base must count one cell"),
        ({"lengths": np.zeros(3, np.int32)}, "lengths must have 8 numbers, got 3"),
        ({"lengths": np.full(8, -1, np.int32)}, "lengths must not be negative"),
        ({"words": np.array([0, 1, 1], np.int32)}, "words must be numbers of the query's own terms"),
        ({"positions": np.array([1, 1, 0, 0, 0, 0, 0], np.int32)}, "positions must be 0 or more and ascend"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    documents = [{"title": [1, 1]}, {"title": [2], "body": [1, 2]}]
    hits = hits_of_documents(documents, [[1, 2], [2]], streams=("title", "body"))
    with pytest.raises(DataError, match=message):
        replace(hits, **change).check()
