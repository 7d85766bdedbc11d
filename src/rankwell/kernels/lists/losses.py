"""The losses over one list, by name and number, for every backend."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.trees.losses import PAIR_LOSSES

EXACT, STOCHASTIC, POSITION_AWARE, RANKNET, LAMBDARANK, LISTMLE, XENDCG = range(7)
DISTRIBUTIONS = ("uniform", "fixed", "adaptive")
MOST_EXACT_PLACES = 3
# What LAMBDARANK's pairs weigh, by the names and numbers of boosted trees.
WEIGHTINGS = {name: kind for name, kind in PAIR_LOSSES.items() if name != "pairwise"}


class ListLoss(NamedTuple):
    """A loss and its settings, in the form that kernels read.

    kind : one of the numbers above; k : places of the Top-k losses; n_samples and distribution (its index in
    DISTRIBUTIONS) for STOCHASTIC; factors : float64 (k,), f_1 ≥ … ≥ f_k, for POSITION_AWARE; weighting : of WEIGHTINGS,
    for LAMBDARANK
    """

    kind: int
    k: int
    n_samples: int
    distribution: int
    factors: np.ndarray
    weighting: int = WEIGHTINGS["lambdarank"]


def list_loss(
    kind: int,
    k: int = 1,
    *,
    n_samples: int = 0,
    distribution: str = "uniform",
    factors: tuple[float, ...] = (),
    weighting: str = "lambdarank",
) -> ListLoss:
    of_places = np.array(factors, dtype=np.float64)
    return ListLoss(kind, k, n_samples, DISTRIBUTIONS.index(distribution), of_places, WEIGHTINGS[weighting])
