"""Features in the order in which they are worth their cost: forward selection by least squares.

Features are replaced by their ranks in the training data, so that outliers do not count, and centred by query, as only
differences within a query matter. Each step takes the feature whose addition explains the most of what is still
unexplained of the labels, per microsecond it adds:

    gain(j) = (x_jᵀ r)² / x_jᵀ x_j,    x_j and the labels' rest r orthogonal to the features already taken

which is what least squares gains by the feature. Features that repeat others gain nothing and come last.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankwell.data.dataset import RankingDataset

# Rows that are enough to order features by; whole queries are drawn.
_MOST_ROWS = 50_000
# A feature of which less than this share is new repeats the others.
_LEAST_NEW = 1e-6

AddedCost = Callable[[list[int], int], float]
"""The microseconds that a feature adds to those already taken."""


def feature_orders(dataset: RankingDataset, *added_costs: AddedCost, random_state: int = 0) -> list[list[int]]:
    """All features, those that are worth their cost most first; an order for each way to count costs."""
    gram, moment = _products(_sample(dataset, random_state))
    return [_order(gram, moment, added_cost) for added_cost in added_costs]


def _order(gram: np.ndarray, moment: np.ndarray, added_cost: AddedCost) -> list[int]:
    taken: list[int] = []
    left = list(range(len(moment)))
    while left:
        new = gram[left, left]
        is_new = new > _LEAST_NEW
        gain = np.where(is_new, moment[left] ** 2 / np.where(is_new, new, 1.0), 0.0)
        worth = [share / max(added_cost(taken, j), 1e-9) for share, j in zip(gain.tolist(), left, strict=True)]
        best = left.pop(int(np.argmax(worth)))
        taken.append(best)
        if gram[best, best] > _LEAST_NEW:
            column = gram[:, best] / gram[best, best]
            moment = moment - column * moment[best]
            gram = gram - np.outer(column, gram[best])
    return taken


def _sample(dataset: RankingDataset, random_state: int) -> RankingDataset:
    if dataset.n_docs <= _MOST_ROWS:
        return dataset
    order = np.random.default_rng(random_state).permutation(dataset.n_queries)
    n_rows = np.cumsum(dataset.query_sizes[order])
    return dataset.subset(np.sort(order[: max(1, int(np.searchsorted(n_rows, _MOST_ROWS)))]))


def _products(dataset: RankingDataset) -> tuple[np.ndarray, np.ndarray]:
    """Correlations of features with each other, and with the labels; of ranks, centred by query."""
    query, sizes = dataset.query_of_rows(), np.maximum(dataset.query_sizes, 1)
    centred = np.empty((dataset.n_docs, dataset.n_features + 1))
    for j in range(dataset.n_features + 1):
        column = _ranks(dataset.features[:, j]) if j < dataset.n_features else dataset.labels
        centred[:, j] = column - (np.bincount(query, column, dataset.n_queries) / sizes)[query]
    products = centred.T @ centred
    scale = np.sqrt(np.diag(products))
    products /= np.where(scale > 0, scale, np.inf)[:, None] * np.where(scale > 0, scale, np.inf)
    return products[:-1, :-1], products[:-1, -1]


def _ranks(column: np.ndarray) -> np.ndarray:
    """The share of documents below, ties in the middle; missing values come first."""
    _, inverse, counts = np.unique(np.nan_to_num(column, nan=-np.inf), return_inverse=True, return_counts=True)
    ranks: np.ndarray = ((np.cumsum(counts) - counts / 2) / len(column))[inverse]
    return ranks
