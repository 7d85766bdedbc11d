"""The CUDA source of xendcg, compiled for the host: the same bits as the CPU's kernel."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.trees.device_inputs import make_edge_queries, make_queries
from tests.kernels.trees.gradient_source import assert_same_bits, compile_gradients, needs_compiler, run_gradients

from rankwell.kernels.trees.cpu.random_gradients import XendcgGradients
from rankwell.kernels.trees.cuda import gradients
from rankwell.kernels.trees.declarations import BLOCK_DOCUMENTS
from rankwell.kernels.trees.losses import XENDCG, RankingLoss, judged_queries

pytestmark = needs_compiler
LOSS = RankingLoss(XENDCG, 1, 1.0, 0)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_gradients(tmp_path_factory.mktemp("source"), LOSS)


def assert_bits_of_the_cpu(library, loss, queries, scores, tree):
    expected = np.full((2, len(scores)), np.nan, np.float32)
    XendcgGradients(loss, queries).fill(scores, tree, *expected)
    assert np.isfinite(expected).all()
    assert_same_bits(run_gradients(library, loss, queries, scores, tree), expected)
    return expected


@pytest.mark.parametrize("block_documents", [BLOCK_DOCUMENTS, 64, 16])
@pytest.mark.parametrize(("seed", "tree"), [(0, 0), (7, 3), (2**63 - 1, 1_000_000)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_gradients_have_the_bits_of_the_cpu(library, monkeypatch, block_documents, seed, tree, is_weighted):
    # Fewer documents in a block: several blocks, and queries that are long.
    monkeypatch.setattr(gradients, "BLOCK_DOCUMENTS", block_documents)
    query_ptr, gains, scores = make_queries(seed=tree)
    loss = LOSS._replace(seed=seed)
    weights = np.linspace(0.0, 3.0, len(scores)) if is_weighted else None
    queries = judged_queries(loss, query_ptr, gains, weights)
    gradient, hessian = assert_bits_of_the_cpu(library, loss, queries, scores, tree)
    assert np.count_nonzero(gradient) > 100
    has_pairs = np.repeat(queries.inverse > 0.0, np.diff(query_ptr))
    assert not gradient[~has_pairs].any()
    assert not hessian[~has_pairs].any()


@pytest.mark.parametrize("number", range(3))
def test_queries_at_the_edges_of_blocks(library, number):
    query_ptr, gains, scores = make_edge_queries(number)
    queries = judged_queries(LOSS, query_ptr, gains)
    assert_bits_of_the_cpu(library, LOSS._replace(seed=number), queries, scores, number)


def test_scores_far_apart(library):
    """Shares that are 1, 0 and too small for float32, and exponentials at the end of what float64 has."""
    scores = np.array([0, -745.2, -745.1, -708.0, -104.0, -90.0, -1e4, -3e38, 0, -36.0, -37.5, -1e-40, 3e38, -3e38])
    query_ptr = np.array([0, 8, 12, 14])
    gains = np.array([1, 0, 3, 1, 0, 7, 0, 15, 0, 1, 3, 0, 0, 1.0])
    queries = judged_queries(LOSS, query_ptr, gains)
    gradient, hessian = assert_bits_of_the_cpu(library, LOSS, queries, scores.astype(np.float32), 0)
    assert gradient[12] != 0.0
    assert hessian[12] == 0.0
    assert 0.0 < hessian[hessian > 0.0].min() < np.finfo(np.float32).tiny
