"""A user's loss for boosted trees: a function that returns gradient and Hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.rankers.tree_data import document_weights

# Of labels and scores, float64 (n_docs,), and query_ptr, int64 (n_queries + 1,).
OwnLoss = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Any, Any]]


def checked_loss(loss: OwnLoss, dataset: RankingDataset) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The function of the training documents' scores that trees are grown by: `loss`, checked and weighted."""
    weights = document_weights(dataset)

    def gradients(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = loss(dataset.labels, scores.astype(np.float64), dataset.query_ptr)
        if not isinstance(parts, tuple) or len(parts) != 2:
            raise DataError("the loss must return two arrays, gradient and Hessian.")
        checked = []
        for name, part in zip(("gradient", "Hessian"), parts, strict=True):
            values = np.asarray(part, dtype=np.float64)
            if values.shape != (dataset.n_docs,):
                raise DataError(
                    f"the loss's {name} must have one number per row, shape ({dataset.n_docs},), got {values.shape}."
                )
            values = (values if weights is None else values * weights).astype(np.float32)
            if not np.isfinite(values).all():
                raise DataError(f"the loss's {name} has values that are not finite numbers of single precision.")
            checked.append(values)
        if (checked[1] < 0).any():
            raise DataError("the loss's Hessian has values below 0. Use an upper bound, such as its absolute value.")
        return checked[0], checked[1]

    return gradients
