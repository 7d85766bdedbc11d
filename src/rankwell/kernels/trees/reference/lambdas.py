"""Gradients of pair losses, slowly: pair by pair in float64. Lambdarank is as LightGBM defines it."""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.trees.losses import DISTANCE_WEIGHT


def query_lambdas(
    name: str,
    scores: np.ndarray,
    gains: np.ndarray,
    *,
    truncation: int,
    sigma: float = 1.0,
    normalize: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian of one query's documents, float64 (n_docs,) each.

    name : of `PAIR_LOSSES`
    scores, gains : (n_docs,); documents rank by score, of equal ones the first in the file first
    truncation : pairs count if the better ranked document is among so many
    normalize : divide a pair's weight by 0.01 + |difference of scores|, and scale by log2(1 + Σ|λ|) / Σ|λ|
    """
    n_docs = len(scores)
    gradient, hessian = np.zeros(n_docs), np.zeros(n_docs)
    if n_docs < 2 or gains.min() == gains.max():
        return gradient, hessian
    if name in ("map", "mrr"):
        gains = (gains > 0).astype(float)
        if gains.min() == gains.max():
            return gradient, hessian
    order = np.argsort(-scores, kind="stable")
    by_distance = normalize and scores.max() != scores.min()
    total = 0.0
    for i in range(min(truncation, n_docs - 1)):
        for j in range(i + 1, n_docs):
            high, low = int(order[i]), int(order[j])
            if gains[high] == gains[low]:
                continue
            if gains[high] < gains[low]:
                high, low = low, high
            distance = float(scores[high]) - float(scores[low])
            weight = PAIR_WEIGHTS[name](gains[order], i, j, truncation)
            if by_distance:
                weight /= 0.01 + abs(distance)
            p = 1.0 / (1.0 + math.exp(sigma * distance))
            gradient[high] -= sigma * weight * p
            gradient[low] += sigma * weight * p
            hessian[[high, low]] += sigma * sigma * weight * p * (1.0 - p)
            total += 2.0 * sigma * weight * p
    if normalize and total > 0.0:
        factor = math.log2(1.0 + total) / total
        gradient, hessian = gradient * factor, hessian * factor
    return gradient, hessian


def _discount(place: float) -> float:
    return 1.0 / math.log2(place + 2.0)


def _dcg(gains: np.ndarray) -> float:
    return sum(float(gain) * _discount(place) for place, gain in enumerate(gains))


def _ndcg_change(gains: np.ndarray, i: int, j: int, truncation: int) -> float:
    best = _dcg(np.sort(gains)[::-1][:truncation])
    return abs(gains[i] - gains[j]) * (_discount(i) - _discount(j)) / best


def _ndcg_loss_weight(gains: np.ndarray, i: int, j: int, truncation: int) -> float:
    """NDCG-Loss2++ of Wang et al. 2018, equation 23: the weight of lambdarank plus that of the distance."""
    best = _dcg(np.sort(gains)[::-1][:truncation])
    by_distance = 1.0 / math.log2(1.0 + (j - i)) - 1.0 / math.log2(2.0 + (j - i))
    return _ndcg_change(gains, i, j, truncation) + DISTANCE_WEIGHT * by_distance * abs(gains[i] - gains[j]) / best


def _swapped(gains: np.ndarray, i: int, j: int) -> np.ndarray:
    other = gains.copy()
    other[[i, j]] = other[[j, i]]
    return other


def _average_precision(relevant: np.ndarray) -> float:
    places = np.flatnonzero(relevant) + 1
    return float(np.mean(np.arange(1, len(places) + 1) / places))


def _average_precision_change(relevant: np.ndarray, i: int, j: int, truncation: int) -> float:
    return abs(_average_precision(relevant) - _average_precision(_swapped(relevant, i, j)))


def _reciprocal_rank_change(relevant: np.ndarray, i: int, j: int, truncation: int) -> float:
    return abs(1.0 / (1 + np.argmax(relevant)) - 1.0 / (1 + np.argmax(_swapped(relevant, i, j))))


# By loss, what a pair of the places i < j weighs, from the gains by place.
PAIR_WEIGHTS = {
    "lambdarank": _ndcg_change,
    "lambdaloss": _ndcg_loss_weight,
    "pairwise": lambda gains, i, j, truncation: 1.0,
    "map": _average_precision_change,
    "mrr": _reciprocal_rank_change,
}
