"""CatBoost's evaluation of symmetric trees: those of a model of its own, since it takes no others."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

NAME = "CatBoost, trees of its own"
IS_INSTALLED = find_spec("catboost") is not None


def prepare(rows: np.ndarray, n_trees: int, depth: int, n_threads: int) -> list[Callable[[np.ndarray], np.ndarray]]:
    """Predictions of a model of so many trees, with one and with `n_threads` threads."""
    import catboost

    target = np.random.default_rng(0).normal(size=len(rows)) + rows[:, 0] * rows[:, 1]
    model = catboost.CatBoost(
        {
            "iterations": n_trees,
            "depth": depth,
            "loss_function": "RMSE",
            "border_count": 254,
            "thread_count": n_threads,
            "allow_writing_files": False,
            "verbose": False,
        }
    ).fit(rows, target)
    return [lambda part, n=n: model.predict(part, thread_count=n) for n in (1, n_threads)]
