"""The forward pass and the loss gradient as hardware: their integer twins' numbers, near float64's."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")

from tests.hardware.test_accelerator import random_stalls

from rankwell.errors import ParameterError
from rankwell.hardware.listnet import forward_reference as twin
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.cycles import forward_cycles, loss_cycles
from rankwell.hardware.listnet.forward import NetworkIntegers, SimulatedForwardPass, SimulatedLossGradient
from rankwell.hardware.listnet.forward_format import GRADIENT_POINT, OUTPUT_POINT
from rankwell.hardware.listnet.loss_gradient import LossConfiguration
from rankwell.kernels.lists.cpu.top_k_loss import top_k_truth
from rankwell.kernels.lists.cpu.two_places import FIRST, MEMBERSHIP
from rankwell.kernels.lists.fixed_point_format import ADAPTIVE, BATCH, DIRECT
from rankwell.kernels.lists.reference import network
from rankwell.kernels.lists.reference.top_k_loss import top_k_loss

LIMIT = 2**15


def make_network(rng, configuration, kind):
    """Weights of a trained network's size, or the largest, whose sums are beyond the sigmoid's table."""
    hidden, features = configuration.hidden, configuration.features
    if kind == "largest":
        ends = np.array([-LIMIT, LIMIT - 1])
        return NetworkIntegers(
            rng.choice(ends, (hidden, features)), rng.choice(ends, hidden), rng.choice(ends, hidden), int(ends[1])
        )
    return NetworkIntegers(
        twin.fixed_weights(rng.normal(size=(hidden, features))),
        twin.fixed_weights(rng.normal(size=hidden)),
        twin.fixed_weights(rng.normal(size=hidden)),
        int(twin.fixed_weights(rng.normal())),
    )


@pytest.mark.parametrize(
    "configuration",
    [
        ListNetConfiguration(features=7, hidden=3, unrolling=9),
        ListNetConfiguration(features=2, hidden=2, unrolling=2),
        ListNetConfiguration(features=1, hidden=2, unrolling=2),
    ],
    ids=["three beats a document", "one lane", "one beat a document"],
)
def test_the_forward_pass_is_its_twins_in_the_cycles_of_the_formula(configuration):
    simulated = SimulatedForwardPass(configuration, simulator="amaranth")
    rng = np.random.default_rng(0)
    for number, kind in enumerate(("random", "largest", "random", "random")):
        weights = make_network(rng, configuration, kind)
        n_docs = 1 if number == 2 else 9
        features = rng.integers(-LIMIT, LIMIT, (n_docs, configuration.features))
        stalls = random_stalls(rng, 3) if number == 3 else None
        hidden, scores, cycles = simulated.outputs(weights, features, stalls=stalls, check=True)
        expected = twin.forward(features, weights.weights, weights.biases, weights.output_weights, weights.output_bias)
        np.testing.assert_array_equal(hidden, expected[0])
        np.testing.assert_array_equal(scores, expected[1])
        if stalls is None and number:
            assert cycles == forward_cycles(configuration, n_docs)


def test_the_forward_pass_is_near_the_network_in_float64():
    rng = np.random.default_rng(1)
    features = rng.uniform(0, 1, (200, 46))
    weights, biases, output_weights = rng.normal(size=(15, 46)) / 3, rng.normal(size=15), rng.normal(size=15)
    exact = network.forward(
        features, [(weights, biases, "sigmoid"), (output_weights[None, :], np.array([0.25]), "sigmoid")]
    )
    _, scores = twin.forward(
        twin.fixed_features(features),
        twin.fixed_weights(weights),
        twin.fixed_weights(biases),
        twin.fixed_weights(output_weights),
        int(twin.fixed_weights(0.25)),
    )
    assert np.abs(scores / 2**OUTPUT_POINT - exact[-1][:, 0]).max() < 2e-4


def make_list(rng, n_docs, k, *, labels_differ=False):
    """Scores and the truth of a list, as whole numbers, and the labels."""
    labels = (rng.permutation(n_docs) if labels_differ else rng.integers(0, 4, n_docs)).astype(np.float64)
    truth = top_k_truth(k, labels, np.array([0, n_docs]))
    return rng.integers(0, LIMIT, n_docs), twin.fixed_truth(k, truth[FIRST], truth[MEMBERSHIP]), labels


@pytest.mark.parametrize(
    "configuration",
    [
        LossConfiguration(k=1, most_docs=32),
        LossConfiguration(k=2, most_docs=32, bits=16),
        LossConfiguration(k=2, most_docs=32, bits=31, batches=1, method=DIRECT),
        LossConfiguration(k=1, most_docs=32, bits=27, batches=1, method=ADAPTIVE),
        LossConfiguration(k=1, most_docs=32, bits=10, batches=3, method=BATCH),
        LossConfiguration(k=3, most_docs=32, bits=27, batches=1, method=ADAPTIVE),
    ],
    ids=["Top-1, batch", "Top-2, batch", "Top-2, direct", "Top-1, adaptive", "Top-1, three batches", "Top-3, adaptive"],
)
def test_the_loss_gradient_is_its_twins_in_the_cycles_of_the_formula(configuration):
    simulated = SimulatedLossGradient(configuration, simulator="amaranth")
    rng = np.random.default_rng(2)
    for number, n_docs in enumerate((5, max(2, configuration.k + 1), 32, 20)):
        scores, truth, _ = make_list(rng, n_docs, configuration.k, labels_differ=number == 2)
        if number == 1:
            scores[:] = LIMIT - 1
        stalls = random_stalls(rng, 2) if number == 3 else None
        value, batch, cycles = simulated.gradients(scores, truth, stalls=stalls, check=True)
        gradient = twin.list_gradient(configuration.k, scores, truth)
        expected = twin.scaled_gradient(gradient, configuration.bits, configuration.batches, configuration.method)
        np.testing.assert_array_equal(value, expected[0])
        np.testing.assert_array_equal(batch, expected[1])
        if stalls is None and number:
            assert cycles == loss_cycles(configuration, n_docs, truth.n_candidates)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_loss_gradient_is_near_the_definition_in_float64(k):
    rng = np.random.default_rng(3)
    for n_docs in (2, 3, 7, 12):
        scores, truth, labels = make_list(rng, n_docs, k)
        _, exact = top_k_loss(labels, scores / 2**OUTPUT_POINT, k)
        if 1 < k >= n_docs:  # the last place follows from the others: the hardware is not given such lists
            continue
        found = twin.list_gradient(k, scores, truth) / 2**GRADIENT_POINT
        assert np.abs(found - exact).max() < 5e-5


def test_the_scale_is_the_formats():
    # 3/4, −3/32 and 0 of GRADIENT_POINT bits: E_q = 0, the second is three octaves lower.
    gradient = np.array([3 << GRADIENT_POINT - 2, -(3 << GRADIENT_POINT - 5), 0])
    value, batch = twin.scaled_gradient(gradient, 8, 10, BATCH)
    assert value.tolist() == [96, -96, 0]
    assert batch.tolist()[:2] == [0, 3]


@pytest.mark.parametrize(
    ("parameters", "message"), [({"k": 4}, "3"), ({"most_docs": 100}, "power of two, got 100"), ({"bits": 40}, "31")]
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ParameterError, match=message):
        LossConfiguration(**parameters)
