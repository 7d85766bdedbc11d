"""Generated rankers and rows for tests: every kind of input, every kind of column, the awkward values."""

import numpy as np

from rankwell.kernels.scoring.rules import IN_CATEGORIES, VALUE, ZERO_IS_MISSING
from rankwell.scoring.description import (
    BucketInputs,
    Dense,
    ExpressionInputs,
    LinearInputs,
    LogLinearInputs,
    RankerDescription,
    Sum,
    default_feature_names,
)
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.tree_builder import Tree, TreeBuilder


def random_rows(rng, n_docs, n_features):
    """Values from a small set (so that they meet thresholds), missing, zero, huge and tiny ones."""
    special = np.array([np.nan, 0.0, -0.0, 1e-36, -1e-36, 1e-35, -1e-35, 3e38, -3e38, 1e-45, -1.0, 2.0, 5.0])
    rows = rng.integers(-20, 20, size=(n_docs, n_features)) / 4
    return np.where(rng.random(rows.shape) < 0.25, rng.choice(special, rows.shape), rows).astype(np.float32)


def random_trees(rng, n_trees, n_features, *, most_leaves=20, n_thresholds=40, kinds=(VALUE,), missing="any"):
    """Trees of 1 to `most_leaves` leaves, grown by splitting a random leaf."""
    builder = TreeBuilder()
    for _ in range(n_trees):
        builder.add(
            _random_tree(rng, builder, int(rng.integers(1, most_leaves + 1)), n_features, n_thresholds, kinds, missing)
        )
    return builder.build()


def symmetric_trees(rng, n_trees, n_features, n_levels):
    """Trees with the same test for all nodes of a level, and other tests in each level."""
    builder = TreeBuilder()
    for _ in range(n_trees):
        features = rng.integers(n_features, size=n_levels)
        thresholds = rng.choice(np.arange(-20, 20), n_levels, replace=False) / 4
        level = np.concatenate([np.full(2**k, k) for k in range(n_levels)])
        n_nodes = len(level)
        children = 2 * np.arange(n_nodes) + 1
        left, right = (np.where(c < n_nodes, c, n_nodes - c - 1) for c in (children, children + 1))
        missing_left = rng.integers(0, 2, n_levels)[level]
        columns = [builder.column(int(features[k])) for k in level]
        values = rng.normal(size=n_nodes + 1)
        builder.add(Tree(columns, thresholds[level], missing_left, left.tolist(), right.tolist(), values))
    return builder.build()


def _random_tree(rng, builder, n_leaves, n_features, n_thresholds, kinds, missing):
    column, threshold, missing_left, left, right = [], [], [], [], []
    open_ends = [None]
    for node in range(n_leaves - 1):
        parent = open_ends.pop(int(rng.integers(len(open_ends))))
        if parent is not None:
            (left if parent[1] == 0 else right)[parent[0]] = node
        kind = int(rng.choice(kinds))
        categories = rng.choice(10, size=3, replace=False).tolist() if kind == IN_CATEGORIES else ()
        column.append(builder.column(int(rng.integers(n_features)), kind, categories))
        threshold.append(
            0.0 if kind == IN_CATEGORIES else float(rng.integers(-n_thresholds // 2, n_thresholds // 2)) / 4
        )
        missing_left.append({"left": True, "right": False}.get(missing, bool(rng.integers(2))))
        left.append(0)
        right.append(0)
        open_ends += [(node, 0), (node, 1)]
    for leaf, end in enumerate(open_ends):
        if end is not None:
            (left if end[1] == 0 else right)[end[0]] = -1 - leaf
    return Tree(column, threshold, missing_left, left, right, rng.normal(size=n_leaves))


def random_buckets(rng, n_inputs, n_features, most_edges=9):
    sizes = rng.integers(0, most_edges + 1, size=n_inputs)
    edges = [np.unique(rng.integers(-20, 20, size=size) / 4) for size in sizes]
    return BucketInputs(
        feature=rng.integers(0, n_features, n_inputs).astype(np.int32),
        edge_ptr=np.cumsum([0, *map(len, edges)]),
        edges=np.concatenate([[], *edges]).astype(np.float32),
        values=rng.normal(size=sum(map(len, edges)) + n_inputs),
        missing=rng.normal(size=n_inputs),
    )


def random_lines(rng, kind, n_inputs, n_features):
    return kind(rng.integers(0, n_features, n_inputs).astype(np.int32), *(rng.normal(size=n_inputs) for _ in range(3)))


def describe(n_features, inputs, layers):
    return RankerDescription(default_feature_names(n_features), Normaliser("none"), tuple(inputs), tuple(layers))


def random_ranker(rng, n_features=7):
    """Inputs of every kind and two dense layers."""
    inputs = [
        random_lines(rng, LinearInputs, 3, n_features),
        random_trees(rng, 5, n_features, kinds=(VALUE, ZERO_IS_MISSING, IN_CATEGORIES)),
        random_lines(rng, LogLinearInputs, 4, n_features),
        ExpressionInputs(("min(f1, f2) / f3", "if(missing(f4), -1, log1p(abs(f4)))"), np.array([0.5, 0.25])),
        random_buckets(rng, 40, n_features),
    ]
    width = sum(map(len, inputs))
    hidden = Dense(rng.normal(size=(6, width)) / 4, rng.normal(size=6), "tanh")
    return describe(n_features, inputs, [hidden, Dense(rng.normal(size=(1, 6)), rng.normal(size=1))])


def forest(trees, n_features, bias=0.0):
    return describe(n_features, [trees], [Sum(bias)])
