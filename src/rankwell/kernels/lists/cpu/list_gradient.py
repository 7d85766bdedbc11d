"""One list's loss and gradient, whichever loss it is: the thesis's task Loss Function.

Every loss has one signature and is compiled by itself, the first time it is wanted; the epoch kernel gets it as a
function value. So a training run compiles the loss it uses and no other.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.lists.cpu.pair_sums import PARTS
from rankwell.kernels.lists.cpu.rival_losses import LIST_ROWS, lambdarank_loss, listmle_loss, ranknet_loss, rival_truth
from rankwell.kernels.lists.cpu.sampling import position_aware_loss, scratch_rows, stochastic_loss
from rankwell.kernels.lists.cpu.top_k_loss import places_that_count, top_k_truth, top_three_loss, top_two_loss
from rankwell.kernels.lists.losses import (
    EXACT,
    LAMBDARANK,
    LISTMLE,
    MOST_EXACT_PLACES,
    POSITION_AWARE,
    RANKNET,
    STOCHASTIC,
    ListLoss,
)

# loss(k, n_samples, distribution, factors, scores, truth, seed, doubles, lists, parts, gradient, parallel)
_SIGNATURE = types.float64(
    types.int64,
    types.int64,
    types.int64,
    types.float64[::1],
    types.float32[::1],
    types.Array(types.float64, 2, "A"),
    types.uint64,
    types.float64[:, ::1],
    types.float32[:, ::1],
    types.float32[:, :, ::1],
    types.float64[::1],
    types.boolean,
)


class ListScratch(NamedTuple):
    """What a loss needs beside its input: float64 (rows, n), float32 (6, n) and float32 (2, PARTS, n)."""

    doubles: np.ndarray
    lists: np.ndarray
    parts: np.ndarray


def list_scratch(loss: ListLoss, most_docs: int) -> ListScratch:
    """Scratch for lists of up to `most_docs` documents."""
    return ListScratch(
        np.empty((max(4, scratch_rows(loss.k)), most_docs)),
        np.empty((LIST_ROWS, most_docs), dtype=np.float32),
        np.empty((2, PARTS, most_docs if has_pairs(loss) else 1), dtype=np.float32),
    )


def list_truth(loss: ListLoss, labels: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """The ground truth that the loss reads, float64 (rows, n_docs); the sampled losses read the labels."""
    if loss.kind == EXACT:
        return top_k_truth(loss.k, labels, query_ptr)
    if loss.kind in (STOCHASTIC, POSITION_AWARE):
        return labels[None, :]
    return rival_truth(labels, query_ptr)


def list_gradient(loss: ListLoss) -> Any:
    """The compiled loss: called for one list of at least two documents, it returns the loss and fills `gradient`."""
    return _compiled(_exact_three if has_pairs(loss) else _LOSSES[loss.kind])


def has_pairs(loss: ListLoss) -> bool:
    """Whether the loss is the one whose cost grows with the square of a list: exact Top-3."""
    return loss.kind == EXACT and loss.k == MOST_EXACT_PLACES


@cache
def _compiled(function: Any) -> Any:
    return kernel(signature=_SIGNATURE, error_model="numpy")(function)


def _exact_two(k, n_samples, distribution, factors, scores, truth, seed, doubles, lists, parts, gradient, parallel):
    return top_two_loss(k, scores, truth, doubles, gradient)


def _exact_three(k, n_samples, distribution, factors, scores, truth, seed, doubles, lists, parts, gradient, parallel):
    return top_three_loss(scores, truth, doubles, lists, parts, gradient, parallel)


def _stochastic(k, n_samples, distribution, factors, scores, truth, seed, doubles, lists, parts, gradient, parallel):
    places = places_that_count(k, len(scores))
    return stochastic_loss(places, n_samples, distribution, scores, truth[0], seed, doubles, gradient)


def _position_aware(
    k, n_samples, distribution, factors, scores, truth, seed, doubles, lists, parts, gradient, parallel
):
    places = places_that_count(k, len(scores))
    return position_aware_loss(factors[:places], scores, truth[0], seed, doubles, gradient)


def _ranknet(k, n_samples, distribution, factors, scores, truth, seed, doubles, lists, parts, gradient, parallel):
    return ranknet_loss(scores, truth, lists, gradient)


def _lambdarank(k, n_samples, distribution, factors, scores, truth, seed, doubles, lists, parts, gradient, parallel):
    return lambdarank_loss(scores, truth, lists, gradient)


def _listmle(k, n_samples, distribution, factors, scores, truth, seed, doubles, lists, parts, gradient, parallel):
    return listmle_loss(scores, truth, seed, doubles, gradient)


_LOSSES = {
    EXACT: _exact_two,
    STOCHASTIC: _stochastic,
    POSITION_AWARE: _position_aware,
    RANKNET: _ranknet,
    LAMBDARANK: _lambdarank,
    LISTMLE: _listmle,
}
