"""A loss over many lists, without a network: scores in, losses and gradients out."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import allow_function_values, kernel
from rankwell.kernels.cpu.random_numbers import random_bits
from rankwell.kernels.lists.cpu.list_gradient import list_gradient, list_scratch
from rankwell.kernels.lists.losses import ListLoss


def lists_gradient(
    loss: ListLoss, scores: np.ndarray, truth: np.ndarray, query_ptr: np.ndarray, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The loss of every list and ∂(its list's loss)/∂score of every document.

    Parameters
    ----------
    scores : float32 (n_docs,); truth : from `list_gradient.list_truth`; query_ptr : int64 (n_queries + 1,)
    seed : of what is drawn; with 0 nothing is shuffled

    Returns
    -------
    float64 (n_queries,), float64 (n_docs,)
    """
    scratch = list_scratch(loss, max(int(np.diff(query_ptr).max(initial=0)), 1))
    losses, gradient = np.zeros(len(query_ptr) - 1), np.zeros(len(scores))
    with allow_function_values():
        _all_lists((list_gradient(loss),) * 2, loss, scores, truth, query_ptr, seed, scratch, losses, gradient)
    return losses, gradient


@kernel(error_model="numpy")
def _all_lists(functions, loss, scores, truth, query_ptr, seed, scratch, losses, gradient):
    for q in range(len(query_ptr) - 1):
        start, end = query_ptr[q], query_ptr[q + 1]
        if end - start >= 2:
            own_seed = random_bits(seed, q, 0) if seed != 0 else np.uint64(0)
            losses[q] = functions[0](
                loss.k, loss.n_samples, loss.distribution, loss.factors, scores[start:end], truth[:, start:end],
                own_seed, scratch.doubles, scratch.lists, scratch.parts, gradient[start:end], False,
            )  # fmt: skip
