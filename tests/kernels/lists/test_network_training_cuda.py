"""The CUDA trainer's other paths, without clusters, with wide inputs, with little shared memory, give the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.lists.test_network_training import descend, make_problem

from rankwell.kernels.device import load
from rankwell.kernels.device_report import report_device
from rankwell.kernels.lists.contract import NETWORK_TRAINING
from rankwell.kernels.lists.network_shape import unpack_layers
from rankwell.solvers.first_order import FirstOrder

CUDA = report_device("cuda")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not CUDA.usable, reason=CUDA.description)]
# An empty query, one document, two, sizes around a warp, a tile and a block of threads.
SIZES = [5, 0, 1, 2, 33, 64, 65, 130, 600]
# Of shared memory: what a block of the smallest devices has, and room for almost nothing of a problem.
SMALL, LITTLE = 65_536, 16_000


def trained(problem, state, n_epochs=2, **options):
    """Parameters, optimiser's memory, losses and scores after some epochs."""
    from rankwell.kernels.lists.cuda.trainer import CudaNetworkTrainer

    trainer, moved = CudaNetworkTrainer(problem, **options), state.copy()
    order = np.random.default_rng(2).permutation(len(problem.query_ptr) - 1)
    losses = [trainer.run_epoch(moved, order, 0.05, 1, None) for _ in range(n_epochs)]
    return moved.parameters, moved.first, moved.second, np.array(losses), trainer.scores(moved, problem.features)


def assert_same_bits(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.skipif(CUDA.capability < 90, reason="this device has no clusters to compare with")
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("optimizer", [FirstOrder(momentum=0.9), FirstOrder("adam")], ids=["momentum", "adam"])
def test_blocks_that_meet_at_a_counter_do_what_a_cluster_does(k, optimizer):
    problem, state = make_problem(SIZES, (15,), "sigmoid", "sigmoid", k=k, optimizer=optimizer)
    assert_same_bits(trained(problem, state, clusters=False), trained(problem, state, clusters=True))


def test_many_epochs_without_clusters_end():
    problem, state = make_problem([20] * 200, (15,), "sigmoid", "sigmoid", k=3)
    parameters, *_, losses, _ = trained(problem, state, n_epochs=50, clusters=False)
    assert np.isfinite(parameters).all()
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("shared_memory", [SMALL, LITTLE])
@pytest.mark.parametrize("hidden", [(), (15,)])
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("clusters", [None, False], ids=["as the device is", "without clusters"])
def test_it_does_not_matter_where_numbers_lie(shared_memory, hidden, batch, clusters):
    problem, state = make_problem(SIZES, hidden, "sigmoid", "identity", k=3, batch=batch, n_features=300)
    found = trained(problem, state, clusters=clusters, shared_memory=shared_memory)
    assert_same_bits(found, trained(problem, state, clusters=clusters))


@pytest.mark.parametrize("shared_memory", [None, SMALL, LITTLE])
@pytest.mark.parametrize("batch", [1, 4])
def test_646_features_train_as_gradient_descent(shared_memory, batch):
    from rankwell.kernels.lists.cuda.trainer import CudaNetworkTrainer

    problem, state = make_problem(SIZES, (15,), "sigmoid", "sigmoid", k=3, batch=batch, n_features=646)
    order = np.arange(len(SIZES))
    expected, expected_loss = descend(problem, state.parameters, order, 0.05, "sigmoid", "sigmoid", batch)
    trainer = CudaNetworkTrainer(problem, shared_memory=shared_memory)
    assert trainer.run_epoch(state, order, 0.05, 1, None) == pytest.approx(expected_loss, rel=1e-5)
    for (weights, bias), (expected_weights, expected_bias) in zip(
        unpack_layers(problem.shape, state.parameters), expected, strict=True
    ):
        np.testing.assert_allclose(weights, expected_weights, rtol=1e-4, atol=5e-5)
        np.testing.assert_allclose(bias, expected_bias, rtol=1e-4, atol=5e-5)


def test_a_list_longer_than_shared_memory_holds():
    problem, state = make_problem([20_000, 7], (15,), "sigmoid", "sigmoid", k=2)
    reference = state.copy()
    trainer, cpu = (load(NETWORK_TRAINING, kind, problem) for kind in ("cuda", "cpu"))
    losses = [each.run_epoch(at, np.arange(2), 0.05, 1, None) for each, at in ((trainer, state), (cpu, reference))]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    np.testing.assert_allclose(state.parameters, reference.parameters, rtol=1e-3, atol=1e-4)
