"""Generated inputs for RankSVM's kernels, the awkward ones included; shared by the tests of every device."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankwell.kernels.pair_loss.contract import PairData
from rankwell.kernels.pair_loss.cpu.preparation import label_levels


def pair_data(features, labels, sizes, **weights):
    """Arrays as a pair loss takes them."""
    labels = np.asarray(labels, dtype=np.float64)
    query_ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    levels, n_levels = np.empty(len(labels), dtype=np.int32), np.empty(len(query_ptr) - 1, dtype=np.int32)
    label_levels(labels, query_ptr, levels, n_levels)
    if not sparse.issparse(features):
        features = np.ascontiguousarray(features, dtype=np.float32)
    return PairData(features, levels, n_levels, query_ptr, **weights)


def random_data(sizes, n_features, n_levels, seed=0, density=None, **weights):
    generator = np.random.default_rng(seed)
    n_docs = sum(sizes)
    if density is None:
        features = generator.normal(size=(n_docs, n_features))
    else:
        features = sparse.random(n_docs, n_features, density, "csr", np.float32, random_state=seed)
    return pair_data(features, generator.integers(0, n_levels, n_docs), sizes, **weights)


def weighted_data(seed=3):
    generator = np.random.default_rng(seed)
    sizes = [9, 4, 12]
    weights = {"query_weights": np.array([2.0, 0.0, 0.5]), "document_weights": generator.integers(0, 4, 25) / 2.0}
    return random_data(sizes, 5, 3, seed, **weights)


def equal_scores():
    """Rows that repeat: every score is shared by several documents, of different labels."""
    rows = np.repeat(np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 0.0]]), 5, axis=0)
    return pair_data(rows, np.arange(15) % 4, [15])


def margin_exactly_one():
    """Scores 0, 1, 2 under w = (1,): a pair whose margin is exactly 1 has no loss and is no support pair."""
    return pair_data(np.array([[0.0], [1.0], [2.0], [1.0]]), [0, 1, 2, 0], [4])


def huge_and_tiny():
    generator = np.random.default_rng(5)
    return pair_data(
        generator.normal(size=(30, 4)) * np.array([1e6, 1.0, 1e-6, 1e-20]), generator.integers(0, 3, 30), [10, 20]
    )


def large_mean():
    """A feature whose values lie far from 0: what counts are the differences."""
    generator = np.random.default_rng(6)
    return pair_data(
        generator.normal(size=(40, 3)) + np.array([1e4, 0.0, -3e3]), generator.integers(0, 3, 40), [17, 23]
    )


# Sizes around the kernels' edges: groups of 4 rows and 4 or 8 numbers, runs of 16, warps of 32, blocks of 128 and 256.
CASES = {
    "two levels": lambda: random_data([5, 8, 3], 7, 2),
    "five levels": lambda: random_data([40, 1, 0, 33, 120], 13, 5),
    "seven levels": lambda: random_data([60, 61], 4, 7),
    "eight levels": lambda: random_data([60, 61], 4, 8),
    "every label different": lambda: pair_data(
        np.random.default_rng(1).normal(size=(90, 6)), np.random.default_rng(2).permutation(90), [50, 40]
    ),
    "edges of blocks": lambda: random_data([15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129], 8, 3),
    "a longer query": lambda: random_data([255, 256, 257, 513], 3, 4),
    "one feature": lambda: random_data([6, 7], 1, 3),
    "many features": lambda: random_data([10, 12], 301, 3),
    "136 features": lambda: random_data([30, 50], 136, 5),
    "empty queries and single documents": lambda: random_data([0, 1, 0, 6, 1, 0], 3, 2),
    "one label level": lambda: pair_data(np.ones((7, 2)), [1] * 7, [4, 3]),
    "one query has pairs": lambda: pair_data(np.arange(12.0).reshape(6, 2), [1, 1, 1, 0, 0, 1], [3, 3]),
    "labels are any numbers": lambda: pair_data(np.eye(4), [-2.5, 1e9, 0.0, 1e-9], [4]),
    "equal scores": equal_scores,
    "margin exactly one": margin_exactly_one,
    "huge and tiny values": huge_and_tiny,
    "large mean": large_mean,
    "constant feature": lambda: pair_data(np.c_[np.ones(9), np.arange(9.0)], np.arange(9) % 3, [9]),
    "weights": weighted_data,
    "column scale": lambda: random_data([20, 9], 5, 3, column_scale=np.array([1.0, 2.0, 0.0, 0.5, 1e-3])),
    "sparse": lambda: random_data([20, 33, 1, 0, 18], 40, 4, density=0.1),
    "sparse, empty rows": lambda: random_data([20, 33], 50, 3, density=0.01),
    "sparse, every label different": lambda: pair_data(
        sparse.random(70, 30, 0.2, "csr", np.float32, random_state=4), np.arange(70), [30, 40]
    ),
}


def points_of(data, seed=0):
    """0, where every pair is a support pair; a small w, where most are; a large one, where few are."""
    generator = np.random.default_rng(seed)
    n_features = data.features.shape[1]
    scale = np.ones(n_features) if data.column_scale is None else np.maximum(data.column_scale, 1e-3)
    dense = data.features.toarray() if sparse.issparse(data.features) else data.features
    direction = generator.normal(size=n_features) / (scale * np.maximum(np.abs(dense).max(axis=0, initial=0), 1e-20))
    return [np.zeros(n_features), 0.1 * direction, 3.0 * direction]
