"""Candidates of a batch: their order, what is known of them, and where the hits of their cells begin."""

import itertools

import numpy as np
import pytest

from rankwell.kernels.extraction.cpu import candidates, hits
from rankwell.kernels.extraction.cpu.candidates import (
    CandidateColumns,
    DocumentColumns,
    order_candidates,
    read_documents,
)
from rankwell.kernels.extraction.cpu.hits import cell_offsets, cells_for_now
from rankwell.kernels.threads import kernel_threads


@pytest.mark.parametrize("most", [1, 2, 255, 256, 257, 65_536, 2**31, 2**40])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_order_is_that_of_a_stable_sort(most, n_threads, monkeypatch):
    monkeypatch.setattr(candidates, "_LEAST_ORDERED", 1)
    rng = np.random.default_rng(most)
    query_ptr = np.array([0, 0, 1, 3, 300, 300, 1300])
    docs = rng.integers(0, most, 1300)
    docs[3:20] = docs[3]
    with kernel_threads(n_threads):
        order = order_candidates(query_ptr, docs)
    for start, stop in itertools.pairwise(query_ptr):
        np.testing.assert_array_equal(order[start:stop], start + np.argsort(docs[start:stop], kind="stable"))


@pytest.mark.parametrize("query_ptr", [[0], [0, 0], [0, 0, 0]])
def test_order_of_no_candidates(query_ptr):
    assert order_candidates(np.array(query_ptr), np.empty(0, np.int64)).shape == (0,)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_documents_without_some_streams_and_statics(n_threads, monkeypatch):
    """A segment that is older than two streams and a static."""
    monkeypatch.setattr(candidates, "_LEAST_READ", 3)
    rng = np.random.default_rng(0)
    lengths, distinct = rng.integers(0, 99, (2, 7, 3)).astype(np.int32)
    statics = rng.normal(size=(7, 1))
    rows, docs = rng.permutation(12)[:10], rng.integers(0, 7, 10).astype(np.int32)
    found = CandidateColumns(
        np.full((12, 4), -1, np.int32), np.full((12, 5), -1, np.int32), np.full((12, 2), -1.0, np.float32)
    )
    segment = DocumentColumns(lengths.ravel(), distinct.ravel(), statics.ravel(), n_streams=2, n_lists=3, n_statics=1)
    with kernel_threads(n_threads):
        read_documents(segment, rows, docs, found)
    for row, doc in zip(rows, docs, strict=True):
        assert found.lengths[row].tolist() == [*lengths[doc, :2], 0, 0]
        assert found.distinct[row].tolist() == [*distinct[doc, :2], 0, 0, distinct[doc, 2]]
        assert found.statics[row, 0] == np.float32(statics[doc, 0])
        assert np.isnan(found.statics[row, 1])
    others = np.setdiff1d(np.arange(12), rows)
    assert (found.lengths[others] == -1).all()
    assert (found.distinct[others] == -1).all()
    assert (found.statics[others] == -1).all()


@pytest.mark.parametrize("n_cells", [0, 1, 2, 1000, 2**16 - 1, 2**16, 2**16 + 1, 5 * 2**16 + 3])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_offsets_of_many_cells(n_cells, n_threads, monkeypatch):
    monkeypatch.setattr(hits, "_LEAST_BLOCKS", 1)
    frequency = np.random.default_rng(n_cells).integers(0, 5, n_cells).astype(np.int32)
    expected = np.concatenate(([0], np.cumsum(frequency, dtype=np.int64)))
    with kernel_threads(n_threads):
        np.testing.assert_array_equal(cell_offsets(frequency), expected)


def test_memory_that_is_used_again_has_no_hits():
    cells = cells_for_now(5)
    cells.frequency[:] = 3
    again = cells_for_now(4)
    assert np.shares_memory(cells.frequency, again.frequency)
    assert again.frequency.tolist() == [0, 0, 0, 0]
    assert [len(array) for array in again] == [4, 4, 4]
    large = cells_for_now(hits._MOST_KEPT + 1)
    assert not np.shares_memory(large.frequency, cells_for_now(hits._MOST_KEPT).frequency)
    assert (large.frequency == 0).all()
