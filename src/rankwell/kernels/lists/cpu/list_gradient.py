"""The loss and gradient of one list, for any loss: the thesis's task Loss Function.

A loss is a NamedTuple of its settings and its scratch, and its type selects the kernel when the caller is compiled, so
that a training run contains the machine code of one loss. Scratch has one row per slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import intrinsic

from rankwell.kernels.cpu.compilation import call_of, inner_kernel
from rankwell.kernels.lists.cpu.pair_sums import PARTS, added_pair_sums, pair_sums
from rankwell.kernels.lists.cpu.rival_losses import (
    LIST_ROWS,
    lambdarank_loss,
    listmle_loss,
    ranknet_loss,
    rival_truth,
    xendcg_loss,
)
from rankwell.kernels.lists.cpu.sampling import position_aware_loss, scratch_rows, stochastic_loss
from rankwell.kernels.lists.cpu.top_k_loss import top_k_truth, top_three_loss, top_two_loss
from rankwell.kernels.lists.cpu.two_places import SCRATCH_ROWS
from rankwell.kernels.lists.losses import (
    EXACT,
    LAMBDARANK,
    LISTMLE,
    MOST_EXACT_PLACES,
    POSITION_AWARE,
    RANKNET,
    STOCHASTIC,
    XENDCG,
    ListLoss,
)
from rankwell.kernels.trees.cpu.place_weights import COLUMN_WEIGHT
from rankwell.kernels.trees.losses import weights_by_distance


class TopTwo(NamedTuple):
    """Exact Top-1 and Top-2 ListNet. k; doubles : float64 (slots, SCRATCH_ROWS, most_docs)"""

    k: int
    doubles: np.ndarray


class TopThree(NamedTuple):
    """Exact Top-3 ListNet. doubles : as above; lists : float32 (slots, LIST_ROWS, most_docs); parts : float32
    (slots, 2, PARTS, most_docs); losses : float64 (slots, PARTS)"""

    doubles: np.ndarray
    lists: np.ndarray
    parts: np.ndarray
    losses: np.ndarray


class TopThreeFromParts(NamedTuple):
    """The same to the last bit, where `parts` and `losses` hold the O(n²) sums of the list already."""

    doubles: np.ndarray
    lists: np.ndarray
    parts: np.ndarray
    losses: np.ndarray


class Stochastic(NamedTuple):
    """ListNet over drawn permutations; see `ListLoss`. doubles : float64 (slots, scratch_rows(k), most_docs)"""

    k: int
    n_samples: int
    distribution: int
    doubles: np.ndarray


class PositionAware(NamedTuple):
    """ListNet over documents drawn by place; see `ListLoss`. doubles : as above"""

    factors: np.ndarray
    doubles: np.ndarray


class RankNet(NamedTuple):
    """lists : float32 (slots, LIST_ROWS, most_docs)"""

    lists: np.ndarray


class LambdaRank(NamedTuple):
    """weighting : of `WEIGHTINGS`; doubles : float64 (slots, 1, most_docs); lists : float32 (slots, LIST_ROWS,
    most_docs); table : float32 (slots, 2, 5, most_docs); discounts, distances : float32 (most_docs,)"""

    weighting: int
    doubles: np.ndarray
    lists: np.ndarray
    table: np.ndarray
    discounts: np.ndarray
    distances: np.ndarray


class XeNdcg(NamedTuple):
    """doubles : float64 (slots, 1, most_docs)"""

    doubles: np.ndarray


class ListMLE(NamedTuple):
    """doubles : float64 (slots, 2, most_docs)"""

    doubles: np.ndarray


def kernel_loss(loss: ListLoss, slots: int, most_docs: int) -> Any:
    """A loss as kernels take it, with scratch for lists of up to `most_docs` documents in each of `slots` slots."""

    def doubles(rows: int) -> np.ndarray:
        return np.empty((slots, rows, most_docs))

    def lists() -> np.ndarray:
        return np.empty((slots, LIST_ROWS, most_docs), dtype=np.float32)

    if has_pairs(loss):
        parts = np.empty((slots, 2, PARTS, most_docs), dtype=np.float32)
        return TopThree(doubles(SCRATCH_ROWS), lists(), parts, np.empty((slots, PARTS)))
    if loss.kind == STOCHASTIC:
        return Stochastic(loss.k, loss.n_samples, loss.distribution, doubles(scratch_rows(loss.k)))
    if loss.kind == POSITION_AWARE:
        return PositionAware(loss.factors[: loss.k], doubles(scratch_rows(loss.k)))
    if loss.kind == RANKNET:
        return RankNet(lists())
    if loss.kind == LAMBDARANK:
        table = np.empty((slots, 2, COLUMN_WEIGHT + 1, most_docs), dtype=np.float32)
        discounts = (1.0 / np.log2(np.arange(most_docs) + 2.0)).astype(np.float32)
        distances = weights_by_distance(loss.weighting, most_docs)
        return LambdaRank(loss.weighting, doubles(1), lists(), table, discounts, distances)
    if loss.kind == XENDCG:
        return XeNdcg(doubles(1))
    if loss.kind == LISTMLE:
        return ListMLE(doubles(2))
    return TopTwo(loss.k, doubles(SCRATCH_ROWS))


def list_truth(loss: ListLoss, labels: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """The ground truth that the loss reads, float64 (rows, n_docs); the sampled losses read the labels."""
    if loss.kind == EXACT:
        return top_k_truth(loss.k, labels, query_ptr)
    if loss.kind in (STOCHASTIC, POSITION_AWARE):
        return labels[None, :]
    return rival_truth(labels, query_ptr)


def has_pairs(loss: ListLoss) -> bool:
    """Whether the loss is exact Top-3, whose cost is quadratic in the length of a list."""
    return loss.kind == EXACT and loss.k == MOST_EXACT_PLACES


@inner_kernel(error_model="numpy")
def _top_two(loss, slot, scores, truth, start, seed, gradient):
    return top_two_loss(loss.k, scores, truth, start, loss.doubles[slot], gradient)


@inner_kernel(error_model="numpy")
def _top_three(loss, slot, scores, truth, start, seed, gradient):
    doubles, lists, parts = loss.doubles[slot], loss.lists[slot], loss.parts[slot]
    return top_three_loss(scores, truth, start, doubles, lists, parts, loss.losses[slot], gradient, pair_sums)


@inner_kernel(error_model="numpy")
def _top_three_from_parts(loss, slot, scores, truth, start, seed, gradient):
    doubles, lists, parts = loss.doubles[slot], loss.lists[slot], loss.parts[slot]
    return top_three_loss(scores, truth, start, doubles, lists, parts, loss.losses[slot], gradient, added_pair_sums)


@inner_kernel(error_model="numpy")
def _stochastic(loss, slot, scores, truth, start, seed, gradient):
    labels = truth[0, start : start + len(scores)]
    return stochastic_loss(
        loss.k, loss.n_samples, loss.distribution, scores, labels, seed, loss.doubles[slot], gradient
    )  # fmt: skip


@inner_kernel(error_model="numpy")
def _position_aware(loss, slot, scores, truth, start, seed, gradient):
    labels = truth[0, start : start + len(scores)]
    return position_aware_loss(loss.factors, scores, labels, seed, loss.doubles[slot], gradient)


@inner_kernel(error_model="numpy")
def _ranknet(loss, slot, scores, truth, start, seed, gradient):
    return ranknet_loss(scores, truth, start, loss.lists[slot], gradient)


@inner_kernel(error_model="numpy")
def _lambdarank(loss, slot, scores, truth, start, seed, gradient):
    return lambdarank_loss(
        loss.weighting,
        scores,
        truth,
        start,
        loss.doubles[slot],
        loss.lists[slot],
        loss.table[slot],
        loss.discounts,
        loss.distances,
        gradient,
    )


@inner_kernel(error_model="numpy")
def _xendcg(loss, slot, scores, truth, start, seed, gradient):
    return xendcg_loss(scores, truth, start, seed, loss.doubles[slot], gradient)


@inner_kernel(error_model="numpy")
def _listmle(loss, slot, scores, truth, start, seed, gradient):
    return listmle_loss(scores, truth, start, seed, loss.doubles[slot], gradient)


_LOSSES = {
    TopTwo: _top_two,
    TopThree: _top_three,
    TopThreeFromParts: _top_three_from_parts,
    Stochastic: _stochastic,
    PositionAware: _position_aware,
    RankNet: _ranknet,
    LambdaRank: _lambdarank,
    ListMLE: _listmle,
    XeNdcg: _xendcg,
}


@intrinsic
def list_gradient(typing_context, loss, slot, scores, truth, start, seed, gradient):
    """The loss of a list of at least two documents; its gradient by the scores is written to `gradient`.

    scores : float32 (n_docs,); truth : from `list_truth`, the list's from the document `start` on; seed : uint64;
    gradient : float64 (n_docs,)
    """
    arguments = (loss, slot, scores, truth, start, seed, gradient)
    return call_of(_LOSSES[loss.instance_class], typing_context, arguments)
