"""An epoch of training on the CPU: forward, loss and backward fused per query, one optimiser step per batch of queries.

With one query per batch, the steps of many queries run inside one compiled function, without Python. With more, a
batch's queries are assigned to SLOTS fixed slots, which all threads process, and the slots' gradients are added in
order: the result does not depend on the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.cpu.random_numbers import random_bits
from rankwell.kernels.lists.cpu.first_order import descend
from rankwell.kernels.lists.cpu.list_gradient import list_gradient
from rankwell.kernels.lists.cpu.network import forward
from rankwell.kernels.lists.cpu.query_backward import query_backward
from rankwell.kernels.lists.cpu.top_k_loss import before_pairs

SLOTS = 16


class Lists(NamedTuple):
    """The training data: features float32 (n_docs, n_features), truth float64 (rows, n_docs), query_ptr int64, weights
    float64 (n_queries,)."""

    features: np.ndarray
    truth: np.ndarray
    query_ptr: np.ndarray
    weights: np.ndarray


class Workspace(NamedTuple):
    """Scratch, one row per slot: hidden float32 (most_docs · n_hidden), scores float32 (most_docs), list_slopes float64
    (most_docs), gradients float32 (n_parameters)."""

    hidden: np.ndarray
    scores: np.ndarray
    list_slopes: np.ndarray
    gradients: np.ndarray


class Step(NamedTuple):
    """The settings of a step; chunk : documents that go through the network at a time."""

    chunk: int
    learning_rate: float
    dropout: float
    seed: int


@inner_kernel(error_model="numpy")
def _query_forward(shape, parameters, features, hidden, chunk, scores, dropout, seed):
    n = len(scores)
    for first in range(0, n, chunk):
        last = min(first + chunk, n)
        forward(
            shape, parameters, features[first:last], hidden[first * shape.n_hidden :], scores[first:last], dropout,
            seed + np.uint64(first + 1),
        )  # fmt: skip


@kernel(error_model="numpy", inline="always")
def _query_slopes(shape, loss, step, parameters, lists, query, work, slot):
    """Fill a slot with one query's hidden outputs, scores and weighted ∂L/∂scores; returns the weighted loss."""
    start, end = lists.query_ptr[query], lists.query_ptr[query + 1]
    n, weight = end - start, lists.weights[query]
    hidden, scores, list_slopes = work.hidden[slot], work.scores[slot, :n], work.list_slopes[slot, :n]
    seed = random_bits(np.uint64(step.seed), query, 0)
    _query_forward(shape, parameters, lists.features[start:end], hidden, step.chunk, scores, step.dropout, seed)
    value = list_gradient(loss, slot, scores, lists.truth, start, seed, list_slopes)
    for i in range(n):
        list_slopes[i] *= weight
    return weight * value


@kernel(error_model="numpy", inline="always")
def _query_gradient(shape, loss, backward, step, parameters, lists, query, work, slot):
    """Add one query's ∂L/∂parameters, times its weight, to its slot's gradient; returns the weighted loss.

    loss : from `kernel_loss`; backward : FloatBackward or FixedBackward
    """
    start, end = lists.query_ptr[query], lists.query_ptr[query + 1]
    n = end - start
    if n < 2 or lists.weights[query] == 0.0:
        return 0.0
    value = _query_slopes(shape, loss, step, parameters, lists, query, work, slot)
    hidden, scores, list_slopes = work.hidden[slot], work.scores[slot, :n], work.list_slopes[slot, :n]
    query_backward(
        backward, slot, shape, parameters, lists.features, start, end, hidden, step.chunk, scores, list_slopes,
        work.gradients[slot], step.dropout,
    )  # fmt: skip
    return value


@kernel(error_model="numpy", inline="always")
def _clear(gradient):
    for i in range(len(gradient)):
        gradient[i] = np.float32(0.0)


@kernel(error_model="numpy")
def slots_gradient(shape, loss, backward, step, parameters, lists, order, work, first, last, losses):
    """The gradients of a batch's queries in the slots first ≤ slot < last; losses[slot] is the sum of their losses."""
    for slot in range(first, last):
        _clear(work.gradients[slot])
        total = 0.0
        for place in range(slot, len(order), SLOTS):
            total += _query_gradient(shape, loss, backward, step, parameters, lists, order[place], work, slot)
        losses[slot] = total


@kernel(error_model="numpy")
def query_steps(
    shape, loss, backward, step, optimizer, steps_before, parameters, first, second, lists, order, work, total
):
    """One step per query, in `order`; returns `total` plus their losses. optimizer : Sgd or Adam"""
    gradient = work.gradients[0]
    for place in range(len(order)):
        _clear(gradient)
        total += _query_gradient(shape, loss, backward, step, parameters, lists, order[place], work, 0)
        descend(optimizer, step.learning_rate, steps_before + place + 1, parameters, gradient, first, second)
    return total


@kernel(error_model="numpy")
def query_slopes(shape, loss, step, parameters, lists, query, work, slot):
    """`_query_slopes` of one query, for a back propagation that is not done here."""
    return _query_slopes(shape, loss, step, parameters, lists, query, work, slot)


@kernel(error_model="numpy")
def prepare_pairs(shape, loss, step, parameters, lists, query, work):
    """Fill the lists of `loss`, a TopThree, with what the sums over a query's pairs need; returns their number."""
    start, end = lists.query_ptr[query], lists.query_ptr[query + 1]
    scores, list_slopes = work.scores[0, : end - start], work.list_slopes[0, : end - start]
    seed = random_bits(np.uint64(step.seed), query, 0)
    features = lists.features[start:end]
    _query_forward(shape, parameters, features, work.hidden[0], step.chunk, scores, step.dropout, seed)
    top, sums = np.empty(3, np.int64), np.empty(3)
    return before_pairs(scores, lists.truth, start, loss.doubles[0], loss.lists[0], top, sums, list_slopes)[1]


@kernel(error_model="numpy")
def score_documents(shape, parameters, features, chunk, first, last, hidden, scores):
    """The network's scores of the documents in the chunks first to last − 1; hidden : float32 (chunk · n_hidden,)."""
    for part in range(first, last):
        start, end = part * chunk, min((part + 1) * chunk, len(scores))
        forward(shape, parameters, features[start:end], hidden, scores[start:end], 0.0, np.uint64(0))
