"""Every loss over one list, on the CPU, against its float64 definition: value and gradient."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.tolerances import TOLERANCES

from rankwell.kernels.lists.cpu.list_gradient import list_truth
from rankwell.kernels.lists.cpu.lists_gradient import lists_gradient
from rankwell.kernels.lists.cpu.pair_sums import PARTS, ROWS
from rankwell.kernels.lists.losses import (
    EXACT,
    LAMBDARANK,
    LISTMLE,
    POSITION_AWARE,
    RANKNET,
    STOCHASTIC,
    XENDCG,
    list_loss,
)
from rankwell.kernels.lists.reference import rival_losses
from rankwell.kernels.lists.reference.top_k_loss import enumerated_loss, prefix_loss, top_k_loss
from rankwell.kernels.trees.reference.random_gradients import random_units


def run(loss, labels, scores, seed=0):
    """The CPU kernel's loss and gradient of one list, which is the second of three."""
    labels, scores = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float32)
    n = len(labels)
    labels, scores = np.concatenate(([3.0], labels, [1.0])), np.concatenate(([0.5], scores, [2.0])).astype(np.float32)
    query_ptr = np.array([0, 1, n + 1, n + 2])
    losses, gradient = lists_gradient(loss, scores, list_truth(loss, labels, query_ptr), query_ptr, seed)
    assert losses[0] == losses[2] == gradient[0] == gradient[-1] == 0.0
    return losses[1], gradient[1:-1]


def lists(sizes):
    """Lists with what goes wrong first: ties, dominance, underflow, large labels, large gaps."""
    rng = np.random.default_rng(0)
    for n in sizes:
        yield f"graded-{n}", rng.integers(0, 3, n), rng.normal(size=n)
        yield f"equal-labels-{n}", np.ones(n), rng.normal(size=n)
        yield f"equal-scores-{n}", rng.integers(0, 5, n), np.zeros(n)
        yield f"places-{n}", rng.permutation(n), rng.normal(size=n)
        yield f"labels-to-2000-{n}", rng.uniform(0, 2000, n), rng.normal(size=n)
        yield f"gaps-of-1e4-{n}", rng.integers(0, 3, n), rng.normal(size=n) * 1e4
        yield f"both-extreme-{n}", rng.permutation(n) * (2000 / n), rng.permutation(n) * (1e4 / n)
        yield f"one-dominates-{n}", rng.integers(0, 3, n), np.where(np.arange(n) == n // 2, 40.0, 0.0)
        yield f"negative-labels-{n}", -rng.uniform(0, 3, n), rng.normal(size=n) * 5


SMALL = [pytest.param(labels, scores, id=name) for name, labels, scores in lists((2, 3, 4, 6))]
LARGER = [
    pytest.param(labels, scores, id=name)
    for name, labels, scores in lists((PARTS * ROWS - 1, PARTS * ROWS + 1, PARTS * ROWS + 2))
]


def close(actual, expected):
    np.testing.assert_allclose(actual[0], expected[0], **TOLERANCES["cpu"]["list loss"])
    np.testing.assert_allclose(actual[1], expected[1], **TOLERANCES["cpu"]["list loss"])


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize(("labels", "scores"), SMALL)
def test_collapsed_reference_is_the_sum_over_all_permutations(k, labels, scores):
    labels, scores = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    by_permutation, collapsed = enumerated_loss(labels, scores, k), top_k_loss(labels, scores, k)
    np.testing.assert_allclose(collapsed[0], by_permutation[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(collapsed[1], by_permutation[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("labels", "scores"), SMALL)
def test_exact_top_k_is_the_sum_over_all_permutations(k, labels, scores):
    scores = np.asarray(scores, dtype=np.float32)
    close(run(list_loss(EXACT, k), labels, scores), enumerated_loss(np.asarray(labels, float), scores.astype(float), k))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(("labels", "scores"), LARGER)
def test_exact_top_k_on_longer_lists(k, labels, scores):
    scores = np.asarray(scores, dtype=np.float32)
    close(run(list_loss(EXACT, k), labels, scores), top_k_loss(np.asarray(labels, float), scores.astype(float), k))


@pytest.mark.parametrize(("labels", "scores"), LARGER[:9])
def test_exact_top_three_around_a_block_edge(labels, scores):
    scores = np.asarray(scores, dtype=np.float32)
    close(run(list_loss(EXACT, 3), labels, scores), top_k_loss(np.asarray(labels, float), scores.astype(float), 3))


def test_top_one_of_two_documents_by_hand():
    # P_y = (e/(e + 1), 1/(e + 1)) and equal scores: the loss is log 2, the gradient 1/2 − P_y.
    value, gradient = run(list_loss(EXACT, 1), [1.0, 0.0], [0.3, 0.3])
    first = np.e / (np.e + 1)
    assert value == pytest.approx(np.log(2), rel=1e-7)
    np.testing.assert_allclose(gradient, [0.5 - first, 0.5 - (1 - first)], atol=1e-7)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_gradient_matches_finite_differences(k):
    rng = np.random.default_rng(3)
    labels, scores = rng.integers(0, 4, 8).astype(float), rng.normal(size=8)
    _, gradient = top_k_loss(labels, scores, k)
    for i in range(8):
        step = np.zeros(8)
        step[i] = 1e-6
        slope = (top_k_loss(labels, scores + step, k)[0] - top_k_loss(labels, scores - step, k)[0]) / 2e-6
        assert gradient[i] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("kind", [EXACT, RANKNET, LAMBDARANK, LISTMLE])
def test_order_of_documents_does_not_matter(kind):
    rng = np.random.default_rng(4)
    labels, scores, order = rng.permutation(40) / 10.0, rng.normal(size=40), rng.permutation(40)
    value, gradient = run(list_loss(kind, 3), labels, scores)
    shuffled_value, shuffled = run(list_loss(kind, 3), labels[order], scores[order])
    assert shuffled_value == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(shuffled, gradient[order], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_nothing_to_learn_where_scores_equal_labels(k):
    labels = np.array([3.0, 1.0, 0.0, 2.0, 2.0, 0.0])
    _, gradient = run(list_loss(EXACT, k), labels, labels + 100.0)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


RIVALS = {
    RANKNET: rival_losses.ranknet_loss,
    LAMBDARANK: rival_losses.lambdarank_loss,
    LISTMLE: rival_losses.listmle_loss,
}


@pytest.mark.parametrize("kind", RIVALS)
@pytest.mark.parametrize(("labels", "scores"), SMALL + LARGER[:9])
def test_rivals_against_their_definitions(kind, labels, scores):
    scores = np.asarray(scores, dtype=np.float32)
    close(run(list_loss(kind), labels, scores), RIVALS[kind](np.asarray(labels, float), scores.astype(float)))


@pytest.mark.parametrize("weighting", ["lambdaloss", "map", "mrr"])
@pytest.mark.parametrize(("labels", "scores"), SMALL + LARGER[:9])
def test_other_weights_of_pairs(weighting, labels, scores):
    scores = np.asarray(scores, dtype=np.float32)
    expected = rival_losses.lambdarank_loss(np.asarray(labels, float), scores.astype(float), weighting)
    close(run(list_loss(LAMBDARANK, weighting=weighting), labels, scores), expected)


@pytest.mark.parametrize(("labels", "scores"), SMALL + LARGER[:9])
def test_xendcg_against_its_definition(labels, scores):
    labels, scores = np.asarray(labels, float), np.asarray(scores, dtype=np.float32)
    units = random_units(0, 1, range(len(labels)))
    close(run(list_loss(XENDCG), labels, scores), rival_losses.xendcg_loss(labels, scores.astype(float), units))


def test_xendcg_draws_its_gains_by_the_seed():
    labels, scores = [2.0, 0.0, 1.0, 0.0], [0.0, 1.0, 2.0, 4.0]
    gradients = [run(list_loss(XENDCG), labels, scores, seed)[1] for seed in range(1, 2000)]
    assert len({tuple(gradient) for gradient in gradients}) == len(gradients)
    # Uniform numbers have the mean 1/2.
    share = np.exp(np.array(scores)) / np.exp(np.array(scores)).sum()
    expected = share - (2.0 ** np.array(labels) - 0.5) / (2.0 ** np.array(labels) - 0.5).sum()
    np.testing.assert_allclose(np.mean(gradients, axis=0), expected, atol=0.01)


def test_listmle_shuffles_equal_labels_by_the_seed():
    labels, scores = np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 1.0, 2.0, 4.0])
    # The first place is certain; the other three come in any of six orders, each with a loss of its own.
    orders = [(0, *rest) for rest in itertools.permutations((1, 2, 3))]
    possible = [rival_losses.listmle_loss(-np.argsort(order).astype(float), scores)[0] for order in orders]
    found = {round(run(list_loss(LISTMLE), labels, scores, seed)[0], 5) for seed in range(1, 200)}
    assert found == {round(value, 5) for value in possible}


@pytest.mark.parametrize("kind", [RANKNET, LAMBDARANK])
@pytest.mark.parametrize("labels", [[1.0, 0.0], [4.0, 0.0, 0.0, 1.0], [1.0] * 10 + [0.0] * 200], ids=len)
def test_the_pairwise_losses_are_means_over_pairs(kind, labels):
    # Equal scores: every pair has a loss of log 2, whatever its weight and however many there are.
    value, gradient = run(list_loss(kind), labels, np.zeros(len(labels)))
    assert value == pytest.approx(np.log(2), rel=1e-5)
    assert gradient[np.asarray(labels) > 0].sum() < -0.3


def test_lambdarank_of_two_pairs_by_hand():
    # Ranked as listed, gains 3, 1, 0 with discounts 1, 1/log2(3), 1/2; every pair is in the right order by 1 or 2.
    value, gradient = run(list_loss(LAMBDARANK), [2.0, 1.0, 0.0], [2.0, 1.0, 0.0])
    second = 1 / np.log2(3)
    weights = np.array([2 * (1 - second), 3 * (1 - 0.5), 1 * (second - 0.5)])
    weights /= weights.sum()
    assert value == pytest.approx(weights @ np.log1p(np.exp(-np.array([1.0, 2.0, 1.0]))), rel=1e-6)
    push = weights / (1 + np.exp(np.array([1.0, 2.0, 1.0])))
    np.testing.assert_allclose(gradient, [-push[0] - push[1], push[0] - push[2], push[1] + push[2]], rtol=1e-5)


def test_ranknet_of_one_pair_by_hand():
    # One pair in the right order by 2: log(1 + e^−2), and σ(−2) of push.
    value, gradient = run(list_loss(RANKNET), [1.0, 0.0], [2.0, 0.0])
    push = 1 / (1 + np.e**2)
    assert value == pytest.approx(np.log1p(np.exp(-2)), rel=1e-6)
    np.testing.assert_allclose(gradient, [-push, push], rtol=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize(("labels", "scores"), [case for case in SMALL if case.id.endswith("6")])
def test_position_aware_with_all_documents_is_the_exact_loss(k, labels, scores):
    scores = np.asarray(scores, dtype=np.float32)
    everything = list_loss(POSITION_AWARE, k, factors=(1.0,) * k)
    close(run(everything, labels, scores), enumerated_loss(np.asarray(labels, float), scores.astype(float), k))


@pytest.mark.parametrize("distribution", ["uniform", "fixed", "adaptive"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_stochastic_estimates_the_exact_loss(k, distribution):
    rng = np.random.default_rng(5)
    labels, scores = rng.integers(0, 3, 6).astype(float), rng.normal(size=6).astype(np.float32)
    loss = list_loss(STOCHASTIC, k, n_samples=40_000, distribution=distribution)
    value, gradient = run(loss, labels, scores)
    expected, expected_gradient = enumerated_loss(labels, scores.astype(float), k)
    assert value == pytest.approx(expected, abs=0.05)
    np.testing.assert_allclose(gradient, expected_gradient, atol=0.04)


@pytest.mark.parametrize("kind", [STOCHASTIC, POSITION_AWARE])
def test_samples_follow_from_the_seed(kind):
    rng = np.random.default_rng(6)
    labels, scores = rng.integers(0, 3, 50).astype(float), rng.normal(size=50)
    loss = list_loss(kind, 3, n_samples=20, distribution="fixed", factors=(0.5, 0.2, 0.1))
    first, again, other = run(loss, labels, scores, 1), run(loss, labels, scores, 1), run(loss, labels, scores, 2)
    assert first[1].tobytes() == again[1].tobytes()
    assert first[0] != other[0]


@pytest.mark.parametrize("kind", [STOCHASTIC, POSITION_AWARE])
def test_sampled_losses_survive_large_labels_and_gaps(kind):
    rng = np.random.default_rng(7)
    labels, scores = rng.permutation(30) * 60.0, rng.normal(size=30) * 3000
    loss = list_loss(kind, 3, n_samples=50, distribution="uniform", factors=(0.5, 0.3, 0.2))
    value, gradient = run(loss, labels, scores)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    # Each place adds a probability and takes one away.
    assert gradient.sum() == pytest.approx(0.0, abs=1e-9)


def test_prefix_loss_of_all_prefixes_is_the_exact_loss():
    labels, scores = np.array([2.0, 0.0, 1.0]), np.array([0.1, -0.4, 0.9])
    prefixes = np.array([[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]])
    e = np.exp(labels)
    weights = np.array([e[a] / e.sum() * e[b] / (e.sum() - e[a]) for a, b in prefixes])
    value, gradient = prefix_loss(scores, prefixes, weights)
    expected, expected_gradient = enumerated_loss(labels, scores, 2)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-12)
