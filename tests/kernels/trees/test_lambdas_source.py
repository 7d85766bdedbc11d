"""The CUDA sources of pair losses and of noise on scores, compiled for the host: the same bits as the CPU's kernels."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from tests.kernels.trees.device_inputs import make_edge_queries, make_queries
from tests.kernels.trees.gradient_source import (
    assert_same_bits,
    compile_gradients,
    compile_source,
    needs_compiler,
    run_gradients,
)
from tests.kernels.trees.test_growth_source import shared_bytes, shared_copy

from rankwell.kernels.trees.cpu.lambdas import pair_gradient_source
from rankwell.kernels.trees.cpu.random_gradients import noisy_scores
from rankwell.kernels.trees.cuda import gradients
from rankwell.kernels.trees.declarations import NOISE_THREADS
from rankwell.kernels.trees.losses import LAMBDARANK, PAIR_LOSSES, RankingLoss, judged_queries

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The library for a loss, compiled once."""
    known = {}

    def library(loss):
        if loss.kind not in known:
            known[loss.kind] = compile_gradients(tmp_path_factory.mktemp("source"), loss)
        return known[loss.kind]

    return library


@pytest.mark.parametrize("name", PAIR_LOSSES)
@pytest.mark.parametrize(("normalize", "truncation", "sigma"), [(1, 30, 1.0), (0, 5, 2.0), (1, 10_000, 0.5)])
@pytest.mark.parametrize("block_documents", [gradients.BLOCK_DOCUMENTS, 64, 16])
def test_gradients_have_the_bits_of_the_cpu(compiled, monkeypatch, name, normalize, truncation, sigma, block_documents):
    # Fewer documents in a block: several blocks, and queries that are long.
    monkeypatch.setattr(gradients, "BLOCK_DOCUMENTS", block_documents)
    query_ptr, gains, scores = make_queries(seed=truncation)
    loss = RankingLoss(PAIR_LOSSES[name], truncation, sigma, normalize)
    weights = None if normalize else np.linspace(0.1, 3.0, len(scores))
    queries = judged_queries(loss, query_ptr, gains, weights)
    expected = np.full((2, len(scores)), np.nan, np.float32)
    pair_gradient_source(loss, queries)(scores, *expected)
    assert_same_bits(run_gradients(compiled(loss), loss, queries, scores), expected)


@pytest.mark.parametrize("name", PAIR_LOSSES)
def test_queries_at_the_edges_of_blocks(compiled, name):
    query_ptr, gains, scores = make_edge_queries(seed=1)
    loss = RankingLoss(PAIR_LOSSES[name], 30, 1.0, 1)
    queries = judged_queries(loss, query_ptr, gains)
    expected = np.full((2, len(scores)), np.nan, np.float32)
    pair_gradient_source(loss, queries)(scores, *expected)
    assert_same_bits(run_gradients(compiled(loss), loss, queries, scores), expected)


NOISE = """
extern "C" bool run(int n_blocks, const float* scores, int n_docs, double noise, long long seed,
                    long long tree, float* noisy) {
  return run_blocks(n_blocks, NOISE_THREADS, [=] { add_noise(scores, n_docs, noise, seed, tree, noisy); });
}
"""


def test_noisy_scores_have_the_bits_of_the_cpu(tmp_path):
    library = compile_source(tmp_path, "score_noise.cu", NOISE)
    library.run.restype = ctypes.c_bool
    for n_docs, noise, seed, tree in [
        (1, 0.3, 0, 0),
        (NOISE_THREADS, 1e-3, 3, 1),
        (NOISE_THREADS + 1, 50.0, 2**63 - 1, 999),
        (5000, 1e-42, 7, 12),
    ]:
        loss = RankingLoss(LAMBDARANK, 30, 1.0, 1, noise, seed)
        scores = np.random.default_rng(tree).normal(size=n_docs).astype(np.float32)
        scores[1::3] *= np.float32(1e-40)
        scores[2::3] = -0.0
        given, noisy = shared_copy(scores), shared_bytes(scores.nbytes)
        assert library.run(
            -(-n_docs // NOISE_THREADS),
            ctypes.c_void_p(given.ctypes.data),
            n_docs,
            ctypes.c_double(noise),
            ctypes.c_int64(seed),
            ctypes.c_int64(tree),
            ctypes.c_void_p(noisy.ctypes.data),
        )
        expected = noisy_scores(scores, loss, tree)
        assert not np.array_equal(expected, scores) or noise < 1e-40
        assert_same_bits([np.array(noisy).view(np.float32)], [expected])
