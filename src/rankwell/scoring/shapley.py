"""Shapley values of trees: how a tree's value divides among the features, for one document.

The game of Lundberg et al. 2018 ("Consistent individualized feature attribution for tree ensembles"): if only the
features S are known, a tree's expected value follows the document where a node tests a feature of S, and elsewhere
takes both children, each with its share of the training documents. A leaf contributes its value times, for each
feature on its path, o (1 if the document passes all of the feature's tests there, else 0) if the feature is known, and
otherwise z, the product of the shares. With m features on the path and P(y) = Π (z_j + o_j·y), feature i gets

    value·(o_i − z_i)·Σ_k d_k·k!·(m − 1 − k)! / m!,    d = the coefficients of P(y) / (z_i + o_i·y)

A feature with o = z = 1 changes nothing, so all paths are filled up with such features to the same length, and every
leaf of every tree is computed at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rankwell.kernels.scoring.reference import tested_value
from rankwell.kernels.threads import run_ranges
from rankwell.scoring.trees import TreeInputs


@dataclass(frozen=True)
class _Step:
    """A node on a leaf's path: its number over all trees, whether the leaf is to the left, and the documents' share."""

    node: int
    feature: int
    is_left: bool
    share: float


class TreeShapley:
    """The Shapley values of trees for any number of documents.

    Leaves count by `TreeInputs.leaf_weight`, or all the same if it is unknown.

    Attributes
    ----------
    expected : float64 (n_trees,)
        The mean value of each tree: what belongs to no feature.
    """

    def __init__(self, trees: TreeInputs) -> None:
        self._trees = trees
        weights = trees.leaf_weight if len(trees.leaf_weight) else np.ones(len(trees.leaf_value))
        totals = np.add.reduceat(weights, trees.leaf_ptr[:-1]) if len(trees) else np.zeros(0)
        means = np.add.reduceat(weights * trees.leaf_value, trees.leaf_ptr[:-1]) if len(trees) else np.zeros(0)
        self.expected = np.divide(means, totals, out=np.zeros(len(trees)), where=totals > 0)
        paths = [path for tree in range(len(trees)) for path in _paths(trees, tree, weights)]
        self._tree_of_leaf = np.repeat(np.arange(len(trees)), np.diff(trees.leaf_ptr))
        self._length = max((len({step.feature for step in path}) for path in paths), default=0)
        shape = (len(paths), self._length)
        self._z, self._feature = np.ones(shape), np.full(shape, -1)
        steps: list[tuple[int, int, int, bool]] = []
        for leaf, path in enumerate(paths):
            places: dict[int, int] = {}
            for step in path:
                place = places.setdefault(step.feature, len(places))
                self._z[leaf, place] *= step.share
                self._feature[leaf, place] = step.feature
                steps.append((leaf, place, step.node, step.is_left))
        table = np.array(steps, dtype=np.int64).reshape(-1, 4)
        self._leaf, self._place, self._node, self._is_left = table.T
        self._weights = _weights(self._length)

    def values(self, row: np.ndarray, slopes: np.ndarray, n_columns: int) -> np.ndarray:
        """Σ over trees of slope · Shapley values, float64 (n_columns,), for one document.

        row : the columns' values; slopes : float64 (n_trees,)
        """
        passed = np.ones(self._z.shape, bool)
        agrees = self._goes_left(row)[self._node] == (self._is_left == 1)
        np.logical_and.at(passed, (self._leaf, self._place), agrees)
        shares = self._shares(passed) * (self._trees.leaf_value * slopes[self._tree_of_leaf])[:, None]
        totals = np.zeros(n_columns)
        is_real = self._feature >= 0
        np.add.at(totals, self._feature[is_real], shares[is_real])
        return totals

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """Σ over trees of Shapley values, float64 (n_docs, n_columns), for many documents, by a kernel.

        rows : float32 (n_docs, n_columns), the columns' values
        """
        from rankwell.kernels.scoring.cpu.shapley import LeafPaths, NodeTests, add_shapley_values

        trees, totals = self._trees, np.zeros(rows.shape)
        tests = NodeTests(
            trees.column,
            trees.threshold,
            trees.missing_left,
            trees.column_feature,
            trees.column_kind,
            trees.category_ptr,
            trees.categories,
        )
        weights = np.zeros((self._length + 1, self._length))
        for m in range(1, self._length + 1):
            weights[m, :m] = _weights(m)
        paths = LeafPaths(
            n_places=(self._feature >= 0).sum(axis=1),
            feature=self._feature,
            z=self._z,
            step_ptr=np.searchsorted(self._leaf, np.arange(len(self._z) + 1)),
            place=np.ascontiguousarray(self._place),
            node=np.ascontiguousarray(self._node),
            is_left=self._is_left.astype(np.uint8),
            weights=weights,
        )

        def add(first: int, last: int) -> None:
            add_shapley_values(rows[first:last], tests, paths, trees.leaf_value, totals[first:last])

        run_ranges(add, len(rows))
        return totals

    def _goes_left(self, row: np.ndarray) -> np.ndarray:
        trees = self._trees
        values = np.array(
            [
                tested_value(float(row[feature]), int(kind), trees.categories_of(column))
                for column, (feature, kind) in enumerate(zip(trees.column_feature, trees.column_kind, strict=True))
            ]
        )[trees.column]
        return np.where(np.isnan(values), trees.missing_left != 0, values <= trees.threshold)

    def _shares(self, passed: np.ndarray) -> np.ndarray:
        """The share of each place on each leaf's path, for leaves of value 1."""
        m, z = self._length, self._z
        coefficients = np.zeros((len(z), m + 1))
        coefficients[:, 0] = 1.0
        for place in range(m):
            risen = np.where(passed[:, place, None], coefficients[:, :-1], 0.0)
            coefficients *= z[:, place, None]
            coefficients[:, 1:] += risen
        shares = np.zeros_like(z)
        for place in range(m):
            is_passed, own = passed[:, place], z[:, place]
            quotient = np.zeros(len(z))
            total = np.zeros(len(z))
            for k in range(m - 1, -1, -1):
                # P = (z + y)·d gives d from its highest coefficient down; P = z·d by division.
                quotient = np.where(
                    is_passed,
                    coefficients[:, k + 1] - own * quotient,
                    np.divide(coefficients[:, k], own, out=np.zeros(len(z)), where=own > 0),
                )
                total += self._weights[k] * quotient
            shares[:, place] = (is_passed - own) * total
        return shares


def _weights(m: int) -> np.ndarray:
    """k!·(m − 1 − k)! / m! for k below m, float64 (m,)."""
    return np.array([math.factorial(k) * math.factorial(m - 1 - k) / math.factorial(m) for k in range(m)])


def _paths(trees: TreeInputs, tree: int, weights: np.ndarray) -> list[list[_Step]]:
    """The steps from the root to each leaf of a tree."""
    start, end, first_leaf = int(trees.node_ptr[tree]), int(trees.node_ptr[tree + 1]), int(trees.leaf_ptr[tree])
    paths: list[list[_Step]] = [[] for _ in range(end - start + 1)]
    below = [0.0] * (end - start)

    def weight(child: int) -> float:
        return below[child] if child >= 0 else float(weights[first_leaf - 1 - child])

    # Children come after their parents: weights from the last node up, paths from the root down.
    for node in range(end - start - 1, -1, -1):
        below[node] = weight(int(trees.left[start + node])) + weight(int(trees.right[start + node]))
    to_node: list[list[_Step]] = [[] for _ in range(end - start)]
    for node in range(end - start):
        feature = int(trees.column_feature[trees.column[start + node]])
        for child, is_left in ((int(trees.left[start + node]), True), (int(trees.right[start + node]), False)):
            share = weight(child) / below[node] if below[node] > 0 else 0.5
            steps = [*to_node[node], _Step(start + node, feature, is_left, share)]
            if child >= 0:
                to_node[child] = steps
            else:
                paths[-1 - child] = steps
    return paths
