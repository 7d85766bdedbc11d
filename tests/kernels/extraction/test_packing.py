"""Hits packed for a device: parts of a batch give the block of the whole batch, byte for byte."""

import numpy as np
import pytest
from tests.features.random_hits import (
    hits_of_documents,
    join_hits,
    phrase_hits,
    random_documents,
    random_hits,
    scattered_hits,
)
from tests.kernels.extraction.packed_hits import expected_block, packed_parts

from rankwell.errors import DataError
from rankwell.kernels.extraction.cpu import packing as copies
from rankwell.kernels.extraction.cuda.packing import join_queries, pack
from rankwell.kernels.threads import kernel_threads


def long_queries(n_docs, statics=None):
    """Queries of more terms than a thread of a device keeps by itself, one word, none."""
    rng = np.random.default_rng(n_docs)
    documents = random_documents(rng, n_docs, longest=200, vocabulary=40)
    queries = [rng.integers(0, 50, 30).tolist(), list(range(70)), [1], []]
    return hits_of_documents(documents, queries, statics=statics)


def no_candidates(n_queries):
    return hits_of_documents([{"body": [1, 2]}], [[1]] * n_queries, candidates=[[]] * n_queries)


def one_candidate(words):
    return hits_of_documents([{"body": [1, 2, 1], "title": [2]}], [words])


def without_words():
    """No query at all."""
    return hits_of_documents([], [])


BATCHES = {
    "awkward queries, with statics": [random_hits(seed, n_docs=9 * seed) for seed in range(5)],
    "terms that share places": [scattered_hits(seed) for seed in range(3)],
    "phrases": [phrase_hits(seed) for seed in range(3)],
    "many terms": [long_queries(3), long_queries(1), long_queries(6)],
    "one candidate each": [one_candidate(words) for words in ([1], [], [1, 2, 9], [2, 2])],
    "no candidates, first": [no_candidates(2), one_candidate([1]), one_candidate([2])],
    "no candidates, in the middle": [one_candidate([1]), no_candidates(1), without_words(), one_candidate([2])],
    "no candidates, last": [one_candidate([1]), no_candidates(3)],
    "no candidates at all": [no_candidates(1), no_candidates(2)],
    "no queries at all": [without_words(), without_words()],
}


@pytest.mark.parametrize("name", BATCHES)
def test_one_part_is_the_arrays_one_after_another(name):
    for hits in BATCHES[name]:
        assert packed_parts([hits]).tobytes() == expected_block(hits)


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize(("n_threads", "least"), [(1, 2**19), (2, 1), (2, 7), (2, 64)])
def test_parts_are_packed_as_the_whole_batch(name, n_threads, least, monkeypatch):
    parts = BATCHES[name]
    monkeypatch.setattr(copies, "_LEAST_NUMBERS", least)
    with kernel_threads(n_threads):
        packed = packed_parts(parts)
    assert packed.tobytes() == expected_block(join_hits(parts))


@pytest.mark.parametrize("step", [1, 2, 3, 64, 1000])
def test_copies_that_are_cut_anywhere(step):
    """Ranges of numbers end within arrays, at their ends, and in arrays of nothing."""
    rng = np.random.default_rng(step)
    wide, narrow = rng.integers(0, 2**31, 65), rng.integers(0, 2**32, 129, dtype=np.uint32)
    table = np.zeros((4, copies.N_COLUMNS), np.int64)
    table[0] = wide.ctypes.data, 65, 130, 2**31, 8
    table[1] = narrow.ctypes.data, 0, 0, 0, 4
    table[2] = narrow.ctypes.data, 129, 0, 0, 4
    table[3] = wide.ctypes.data + 8, 1, 200, -5, 8
    out = np.full(203, 7, np.uint32)
    for first in range(0, 195, step):
        copies.copy_numbers(first, min(first + step, 195), table, out)
    np.testing.assert_array_equal(out[:129], narrow)
    np.testing.assert_array_equal(out[130:195], wide + 2**31)
    assert out[200] == wide[1] - 5
    assert (out[[129, *range(195, 200), 201, 202]] == 7).all()


def test_numbers_of_other_types_are_converted():
    hits = random_hits(3)
    arrays = hits.for_kernels()
    other = arrays._replace(
        lengths=arrays.lengths.astype(np.int64), statics=np.repeat(arrays.statics, 2)[::2], words=arrays.words.tolist()
    )
    queries = join_queries([other])
    packed = pack([other], queries, [], lambda n_bytes: np.full(n_bytes, 0xAB, np.uint8))
    expected = pack([arrays], join_queries([arrays]), [], lambda n_bytes: np.full(n_bytes, 0xAB, np.uint8))
    assert packed.tobytes() == expected.tobytes()


def test_a_batch_too_large_for_a_device_is_refused():
    arrays = random_hits(1).for_kernels()._replace(query_ptr=np.array([0, 2**20 + 1]))
    with pytest.raises(DataError, match="may have 1048576 candidates and 4294967295 hits, got 1048577 and"):
        pack([arrays], join_queries([arrays]), [], lambda n_bytes: np.empty(n_bytes, np.uint8))


def test_too_many_candidates_in_all_parts_together_are_refused():
    arrays = random_hits(1).for_kernels()._replace(query_ptr=np.array([0, 2**19 + 1]))
    parts = [arrays, arrays]
    with pytest.raises(DataError, match="got 1048578 and"):
        pack(parts, join_queries(parts), [], lambda n_bytes: np.empty(n_bytes, np.uint8))
