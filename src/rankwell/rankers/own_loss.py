"""A user's loss for boosted trees: a function that returns gradient and Hessian."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, ParameterError
from rankwell.rankers.tree_data import document_weights

# Of labels and scores, float64 (n_docs,), and query_ptr, int64 (n_queries + 1,).
OwnLoss = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Any, Any]]


def checked_loss(loss: OwnLoss, dataset: RankingDataset) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The function of the training documents' scores that trees are grown by: `loss`, checked and weighted."""
    weights = document_weights(dataset)

    def gradients(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = loss(
            *(_unchangeable(array) for array in (dataset.labels, scores.astype(np.float64), dataset.query_ptr))
        )
        if not isinstance(parts, tuple) or len(parts) != 2:
            raise DataError(
                f"the loss must return two arrays, gradient and Hessian, as a tuple; got {type(parts).__name__}."
            )
        checked = []
        for name, part in zip(("gradient", "Hessian"), parts, strict=True):
            values = _numbers(name, part)
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


def check_signature(loss: OwnLoss) -> None:
    """Refuse a function that cannot be called with labels, scores and query_ptr."""
    try:
        signature = inspect.signature(loss)
    except (TypeError, ValueError):
        # Nothing is known of some that are not written in Python.
        return
    try:
        signature.bind(None, None, None)
    except TypeError as cause:
        raise ParameterError(
            "must be a function of three arguments, labels, scores and query_ptr, that returns gradient and Hessian, "
            f"got one of {signature}. Wrap it: loss=lambda labels, scores, query_ptr: own(labels, scores).",
            parameter="loss",
        ) from cause


def _unchangeable(array: np.ndarray) -> np.ndarray:
    """The array, which belongs to the caller of `fit` or to the trees, as one that a user's function can only read."""
    view = array.view()
    view.flags.writeable = False
    return view


def _numbers(name: str, part: Any) -> np.ndarray:
    try:
        return np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise DataError(f"the loss's {name} must be an array of numbers, got {part!r:.100}.") from cause
