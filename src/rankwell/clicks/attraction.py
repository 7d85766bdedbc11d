"""The attraction of documents: clicks by expected examinations, and what the rest of the log says about them.

A document of a query with attraction γ that was examined about e times is clicked about γ·e times. Where e is small,
clicks / e is mostly chance: of a hundred poor documents examined seven times, some were clicked three times and seem
good. Two ways to allow for that:

- a number a: the mean m of the log counts as a more examinations, γ = (clicks + a·m) / (e + a);
- "log": how attractions are distributed in the log is estimated first, as weights of a grid of values that maximise
  the likelihood of all clicks under Poisson's distribution (Kiefer and Wolfowitz, 1956; by expectation maximisation,
  Laird, 1978). γ is then the median of that distribution given the document's clicks and examinations (empirical
  Bayes, Robbins, 1956). If documents of a log are of few kinds, it takes few examinations to see of which kind one is.
  The median and not the mean: most documents are poor, so one that nobody has looked at is taken for poor. By the mean
  it would seem better than those that were examined and found poor, and a ranker would learn to prefer the unseen.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Prior = float | Literal["log"]

# The grid: this many values down from the largest, each as many times the one below it.
_VALUES, _STEP = 64, 1.12
_MOST_ITERATIONS = 500
_CONVERGED = 1e-7
# Examinations are rounded to this relative precision where the distribution is estimated, so that equal ones are one.
_PRECISION = 0.02
_ROWS_AT_A_TIME = 2**14


def attraction(clicks: np.ndarray, examined: np.ndarray, prior: Prior) -> np.ndarray:
    """γ of each document, float64 (n,); clicks, examined : float64 (n,), examined above 0"""
    mean = clicks.sum() / examined.sum()
    if prior != "log":
        return np.asarray((clicks + prior * mean) / (examined + prior))
    highest = float(np.max((clicks + mean) / (examined + 1.0)))
    values = highest * _STEP ** np.arange(1.0 - _VALUES, 1.0)
    weights = _distribution(clicks, examined, values)
    medians = np.empty(len(clicks))
    for start in range(0, len(clicks), _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        below = np.cumsum(_likelihood(clicks[rows], examined[rows], values) * weights, axis=1)
        medians[rows] = values[np.argmax(below >= 0.5 * below[:, -1:], axis=1)]
    return medians


def _likelihood(clicks: np.ndarray, examined: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Poisson's probability of the clicks under each value, up to a factor for each row: float64 (n, n_values)."""
    logs = clicks[:, None] * np.log(values) - examined[:, None] * values
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _distribution(clicks: np.ndarray, examined: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The weights of the values that make the clicks most likely; they sum to 1."""
    steps = np.rint(np.log(examined) / _PRECISION)
    rows, counts = np.unique(np.stack((clicks, steps), axis=1), axis=0, return_counts=True)
    likelihood = _likelihood(rows[:, 0], np.exp(rows[:, 1] * _PRECISION), values)
    shares = counts / counts.sum()
    weights, before = np.full(len(values), 1.0 / len(values)), -np.inf
    for _ in range(_MOST_ITERATIONS):
        total = likelihood @ weights
        reached = float(shares @ np.log(total))
        if reached - before < _CONVERGED:
            break
        weights, before = weights * ((shares / total) @ likelihood), reached
    return weights
