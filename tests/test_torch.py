"""The PyTorch losses against the float64 definitions, and in a user's own network."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from tests.tolerances import TOLERANCES

from rankwell.errors import DataError, ParameterError
from rankwell.kernels.lists.reference import rival_losses
from rankwell.kernels.lists.reference.top_k_loss import top_k_loss

if importlib.util.find_spec("torch") is None:
    pytest.skip("PyTorch is not installed (the extra `torch`)", allow_module_level=True)

import torch

from rankwell.kernels.trees.reference.random_gradients import random_units
from rankwell.torch import lambdarank_loss, listmle_loss, listnet_loss, ranknet_loss, xendcg_loss

GROUP = np.array([4, 0, 1, 7, 2])
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, GROUP.sum()).astype(float)
SCORES = RNG.normal(size=GROUP.sum()).astype(np.float32)

CASES = [
    pytest.param(
        lambda s, y, g, **more: listnet_loss(s, y, g, k=1, **more), lambda y, s: top_k_loss(y, s, 1), id="top1"
    ),
    pytest.param(
        lambda s, y, g, **more: listnet_loss(s, y, g, k=2, **more), lambda y, s: top_k_loss(y, s, 2), id="top2"
    ),
    pytest.param(
        lambda s, y, g, **more: listnet_loss(s, y, g, k=3, **more), lambda y, s: top_k_loss(y, s, 3), id="top3"
    ),
    pytest.param(ranknet_loss, rival_losses.ranknet_loss, id="ranknet"),
    pytest.param(lambdarank_loss, rival_losses.lambdarank_loss, id="lambdarank"),
    pytest.param(
        lambda s, y, g, **more: lambdarank_loss(s, y, g, weighting="map", **more),
        lambda y, s: rival_losses.lambdarank_loss(y, s, "map"),
        id="map",
    ),
    pytest.param(listmle_loss, rival_losses.listmle_loss, id="listmle"),
    pytest.param(
        xendcg_loss, lambda y, s: rival_losses.xendcg_loss(y, s, random_units(0, 1, range(len(y)))), id="xendcg"
    ),
]


def reference(definition):
    """Losses by query and the gradient of their sum."""
    losses, gradients, start = [], [], 0
    for size in GROUP:
        rows = slice(start, start + size)
        value, gradient = definition(LABELS[rows], SCORES[rows].astype(float)) if size else (0.0, np.zeros(0))
        losses.append(value)
        gradients.append(gradient)
        start += size
    return np.array(losses), np.concatenate(gradients)


@pytest.mark.parametrize(("loss", "definition"), CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_and_gradient(loss, definition, dtype):
    expected, expected_gradient = reference(definition)
    scores = torch.tensor(SCORES, dtype=dtype, requires_grad=True)
    losses = loss(scores, torch.from_numpy(LABELS), torch.from_numpy(GROUP), reduction="none")
    np.testing.assert_allclose(losses.detach(), expected, **TOLERANCES["cpu"]["torch loss"])
    losses.sum().backward()
    assert scores.grad.dtype == dtype
    np.testing.assert_allclose(scores.grad, expected_gradient, **TOLERANCES["cpu"]["torch gradient"])


def test_each_query_weighs_what_its_outgoing_gradient_says():
    _, gradient = reference(lambda y, s: top_k_loss(y, s, 2))
    scores = torch.tensor(SCORES, requires_grad=True)
    weights = torch.tensor([2.0, 0.0, 1.0, 0.5, 3.0])
    (listnet_loss(scores, LABELS, GROUP, k=2, reduction="none") * weights).sum().backward()
    expected = gradient * np.repeat(weights.numpy(), GROUP)
    np.testing.assert_allclose(scores.grad, expected, **TOLERANCES["cpu"]["torch gradient"])


def test_reductions():
    scores = torch.tensor(SCORES)
    losses = listnet_loss(scores, LABELS, GROUP, reduction="none")
    assert listnet_loss(scores, LABELS, GROUP, reduction="sum") == pytest.approx(float(losses.sum()))
    assert listnet_loss(scores, LABELS, GROUP) == pytest.approx(float(losses.sum()) / 5)


def test_sampled_losses_follow_from_their_seed():
    scores = torch.tensor(SCORES)
    more = {"k": 4, "sampling": "stochastic", "sample_size": 5, "sample_distribution": "uniform"}
    first = listnet_loss(scores, LABELS, GROUP, seed=1, **more)
    assert first == listnet_loss(scores, LABELS, GROUP, seed=1, **more)
    assert first != listnet_loss(scores, LABELS, GROUP, seed=2, **more)
    aware = listnet_loss(scores, LABELS, GROUP, k=2, sampling="position-aware", sample_factors=(1.0, 1.0))
    assert aware == pytest.approx(float(listnet_loss(scores, LABELS, GROUP, k=2)), rel=1e-5)


def test_a_network_of_ones_own_learns():
    torch.manual_seed(0)
    features = torch.randn(200, 3)
    labels, group = (features[:, 0] > 0).float(), torch.full((20,), 10)
    network = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    values = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = listnet_loss(network(features).squeeze(-1), labels, group, k=3)
        loss.backward()
        optimizer.step()
        values.append(float(loss.detach()))
    weights = network.weight.detach().numpy()[0]
    assert values[-1] < values[0]
    assert weights[0] > 5 * np.abs(weights[1:]).max()


def test_mistakes_are_named():
    scores = torch.tensor(SCORES)
    with pytest.raises(DataError, match="labels must have one number per score"):
        listnet_loss(scores, LABELS[:-1], GROUP)
    with pytest.raises(DataError, match="scores must be a floating tensor of one dimension"):
        ranknet_loss(scores[None, :], LABELS, GROUP)
    with pytest.raises(DataError):
        listmle_loss(scores, LABELS, GROUP[:-1])
    with pytest.raises(ParameterError, match="k from 1 to 3"):
        listnet_loss(scores, LABELS, GROUP, k=5)
    with pytest.raises(ParameterError, match="reduction must be"):
        lambdarank_loss(scores, LABELS, GROUP, reduction="max")
