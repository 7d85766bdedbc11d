"""The Top-k ListNet loss (equations 2.6 to 2.8) by its definition: slow and in float64.

`enumerated_loss` sums over all n!/(n−k)! ordered k-tuples, as the equation does. `top_k_loss` uses that log P(s, π) is
a sum over places: it sums over the tuples' beginnings only, and each remaining sum is a separate log-sum-exp, so that
no label and no score is too large for it. Both return the loss and its gradient by the scores.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np


def log_sum_exp(values: np.ndarray) -> float:
    highest = values.max()
    return float(highest + np.log(np.exp(values - highest).sum()))


def log_probability(values: np.ndarray, prefix: tuple[int, ...]) -> float:
    """log P(values, π) of equation 2.6, for the permutations that begin with `prefix`."""
    remaining = np.ones(len(values), dtype=bool)
    total = 0.0
    for chosen in prefix:
        total += values[chosen] - log_sum_exp(values[remaining])
        remaining[chosen] = False
    return total


def enumerated_loss(labels: np.ndarray, scores: np.ndarray, k: int) -> tuple[float, np.ndarray]:
    """Equation 2.7, term by term: O(n^k · n)."""
    gradient = np.zeros(len(scores))
    loss = 0.0
    for prefix in permutations(range(len(scores)), min(k, len(scores))):
        weight = np.exp(log_probability(labels, prefix))
        loss -= weight * log_probability(scores, prefix)
        remaining = np.ones(len(scores), dtype=bool)
        for chosen in prefix:
            gradient[chosen] -= weight
            gradient[remaining] += weight * np.exp(scores[remaining] - log_sum_exp(scores[remaining]))
            remaining[chosen] = False
    return loss, gradient


def top_k_loss(labels: np.ndarray, scores: np.ndarray, k: int) -> tuple[float, np.ndarray]:
    """The same loss, collapsed: −Σ_i s_i·P_y(i in the top k) + Σ_{beginnings} P_y(beginning)·log Σ_{remaining} e^s."""
    n = len(scores)
    gradient = np.zeros(n)
    loss = 0.0
    for length in range(min(k, n)):
        for beginning in permutations(range(n), length):
            weight = np.exp(log_probability(labels, beginning))
            remaining = np.ones(n, dtype=bool)
            remaining[list(beginning)] = False
            log_sum = log_sum_exp(scores[remaining])
            next_place = np.exp(labels[remaining] - log_sum_exp(labels[remaining]))
            loss += weight * (log_sum - next_place @ scores[remaining])
            gradient[remaining] += weight * (np.exp(scores[remaining] - log_sum) - next_place)
    return loss, gradient


def prefix_loss(scores: np.ndarray, prefixes: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """−Σ_p weights[p]·log P(scores, prefixes[p]) and its gradient, which the sampled losses minimise.

    prefixes : int (n_prefixes, k); weights : float64 (n_prefixes,)
    """
    gradient = np.zeros(len(scores))
    loss = 0.0
    for prefix, weight in zip(prefixes, weights, strict=True):
        remaining = np.ones(len(scores), dtype=bool)
        for chosen in prefix:
            log_sum = log_sum_exp(scores[remaining])
            loss -= weight * (scores[chosen] - log_sum)
            gradient[chosen] -= weight
            gradient[remaining] += weight * np.exp(scores[remaining] - log_sum)
            remaining[chosen] = False
    return loss, gradient
