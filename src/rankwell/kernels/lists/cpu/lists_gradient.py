"""A loss over many lists, without a network: losses and gradients from scores."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.random_numbers import random_bits
from rankwell.kernels.lists.cpu.list_gradient import kernel_loss, list_gradient
from rankwell.kernels.lists.losses import ListLoss


def lists_gradient(
    loss: ListLoss,
    scores: np.ndarray,
    truth: np.ndarray,
    query_ptr: np.ndarray,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The loss of every list and ∂(its list's loss)/∂score of every document.

    Parameters
    ----------
    scores : float32 (n_docs,); truth : from `list_gradient.list_truth`; query_ptr : int64 (n_queries + 1,)
    seed : of the random numbers; with 0 nothing is shuffled

    Returns
    -------
    float64 (n_queries,), float64 (n_docs,)
    """
    most_docs = max(int(np.diff(query_ptr).max(initial=0)), 1)
    losses, gradient = np.zeros(len(query_ptr) - 1), np.zeros(len(scores))
    _all_lists(kernel_loss(loss, 1, most_docs), scores, truth, query_ptr, seed, losses, gradient)
    return losses, gradient


@kernel(error_model="numpy")
def _all_lists(loss, scores, truth, query_ptr, seed, losses, gradient):
    for q in range(len(query_ptr) - 1):
        start, end = query_ptr[q], query_ptr[q + 1]
        if end - start >= 2:
            own_seed = random_bits(np.uint64(seed), q, 0) if seed != 0 else np.uint64(0)
            losses[q] = list_gradient(loss, 0, scores[start:end], truth, start, own_seed, gradient[start:end])
