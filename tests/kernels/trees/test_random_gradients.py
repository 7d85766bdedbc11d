"""Noise on scores, and xendcg."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.trees.test_lambdas import QUERY_PTR, make_queries

from rankwell.kernels.threads import kernel_threads
from rankwell.kernels.trees.cpu.random_gradients import XendcgGradients, noisy_scores
from rankwell.kernels.trees.losses import LAMBDARANK, XENDCG, RankingLoss, judged_queries
from rankwell.kernels.trees.reference.random_gradients import random_units, xendcg


@pytest.mark.parametrize("number", [0, 3])
def test_xendcg_against_the_reference(number):
    labels, scores = make_queries(number)
    gains = 2.0**labels - 1.0
    loss = RankingLoss(XENDCG, 1, 1.0, 0, seed=7)
    gradient, hessian = np.full((2, len(scores)), np.nan, np.float32)
    XendcgGradients(loss, judged_queries(loss, QUERY_PTR, gains)).fill(scores, number, gradient, hessian)
    for start, end in zip(QUERY_PTR[:-1].tolist(), QUERY_PTR[1:].tolist(), strict=True):
        units = random_units(7, number, range(start, end))
        expected = xendcg(scores[start:end], gains[start:end], units)
        for ours, theirs in zip((gradient, hessian), expected, strict=True):
            np.testing.assert_allclose(ours[start:end], theirs, rtol=2e-6, atol=1e-7)


def test_noise_is_gumbel_and_the_same_on_any_number_of_threads():
    scores = np.linspace(-1, 1, 20_000).astype(np.float32)
    loss = RankingLoss(LAMBDARANK, 30, 1.0, 1, noise=0.5, seed=3)
    noisy = noisy_scores(scores, loss, 4)
    with kernel_threads(1):
        np.testing.assert_array_equal(noisy, noisy_scores(scores, loss, 4))
    expected = scores - 0.5 * np.log(-np.log(random_units(3, 4, range(20_000))))
    np.testing.assert_allclose(noisy, expected, atol=1e-6)
    assert np.mean(noisy - scores) == pytest.approx(0.5 * np.euler_gamma, abs=0.02)
    assert not np.array_equal(noisy, noisy_scores(scores, loss, 5))
