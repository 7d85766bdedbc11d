"""Gradients of pair losses against the slow reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rankwell.kernels.threads import kernel_threads
from rankwell.kernels.trees.cpu.lambdas import LONGEST_COUNTED, pair_gradient_source
from rankwell.kernels.trees.losses import MAP, MRR, PAIR_LOSSES, XENDCG, RankingLoss, judged_queries
from rankwell.kernels.trees.reference.lambdas import query_lambdas

# Empty, single and equal queries; sizes around the lanes.
SIZES = np.array([0, 1, 2, 3, 15, 16, 17, 31, 33, 49, 40, 5, 0])
QUERY_PTR = np.concatenate(([0], np.cumsum(SIZES)))
# Of the largest. Weights of map are differences of sums in float32.
PRECISION = {**dict.fromkeys(PAIR_LOSSES, 1e-6), "map": 1e-5}


def make_queries(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores; some queries with equal labels, equal scores, or a score far below."""
    generator = np.random.default_rng(seed)
    n_docs = int(QUERY_PTR[-1])
    labels = generator.integers(0, 5, n_docs).astype(float)
    scores = (3.0 * generator.normal(size=n_docs)).astype(np.float32)
    labels[QUERY_PTR[4] : QUERY_PTR[5]] = 2.0
    scores[QUERY_PTR[9] : QUERY_PTR[10]] = 0.25
    scores[QUERY_PTR[10] : QUERY_PTR[10] + 20] = 1.0
    return labels, scores


def gradients(loss: RankingLoss, gains: np.ndarray, scores: np.ndarray, weights=None):
    fill = pair_gradient_source(loss, judged_queries(loss, QUERY_PTR, gains, weights))
    gradient, hessian = np.full((2, len(scores)), np.nan, np.float32)
    fill(scores, gradient, hessian)
    return gradient, hessian


@pytest.mark.parametrize("name", PAIR_LOSSES)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("truncation", "sigma"), [(1, 1.0), (5, 2.0), (30, 1.0), (10_000, 0.5)])
def test_against_the_reference(name, normalize, truncation, sigma):
    labels, scores = make_queries(seed=truncation)
    gains = 2.0**labels - 1.0
    found = gradients(RankingLoss(PAIR_LOSSES[name], truncation, sigma, int(normalize)), gains, scores)
    expected = np.zeros((2, len(scores)))
    for start, end in itertools.pairwise(QUERY_PTR):
        expected[:, start:end] = query_lambdas(
            name, scores[start:end], gains[start:end], truncation=truncation, sigma=sigma, normalize=normalize
        )
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=PRECISION[name] * np.abs(theirs).max())


@pytest.mark.parametrize("n_docs", [LONGEST_COUNTED - 1, LONGEST_COUNTED, LONGEST_COUNTED + 1, LONGEST_COUNTED + 105])
def test_long_queries_are_counted_or_sorted(n_docs):
    generator = np.random.default_rng(n_docs)
    # Many ties, both zeros among them.
    scores = generator.integers(-25, 25, n_docs).astype(np.float32)
    scores[::7] *= np.float32(-0.0)
    gains = generator.integers(0, 3, n_docs).astype(float)
    loss = RankingLoss(PAIR_LOSSES["lambdarank"], 10, 1.0, 1)
    gradient, hessian = np.zeros((2, n_docs), np.float32)
    pair_gradient_source(loss, judged_queries(loss, np.array([0, n_docs]), gains))(scores, gradient, hessian)
    expected = query_lambdas("lambdarank", scores, gains, truncation=10)
    for ours, theirs in zip((gradient, hessian), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-6 * np.abs(theirs).max())


def test_the_better_document_is_pulled_up():
    labels, scores = make_queries(0)
    gradient, hessian = gradients(RankingLoss(PAIR_LOSSES["lambdarank"], 30, 1.0, 1), labels, scores)
    start, end = QUERY_PTR[9], QUERY_PTR[10]
    assert gradient[start:end][labels[start:end] == 4].max() < 0
    assert gradient[start:end][labels[start:end] == 0].min() > 0
    assert (hessian >= 0).all()
    for first, last in itertools.pairwise(QUERY_PTR):
        assert abs(gradient[first:last].sum(dtype=float)) < 1e-5


def test_weights_multiply_and_threads_do_not_matter():
    labels, scores = make_queries(1)
    loss = RankingLoss(PAIR_LOSSES["lambdarank"], 30, 1.0, 1)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 2.0], len(labels))
    with kernel_threads(1):
        plain, weighted = gradients(loss, labels, scores), gradients(loss, labels, scores, weights)
    several = gradients(loss, labels, scores)
    for alone, heavier, shared in zip(plain, weighted, several, strict=True):
        np.testing.assert_array_equal(heavier, alone * weights.astype(np.float32))
        np.testing.assert_array_equal(alone, shared)


def test_a_document_far_below_keeps_finite_gradients():
    labels, scores = make_queries(2)
    scores[QUERY_PTR[6]] = -1e6
    scores[QUERY_PTR[8]] = 3e38
    for gradient in gradients(RankingLoss(PAIR_LOSSES["lambdarank"], 30, 1.0, 1), labels, scores):
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("power", [64, 127, 128, 900, -64, -140, -900])
@pytest.mark.parametrize("name", PAIR_LOSSES)
def test_gains_beyond_single_precision_give_the_same_gradients(name, power):
    """Losses do not depend on a factor of all gains of a query, and powers of two are exact."""
    labels, scores = make_queries(seed=8)
    loss = RankingLoss(PAIR_LOSSES[name], 10, 1.0, 1)
    # Queries of ordinary gains beside them.
    scale = np.repeat(np.arange(len(SIZES)) % 2 * power, SIZES)
    for ours, expected in zip(
        gradients(loss, np.ldexp(labels, scale), scores), gradients(loss, labels, scores), strict=True
    ):
        np.testing.assert_array_equal(ours, expected)
    assert np.abs(expected).max() > 0.0


def test_gains_of_ordinary_labels_are_as_they_are():
    for gains in (np.arange(int(QUERY_PTR[-1])) % 31.0, 2.0 ** (np.arange(int(QUERY_PTR[-1])) % 60) - 1.0):
        for kind in (*PAIR_LOSSES.values(), XENDCG):
            if kind not in (MAP, MRR):
                found = judged_queries(RankingLoss(kind, 10, 1.0, 1), QUERY_PTR, gains).gain
                np.testing.assert_array_equal(found, gains.astype(np.float32))
