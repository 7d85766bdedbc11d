"""Networks trained over lists: every backend against float64 gradient descent written out below."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.tolerances import TOLERANCES

from rankwell.kernels.device import load
from rankwell.kernels.device_report import report_device
from rankwell.kernels.lists.contract import NETWORK_TRAINING, NetworkProblem, NetworkState
from rankwell.kernels.lists.cpu.network import chunk_docs
from rankwell.kernels.lists.epoch_pieces import EpochPieces
from rankwell.kernels.lists.losses import EXACT, list_loss
from rankwell.kernels.lists.network_shape import network_shape, pack_layers, unpack_layers
from rankwell.kernels.lists.reference import network
from rankwell.kernels.lists.reference.top_k_loss import top_k_loss
from rankwell.kernels.threads import kernel_threads
from rankwell.solvers.first_order import FirstOrder

NO_CUDA = None if report_device("cuda").usable else report_device("cuda").description
BACKENDS = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(NO_CUDA is not None, reason=NO_CUDA or "")]),
]
NETWORKS = [
    ((), "identity", "identity"),
    ((15,), "sigmoid", "sigmoid"),
    ((8,), "relu", "identity"),
    ((3,), "tanh", "identity"),
]


def make_problem(
    sizes, hidden, activation, output, *, k=1, batch=1, optimizer=None, labels=3, seed=0, dropout=0.0, n_features=6
):
    rng = np.random.default_rng(seed)
    query_ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    n_docs = int(query_ptr[-1])
    shape = network_shape(n_features, hidden, activation, output)
    problem = NetworkProblem(
        features=rng.normal(size=(n_docs, n_features)).astype(np.float32),
        labels=rng.integers(0, labels, n_docs).astype(np.float64),
        query_ptr=query_ptr,
        query_weights=rng.uniform(0.5, 2.0, len(sizes)),
        shape=shape,
        loss=list_loss(EXACT, k),
        optimizer=(optimizer or FirstOrder()).settings(),
        batch_queries=batch,
        dropout=dropout,
    )
    widths = [n_features, *hidden, 1]
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(widths)]
    flat = pack_layers(shape, layers)
    return problem, NetworkState(flat, np.zeros_like(flat), np.zeros_like(flat))


def descend(problem, flat, order, rate, activation, output, batch):
    """Plain gradient descent in float64: the parameters after one epoch, and the sum of the losses."""
    layers = unpack_layers(problem.shape, flat)
    names = [activation] * (len(layers) - 1) + [output]
    total = 0.0
    for start in range(0, len(order), batch):
        queries = order[start : start + batch]
        sums = [(np.zeros_like(w), np.zeros_like(b)) for w, b in layers]
        full = [(w, b, name) for (w, b), name in zip(layers, names, strict=True)]
        for query in queries:
            rows = slice(problem.query_ptr[query], problem.query_ptr[query + 1])
            outputs = network.forward(problem.features[rows], full)
            labels, scores = problem.labels[rows], outputs[-1][:, 0]
            value, slopes = top_k_loss(labels, scores, problem.loss.k)
            weight = problem.query_weights[query]
            total += weight * value
            gradients = network.backward(outputs, full, weight * slopes)
            sums = [(w + g, b + h) for (w, b), (g, h) in zip(sums, gradients, strict=True)]
        layers = [
            (w - rate * g / len(queries), b - rate * h / len(queries))
            for (w, b), (g, h) in zip(layers, sums, strict=True)
        ]
    return layers, total


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("hidden", "activation", "output"), NETWORKS)
@pytest.mark.parametrize("batch", [1, 4])
def test_an_epoch_is_gradient_descent(backend, k, hidden, activation, output, batch):
    # An empty query, one document, two, and enough for several blocks and chunks.
    sizes = [5, 0, 1, 2, 9, 30, 3]
    problem, state = make_problem(sizes, hidden, activation, output, k=k, batch=batch)
    order = np.random.default_rng(1).permutation(len(sizes))
    expected, expected_loss = descend(problem, state.parameters, order, 0.05, activation, output, batch)
    loss = load(NETWORK_TRAINING, backend, problem).run_epoch(state, order, 0.05, 1, None)
    np.testing.assert_allclose(loss, expected_loss, **TOLERANCES[backend]["epoch loss"])
    assert state.steps == -(-len(sizes) // batch)
    for (weights, bias), (expected_weights, expected_bias) in zip(
        unpack_layers(problem.shape, state.parameters), expected, strict=True
    ):
        np.testing.assert_allclose(weights, expected_weights, **TOLERANCES[backend]["weights after an epoch"])
        np.testing.assert_allclose(bias, expected_bias, **TOLERANCES[backend]["weights after an epoch"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("labels", [3, 2000])
def test_a_long_query_goes_through_in_pieces(backend, labels):
    problem, state = make_problem([600], (15,), "sigmoid", "sigmoid", k=2, labels=labels)
    assert chunk_docs(problem.shape.inputs, problem.shape.units) < 600
    expected, expected_loss = descend(problem, state.parameters, [0], 0.5, "sigmoid", "sigmoid", 1)
    loss = load(NETWORK_TRAINING, backend, problem).run_epoch(state, np.array([0]), 0.5, 1, None)
    np.testing.assert_allclose(loss, expected_loss, **TOLERANCES[backend]["epoch loss"])
    for (weights, _), (expected_weights, _) in zip(
        unpack_layers(problem.shape, state.parameters), expected, strict=True
    ):
        np.testing.assert_allclose(weights, expected_weights, **TOLERANCES[backend]["weights after an epoch"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "optimizer",
    [FirstOrder(momentum=0.9), FirstOrder("adam", weight_decay=0.1), FirstOrder(weight_decay=0.5)],
    ids=["momentum", "adam", "decay"],
)
def test_backends_agree_on_many_steps(backend, optimizer):
    problem, state = make_problem([12, 7, 40, 3], (15,), "sigmoid", "sigmoid", k=3, optimizer=optimizer)
    reference = state.copy()
    order = np.array([2, 0, 3, 1])
    trainer, cpu = load(NETWORK_TRAINING, backend, problem), load(NETWORK_TRAINING, "cpu", problem)
    for _ in range(5):
        trainer.run_epoch(state, order, 0.01, 1, None)
        cpu.run_epoch(reference, order, 0.01, 1, None)
    tolerance = TOLERANCES[backend]["weights after many steps"]
    np.testing.assert_allclose(state.parameters, reference.parameters, **tolerance)
    assert not np.allclose(state.parameters, make_problem([12, 7, 40, 3], (15,), "sigmoid", "sigmoid")[1].parameters)


@pytest.mark.parametrize("backend", BACKENDS)
def test_top_three_of_long_lists_agrees_with_the_cpu(backend):
    """1,148 documents with 2,000 labels, as the list-wise collections have, and with few labels."""
    for labels in (2000, 5):
        problem, state = make_problem([1148, 511, 513], (15,), "sigmoid", "sigmoid", k=3, labels=labels)
        reference = state.copy()
        first = load(NETWORK_TRAINING, "cpu", problem).run_epoch(reference, np.arange(3), 0.1, 1, None)
        second = load(NETWORK_TRAINING, backend, problem).run_epoch(state, np.arange(3), 0.1, 1, None)
        np.testing.assert_allclose(second, first, **TOLERANCES[backend]["epoch loss"])
        tolerance = TOLERANCES[backend]["weights after many steps"]
        np.testing.assert_allclose(state.parameters, reference.parameters, **tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_are_the_network(backend):
    problem, state = make_problem([700], (15,), "sigmoid", "identity")
    layers = unpack_layers(problem.shape, state.parameters)
    full = [(*layers[0], "sigmoid"), (*layers[1], "identity")]
    expected = network.forward(problem.features, full)[-1][:, 0]
    scores = load(NETWORK_TRAINING, backend, problem).scores(state, problem.features)
    np.testing.assert_allclose(scores, expected, **TOLERANCES[backend]["network scores"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("batch", [1, 3])
def test_the_same_run_gives_the_same_bytes(backend, batch):
    problem, state = make_problem([50, 3, 17, 70, 9], (15,), "sigmoid", "sigmoid", k=3, batch=batch)
    again = state.copy()
    order = np.arange(5)
    for one in (state, again):
        trainer = load(NETWORK_TRAINING, backend, problem)
        with kernel_threads(1 if one is again else None):
            for _ in range(3):
                trainer.run_epoch(one, order, 0.1, 7, None)
    assert state.parameters.tobytes() == again.parameters.tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("batch", [1, 3])
def test_the_pieces_of_an_epoch_change_nothing(backend, batch, monkeypatch):
    problem, state = make_problem([50, 3, 17, 70, 9] * 3, (15,), "sigmoid", "sigmoid", k=3, batch=batch)
    order, whole = np.random.default_rng(0).permutation(15), state.copy()
    expected = [load(NETWORK_TRAINING, backend, problem).run_epoch(whole, order, 0.1, 7, None) for _ in range(3)]
    monkeypatch.setattr("rankwell.kernels.lists.epoch_pieces._FIRST_LENGTH", 1)
    trainer = load(NETWORK_TRAINING, backend, problem)
    trainer._pieces = EpochPieces(clock=iter(range(10**6)).__next__)  # a second a piece: one step each
    found = [trainer.run_epoch(state, order, 0.1, 7, None) for _ in range(3)]
    assert found == expected
    assert state.parameters.tobytes() == whole.parameters.tobytes()
    assert state.steps == whole.steps


def test_a_batch_on_threads_gives_the_bytes_of_one_thread(monkeypatch):
    problem, state = make_problem([50, 3, 17, 70, 9] * 8, (15,), "sigmoid", "sigmoid", k=3, batch=20)
    again = state.copy()
    order = np.arange(40)
    load(NETWORK_TRAINING, "cpu", problem).run_epoch(state, order, 0.1, 7, None)
    for module_limit in (0.0, np.inf):
        monkeypatch.setattr("rankwell.kernels.lists.cpu.trainer.SERIAL_WORK", module_limit)
        other = again.copy()
        load(NETWORK_TRAINING, "cpu", problem).run_epoch(other, order, 0.1, 7, None)
        assert other.parameters.tobytes() == state.parameters.tobytes()


def test_long_lists_on_threads_give_the_bytes_of_one_thread(monkeypatch):
    """The sums over the pairs of a long list are divided among threads; a query of weight 0 has no step."""
    monkeypatch.setattr("rankwell.kernels.lists.cpu.trainer.PARALLEL_DOCS", 50)
    problem, state = make_problem([50, 3, 170, 49, 9, 61, 70], (15,), "sigmoid", "sigmoid", k=3, dropout=0.2)
    problem.query_weights[5] = 0.0
    again, order = state.copy(), np.array([6, 0, 5, 1, 4, 2, 3])
    losses = []
    for one, n_threads in ((state, 1), (again, 4)):
        monkeypatch.setattr("rankwell.kernels.threads.available_cores", lambda n=n_threads: n)
        trainer = load(NETWORK_TRAINING, "cpu", problem)
        losses.append([trainer.run_epoch(one, order, 0.1, seed, None) for seed in (7, 8)])
    assert losses[0] == losses[1]
    assert state.parameters.tobytes() == again.parameters.tobytes()
    assert state.steps == again.steps == 14


def test_several_hidden_layers():
    problem, state = make_problem([20, 9], (7, 5, 3), "tanh", "identity", k=2)
    expected, _ = descend(problem, state.parameters, [0, 1], 0.05, "tanh", "identity", 1)
    load(NETWORK_TRAINING, "cpu", problem).run_epoch(state, np.arange(2), 0.05, 1, None)
    for (weights, bias), (expected_weights, expected_bias) in zip(
        unpack_layers(problem.shape, state.parameters), expected, strict=True
    ):
        np.testing.assert_allclose(weights, expected_weights, **TOLERANCES["cpu"]["weights after an epoch"])
        np.testing.assert_allclose(bias, expected_bias, **TOLERANCES["cpu"]["weights after an epoch"])


def test_dropout_leaves_out_its_share_and_keeps_the_mean():
    problem, state = make_problem([4000], (16,), "sigmoid", "identity", dropout=0.25)
    from rankwell.kernels.lists.cpu.network import forward

    hidden, scores = np.empty(4000 * 16, dtype=np.float32), np.empty(4000, dtype=np.float32)
    forward(problem.shape, state.parameters, problem.features, hidden, scores, 0.25, np.uint64(3))
    dropped = (hidden == 0.0).mean()
    assert dropped == pytest.approx(0.25, abs=0.01)
    whole = np.empty_like(hidden)
    forward(problem.shape, state.parameters, problem.features, whole, scores, 0.0, np.uint64(3))
    np.testing.assert_allclose(hidden[hidden != 0.0], whole[hidden != 0.0] / 0.75, rtol=1e-6)


def test_dropout_gradient_matches_finite_differences():
    """With the same seed the same units are left out, so the loss is a function of the parameters."""
    problem, state = make_problem([30], (6,), "sigmoid", "identity", dropout=0.5)

    def epoch(parameters, rate):
        moved = NetworkState(parameters.copy(), np.zeros_like(parameters), np.zeros_like(parameters))
        return load(NETWORK_TRAINING, "cpu", problem).run_epoch(moved, np.array([0]), rate, 9, None), moved.parameters

    _, after = epoch(state.parameters, 1.0)
    gradient = state.parameters - after
    for place in (0, 5, 20, len(gradient) - 2):
        up, down = state.parameters.copy(), state.parameters.copy()
        up[place] += 1e-2
        down[place] -= 1e-2
        slope = (epoch(up, 0.0)[0] - epoch(down, 0.0)[0]) / 2e-2
        assert gradient[place] == pytest.approx(slope, rel=2e-2, abs=2e-4)


def test_pack_and_unpack_are_inverse():
    shape = network_shape(4, (3, 2), "sigmoid", "identity")
    flat = np.arange(shape.n_parameters, dtype=np.float32)
    np.testing.assert_array_equal(pack_layers(shape, unpack_layers(shape, flat)), flat)
    with pytest.raises(ValueError, match="the network"):
        pack_layers(shape, unpack_layers(shape, flat)[1:])
