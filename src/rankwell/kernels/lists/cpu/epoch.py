"""An epoch of training on the CPU: forward, loss and backward fused per query, one optimiser step per batch of queries.

With one query a batch the steps follow one another inside one compiled function, so an epoch costs no Python. With
more, a batch's queries are dealt to SLOTS fixed slots, on as many threads as there are, and the slots' gradients are
added in order: the result does not depend on the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.random_numbers import random_bits
from rankwell.kernels.lists.cpu.first_order import first_order_step
from rankwell.kernels.lists.cpu.network import forward

SLOTS = 16
# Below this many documents the threads' start costs more than the O(n²) part of Top-3 does.
PARALLEL_DOCS = 4096


class Lists(NamedTuple):
    """The training data: features float32 (n_docs, n_features), quantised int32 (the same, or one row), truth float64
    (rows, n_docs), probabilities float64 (n_docs,) for fixed point's batches, query_ptr int64, weights float64
    (n_queries,)."""

    features: np.ndarray
    quantised: np.ndarray
    truth: np.ndarray
    probabilities: np.ndarray
    query_ptr: np.ndarray
    weights: np.ndarray


class Workspace(NamedTuple):
    """Scratch, one row a slot: hidden and deltas float32 (most_docs · n_hidden), scores and slopes float32 (most_docs),
    list_slopes float64 (most_docs), products and gradients float32 (n_parameters), and the losses' scratch."""

    hidden: np.ndarray
    deltas: np.ndarray
    scores: np.ndarray
    slopes: np.ndarray
    list_slopes: np.ndarray
    products: np.ndarray
    gradients: np.ndarray
    doubles: np.ndarray
    lists: np.ndarray
    parts: np.ndarray


class Step(NamedTuple):
    """How a step is made; with `fixed`, back propagation is in fixed point and the loss scale 2^scale_exponent."""

    chunk: int
    learning_rate: float
    dropout: float
    seed: int
    fixed: bool
    scale_exponent: int


@kernel(error_model="numpy")
def query_gradient(functions, shape, loss, fmt, step, parameters, lists, query, work, slot, parallel):
    """Add one query's ∂L/∂parameters, times its weight, to its slot's gradient; returns the weighted loss.

    functions : the compiled loss and the compiled back propagation, each in a tuple of its own.
    """
    start, end = lists.query_ptr[query], lists.query_ptr[query + 1]
    n, weight = end - start, lists.weights[query]
    if n < 2 or weight == 0.0:
        return 0.0
    features, hidden = lists.features[start:end], work.hidden[slot]
    scores, list_slopes = work.scores[slot, :n], work.list_slopes[slot, :n]
    seed = random_bits(step.seed, query, 0)
    for first in range(0, n, step.chunk):
        last = min(first + step.chunk, n)
        forward(
            shape, parameters, features[first:last], hidden[first * shape.n_hidden :], scores[first:last],
            step.dropout, seed + np.uint64(first + 1),
        )  # fmt: skip
    truth = lists.truth[:, start:end]
    value = functions[0][0](
        loss.k, loss.n_samples, loss.distribution, loss.factors, scores, truth, seed, work.doubles[slot],
        work.lists[slot], work.parts[slot], list_slopes, parallel,
    )  # fmt: skip
    for i in range(n):
        list_slopes[i] *= weight
    quantised = lists.quantised[start:end] if step.fixed else lists.quantised
    functions[1][0](
        shape, fmt, step.scale_exponent, parameters, features, quantised, hidden, step.chunk, scores, list_slopes,
        work.slopes[slot, :n], lists.probabilities[start:end], work.gradients[slot], work.deltas[slot],
        work.products[slot], step.dropout,
    )  # fmt: skip
    return weight * value


@kernel(error_model="numpy")
def slot_gradient(functions, shape, loss, fmt, step, parameters, lists, order, work, slot):
    """The gradients of one slot's share of a batch, added up; returns the sum of its losses."""
    work.gradients[slot] = np.float32(0.0)
    total = 0.0
    for place in range(slot, len(order), SLOTS):
        total += query_gradient(functions, shape, loss, fmt, step, parameters, lists, order[place], work, slot, False)
    return total


@kernel(error_model="numpy")
def slots_gradient(functions, shape, loss, fmt, step, parameters, lists, order, work, losses):
    """All slots of a batch on this thread; losses[slot] is the sum of its losses."""
    for slot in range(len(losses)):
        losses[slot] = slot_gradient(functions, shape, loss, fmt, step, parameters, lists, order, work, slot)


@kernel(error_model="numpy")
def query_steps(
    functions, shape, loss, fmt, step, optimizer, steps_before, parameters, first, second, lists, order, work
):
    """One step a query, in `order`; returns the sum of their losses."""
    total = 0.0
    gradient = work.gradients[0]
    for place in range(len(order)):
        query = order[place]
        gradient[:] = np.float32(0.0)
        large = lists.query_ptr[query + 1] - lists.query_ptr[query] >= PARALLEL_DOCS
        total += query_gradient(functions, shape, loss, fmt, step, parameters, lists, query, work, 0, large)
        first_order_step(optimizer, step.learning_rate, steps_before + place + 1, parameters, gradient, first, second)
    return total


@kernel(error_model="numpy", parallel=True)
def score_documents(shape, parameters, features, chunk):
    """The network's scores of all documents, float32 (n_docs,)."""
    n = features.shape[0]
    scores = np.empty(n, np.float32)
    for part in prange((n + chunk - 1) // chunk):
        start, end = part * chunk, min((part + 1) * chunk, n)
        hidden = np.empty((end - start) * shape.n_hidden, np.float32)
        forward(shape, parameters, features[start:end], hidden, scores[start:end], 0.0, np.uint64(0))
    return scores
