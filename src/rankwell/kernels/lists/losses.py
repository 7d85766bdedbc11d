"""The losses over one list, by name and number, for every backend."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

EXACT, STOCHASTIC, POSITION_AWARE, RANKNET, LAMBDARANK, LISTMLE = range(6)
DISTRIBUTIONS = ("uniform", "fixed", "adaptive")
MOST_EXACT_PLACES = 3


class ListLoss(NamedTuple):
    """A loss and its settings, in the form that kernels read.

    kind : one of the numbers above; k : places of the Top-k losses; n_samples and distribution (its index in
    DISTRIBUTIONS) for STOCHASTIC; factors : float64 (k,), f_1 ≥ … ≥ f_k, for POSITION_AWARE
    """

    kind: int
    k: int
    n_samples: int
    distribution: int
    factors: np.ndarray


def list_loss(
    kind: int, k: int = 1, *, n_samples: int = 0, distribution: str = "uniform", factors: tuple[float, ...] = ()
) -> ListLoss:
    return ListLoss(kind, k, n_samples, DISTRIBUTIONS.index(distribution), np.array(factors, dtype=np.float64))
