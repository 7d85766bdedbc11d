"""The list losses as differentiable PyTorch functions, for your own networks. Needs the extra `torch`.

Queries are ragged: `group` gives the number of documents of each, one after another in `scores` and `labels`. The
losses are Rankwell's own kernels, value and gradient computed together in one pass: exact Top-k without permutations,
safe for any labels and scores. They run on the CPU; scores on another device are copied to it and their gradients back.
The gradient is not differentiable again.

>>> loss = listnet_loss(network(features).squeeze(-1), labels, group, k=3)
>>> loss.backward()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rankwell.data.grouping import group_by_sizes
from rankwell.errors import DataError, ParameterError, RankwellError
from rankwell.kernels.lists.losses import (
    EXACT,
    LAMBDARANK,
    LISTMLE,
    MOST_EXACT_PLACES,
    POSITION_AWARE,
    RANKNET,
    STOCHASTIC,
    WEIGHTINGS,
    XENDCG,
    ListLoss,
    list_loss,
)
from rankwell.parameters import check_choice

try:
    import torch
except ImportError as cause:
    raise RankwellError("rankwell.torch needs PyTorch. Install the extra: pip install 'rankwell[torch]'.") from cause

Reduction = Literal["mean", "sum", "none"]


class _ListLoss(torch.autograd.Function):
    """Losses of all lists (n_queries,), their gradients kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, scores: Any, labels: np.ndarray, query_ptr: np.ndarray, loss: ListLoss, seed: int) -> Any:
        from rankwell.kernels.lists.cpu.list_gradient import list_truth
        from rankwell.kernels.lists.cpu.lists_gradient import lists_gradient

        values = np.ascontiguousarray(scores.detach().cpu().numpy(), dtype=np.float32)
        losses, gradient = lists_gradient(loss, values, list_truth(loss, labels, query_ptr), query_ptr, seed)
        ctx.save_for_backward(torch.from_numpy(gradient).to(scores))
        ctx.sizes = torch.from_numpy(np.diff(query_ptr)).to(scores.device)
        return torch.from_numpy(losses).to(scores)

    @staticmethod
    def backward(ctx: Any, *outgoing: Any) -> Any:
        (gradient,) = ctx.saved_tensors
        return gradient * torch.repeat_interleave(outgoing[0], ctx.sizes), None, None, None, None


def listnet_loss(
    scores: Any,
    labels: Any,
    group: Any,
    *,
    k: int = 1,
    sampling: Literal["exact", "stochastic", "position-aware"] = "exact",
    sample_size: int = 100,
    sample_distribution: Literal["uniform", "fixed", "adaptive"] = "fixed",
    sample_factors: Sequence[float] = (),
    seed: int = 0,
    reduction: Reduction = "mean",
) -> Any:
    """The Top-k ListNet loss of each query (equation 2.7), exact for k ≤ 3 or sampled: see `rankwell.ListNet`.

    Parameters
    ----------
    scores : tensor (n_docs,), floating
    labels : tensor or array (n_docs,)
    group : tensor or array (n_queries,)
    reduction : "mean" or "sum" over queries, or "none"

    Returns
    -------
    tensor, scalar or (n_queries,)
    """
    if sampling == "exact":
        if not 1 <= k <= MOST_EXACT_PLACES:
            raise ParameterError(f"the exact loss has k from 1 to {MOST_EXACT_PLACES}, got {k}. Sample for larger k.")
        loss = list_loss(EXACT, k)
    elif sampling == "stochastic":
        loss = list_loss(STOCHASTIC, k, n_samples=sample_size, distribution=sample_distribution)
    elif sampling == "position-aware":
        if len(sample_factors) != k:
            raise ParameterError(f"must be k = {k} numbers, got {tuple(sample_factors)}.", parameter="sample_factors")
        loss = list_loss(POSITION_AWARE, k, factors=tuple(sample_factors))
    else:
        raise ParameterError(
            f"must be 'exact', 'stochastic' or 'position-aware', got {sampling!r}.", parameter="sampling"
        )
    return _apply(loss, scores, labels, group, reduction, seed)


def ranknet_loss(scores: Any, labels: Any, group: Any, *, reduction: Reduction = "mean") -> Any:
    """RankNet's loss of each query: the mean of log(1 + e^(s_j − s_i)) over its pairs y_i > y_j."""
    return _apply(list_loss(RANKNET), scores, labels, group, reduction, 0)


def lambdarank_loss(
    scores: Any,
    labels: Any,
    group: Any,
    *,
    weighting: Literal["lambdarank", "lambdaloss", "map", "mrr"] = "lambdarank",
    reduction: Reduction = "mean",
) -> Any:
    """LambdaRank's loss of each query: the mean of RankNet's pairs weighted by `|ΔNDCG|`, the ranks taken as given.

    weighting : other weights of pairs instead, see `rankwell.LambdaRank`
    """
    check_choice("weighting", weighting, WEIGHTINGS)
    return _apply(list_loss(LAMBDARANK, weighting=weighting), scores, labels, group, reduction, 0)


def xendcg_loss(scores: Any, labels: Any, group: Any, *, seed: int = 0, reduction: Reduction = "mean") -> Any:
    """XE-NDCG of each query: the cross entropy of the scores' softmax with gains 2^y − u, u drawn by the seed."""
    return _apply(list_loss(XENDCG), scores, labels, group, reduction, seed)


def listmle_loss(scores: Any, labels: Any, group: Any, *, seed: int = 0, reduction: Reduction = "mean") -> Any:
    """ListMLE's loss of each query: −log P(s, π_y)/n. Equal labels are shuffled by the seed; 0 keeps their order."""
    return _apply(list_loss(LISTMLE), scores, labels, group, reduction, seed)


def _apply(loss: ListLoss, scores: Any, labels: Any, group: Any, reduction: str, seed: int) -> Any:
    if scores.ndim != 1 or not scores.is_floating_point():
        raise DataError(f"scores must be a floating tensor of one dimension, got {scores.dtype} {tuple(scores.shape)}.")
    values = np.ascontiguousarray(_as_numpy(labels), dtype=np.float64)
    if values.shape != tuple(scores.shape):
        raise DataError(f"labels must have one number per score: {len(scores)} scores, labels of shape {values.shape}.")
    query_ptr, _ = group_by_sizes(_as_numpy(group), len(values))
    losses = _ListLoss.apply(scores, values, query_ptr, loss, seed)
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if reduction == "mean":
        return losses.sum() / max(len(losses), 1)
    raise ParameterError(f"must be 'mean', 'sum' or 'none', got {reduction!r}.", parameter="reduction")


def _as_numpy(values: Any) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
