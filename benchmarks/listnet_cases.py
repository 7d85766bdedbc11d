"""What the ListNet benchmarks share: problems at the thesis's size, and the check that a trainer is right."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.synthetic import make_ranking
from rankwell.kernels.lists.contract import NetworkProblem, NetworkState
from rankwell.kernels.lists.losses import EXACT, ListLoss, list_loss
from rankwell.kernels.lists.network_shape import network_shape, pack_layers, unpack_layers
from rankwell.kernels.lists.reference import network
from rankwell.kernels.lists.reference.top_k_loss import top_k_loss
from rankwell.rankers.network_epochs import network_features
from rankwell.solvers.first_order import FirstOrder


def list_collection(quick: bool) -> RankingDataset:
    """MQ2008-list's shape: 471 queries, 540,679 documents, every document of a query with a label of its own."""
    return make_ranking("mq2008-list", scale=0.01 if quick else 1.0)


def graded(dataset: RankingDataset) -> RankingDataset:
    """The same queries with five labels: then no weight of the Top-3 loss vanishes, which is its dearest case."""
    changed = dataset.replace()
    ranks = dataset.labels / np.repeat(np.maximum(dataset.query_sizes, 1), dataset.query_sizes)
    changed.labels = np.floor(5 * np.minimum(ranks, 0.999))
    return changed


def network_problem(
    dataset: RankingDataset,
    *,
    k: int = 1,
    hidden: tuple[int, ...] = (15,),
    batch_queries: int = 1,
    loss: ListLoss | None = None,
) -> tuple[NetworkProblem, NetworkState]:
    """A network and where its training starts."""
    output = "sigmoid" if hidden else "identity"
    shape = network_shape(dataset.n_features, hidden, "sigmoid", output)
    problem = NetworkProblem(
        features=network_features(dataset),
        labels=dataset.labels,
        query_ptr=dataset.query_ptr,
        query_weights=np.ones(dataset.n_queries),
        shape=shape,
        loss=list_loss(EXACT, k) if loss is None else loss,
        optimizer=FirstOrder().settings(),
        batch_queries=batch_queries,
        dropout=0.0,
    )
    random = np.random.default_rng(0)
    widths = [dataset.n_features, *hidden, 1]
    layers = [
        (random.normal(size=(units, inputs)) / np.sqrt(inputs), np.zeros(units)) for inputs, units in pairwise(widths)
    ]
    flat = pack_layers(shape, layers)
    return problem, NetworkState(flat, np.zeros_like(flat), np.zeros_like(flat))


def reference_step(
    problem: NetworkProblem, state: NetworkState, query: int, documents: int
) -> tuple[float, np.ndarray]:
    """Loss and gradient of the first documents of one query in float64, by the definition, as a flat array."""
    start = int(problem.query_ptr[query])
    rows = slice(start, min(start + documents, int(problem.query_ptr[query + 1])))
    layers = unpack_layers(problem.shape, state.parameters)
    names = ["sigmoid"] * (len(layers) - 1) + ["sigmoid" if len(layers) > 1 else "identity"]
    full = [(weights, bias, name) for (weights, bias), name in zip(layers, names, strict=True)]
    outputs = network.forward(problem.features[rows], full)
    value, slopes = top_k_loss(problem.labels[rows], outputs[-1][:, 0], problem.loss.k)
    gradients = network.backward(outputs, full, slopes)
    return value, np.concatenate([part for w, b in gradients for part in (w.T.ravel(), b)])
