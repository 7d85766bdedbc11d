"""A forest to evaluate, grown from rows without a trainer: leaf by leaf, on quantiles, as LightGBM's trees look."""

from __future__ import annotations

import numpy as np

from rankwell.scoring.description import RankerDescription, Sum, default_feature_names
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.tree_builder import Tree, TreeBuilder
from rankwell.scoring.trees import TreeInputs

_SAMPLE = 2000
_BINS = 255


def rows_like_a_feature_set(n_docs: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Log-normal features, float32 (n_docs, n_features): skewed, as counts and scores are."""
    return np.random.default_rng(seed).lognormal(size=(n_docs, n_features)).astype(np.float32)


def grow_forest(n_trees: int, n_leaves: int, n_features: int, seed: int = 0) -> TreeInputs:
    """Trees of `n_leaves` leaves over features as `rows_like_a_feature_set` makes them.

    The leaf with the most documents is split, at a random quantile of a random feature within it, so paths are of
    uneven length; thresholds are taken from 255 quantiles per feature, as histogram trainers do.
    """
    rng = np.random.default_rng(seed)
    sample = rows_like_a_feature_set(_SAMPLE, n_features, seed + 1)
    cuts = np.quantile(sample, np.linspace(0, 1, _BINS + 2)[1:-1], axis=0).astype(np.float32)
    builder = TreeBuilder()
    for _ in range(n_trees):
        builder.add(_grow_tree(rng, builder, sample, cuts, n_leaves))
    return builder.build()


def grow_symmetric_forest(n_trees: int, depth: int, n_features: int, seed: int = 0) -> TreeInputs:
    """Trees of 2^depth leaves, all nodes of a level with the same test: a random quantile of a random feature."""
    rng = np.random.default_rng(seed)
    sample = rows_like_a_feature_set(_SAMPLE, n_features, seed + 1)
    cuts = np.quantile(sample, np.linspace(0, 1, _BINS + 2)[1:-1], axis=0).astype(np.float32)
    level = np.concatenate([np.full(2**k, k) for k in range(depth)])
    left = 2 * np.arange(len(level)) + 1
    children = [np.where(child < len(level), child, len(level) - 1 - child) for child in (left, left + 1)]
    builder = TreeBuilder()
    for _ in range(n_trees):
        features = rng.integers(n_features, size=depth)
        thresholds = cuts[rng.integers(_BINS, size=depth), features]
        columns = [builder.column(int(features[k])) for k in level]
        values = rng.normal(size=2**depth) / 100
        sides = (side.tolist() for side in children)
        builder.add(Tree(columns, thresholds[level], [True] * len(level), *sides, values))
    return builder.build()


def _grow_tree(
    rng: np.random.Generator, builder: TreeBuilder, sample: np.ndarray, cuts: np.ndarray, n_leaves: int
) -> Tree:
    members: list[np.ndarray] = [np.arange(len(sample))]
    ends: list[tuple[int, int] | None] = [None]
    column, threshold, children = [], [], []
    for node in range(n_leaves - 1):
        place = max(range(len(members)), key=lambda i: len(members[i]) * rng.random())
        rows, end = members.pop(place), ends.pop(place)
        if end is not None:
            children[end[0]][end[1]] = node
        feature = int(rng.integers(sample.shape[1]))
        values = sample[rows, feature] if len(rows) else cuts[:, feature]
        wanted = np.quantile(values, rng.uniform(0.05, 0.95))
        cut = cuts[min(int(np.searchsorted(cuts[:, feature], wanted)), _BINS - 1), feature]
        column.append(builder.column(feature))
        threshold.append(float(cut))
        children.append([0, 0])
        goes_left = sample[rows, feature] <= cut
        members += [rows[goes_left], rows[~goes_left]]
        ends += [(node, 0), (node, 1)]
    for leaf, end in enumerate(ends):
        if end is not None:
            children[end[0]][end[1]] = -1 - leaf
    left, right = ([child[side] for child in children] for side in (0, 1))
    # Leaves of float32 values, so that XGBoost holds the same model.
    values = (rng.normal(size=n_leaves) / 100).astype(np.float32).astype(np.float64)
    return Tree(column, threshold, [True] * len(column), left, right, values)


def forest_ranker(trees: TreeInputs, n_features: int) -> RankerDescription:
    """The forest as a ranker: the sum of its trees."""
    return RankerDescription(default_feature_names(n_features), Normaliser("none"), (trees,), (Sum(),))
