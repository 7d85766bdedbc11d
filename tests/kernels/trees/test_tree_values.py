"""The values of trees, by sets of leaves and by walking, against a document's own way down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rankwell.kernels.threads import kernel_threads
from rankwell.kernels.trees.contract import BinTree
from rankwell.kernels.trees.cpu import tree_values
from rankwell.kernels.trees.cpu.tree_values import MOST_LEAVES_IN_SETS, add_tree

N_FEATURES = 5


def random_tree(generator: np.random.Generator, n_leaves: int, largest_cut: int = 254) -> BinTree:
    """Leaves are cut at random, so that some trees are deep."""
    children = np.zeros((2, n_leaves - 1), np.int32)
    ends: list[tuple[int, int] | None] = [None]
    for node in range(n_leaves - 1):
        place = generator.integers(len(ends))
        above = ends[place]
        if above is not None:
            children[above[1], above[0]] = node
        ends[place] = (node, 0)
        ends.append((node, 1))
    for leaf, end in enumerate(ends):
        if end is not None:
            children[end[1], end[0]] = -1 - leaf
    missing_left = generator.integers(0, 2, n_leaves - 1).astype(np.uint8)
    cut = np.maximum(generator.integers(0, largest_cut + 1, n_leaves - 1), 1 - missing_left)
    nothing = np.zeros(n_leaves)
    return BinTree(
        generator.integers(0, N_FEATURES, n_leaves - 1).astype(np.int32),
        cut.astype(np.int32),
        *children,
        missing_left,
        *(nothing[1:] for _ in range(3)),
        *(nothing for _ in range(2)),
        leaf_value=generator.normal(size=n_leaves).astype(np.float32),
    )


def value_of(tree: BinTree, bins: np.ndarray) -> float:
    """Of one document, uint8 (n_features,)."""
    node = 0
    while node >= 0:
        own = int(bins[tree.feature[node]])
        if tree.cut[node] < 0:
            goes_left = bool(int(tree.left_bins[node, own >> 6]) >> (own & 63) & 1)
        else:
            goes_left = bool(tree.missing_left[node]) if own == 0 else own <= tree.cut[node]
        node = int((tree.left if goes_left else tree.right)[node])
    return float(tree.leaf_value[-1 - node])


def check(tree: BinTree, bins: np.ndarray) -> None:
    n_docs = bins.shape[1] - 3
    scores = np.full(n_docs, 0.25)
    add_tree(bins, tree, 0.5, scores)
    expected = [0.25 + 0.5 * value_of(tree, bins[:, document]) for document in range(n_docs)]
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("n_docs", [1, tree_values._SETS - 1, tree_values._SETS + 1])
@pytest.mark.parametrize("n_leaves", [2, 3, 31, MOST_LEAVES_IN_SETS, MOST_LEAVES_IN_SETS + 1, 200])
def test_every_document_gets_the_value_of_its_leaf(n_leaves, n_docs):
    generator = np.random.default_rng(n_leaves)
    # Three documents more than there are scores.
    bins = generator.integers(0, 256, (N_FEATURES, n_docs + 3)).astype(np.uint8)
    check(random_tree(generator, n_leaves), bins)


@pytest.mark.parametrize("largest_cut", [0, 1, 255])
def test_cuts_at_the_ends_and_missing_values(largest_cut):
    generator = np.random.default_rng(largest_cut)
    bins = generator.choice(np.array([0, 1, 2, 254, 255], np.uint8), (N_FEATURES, 300))
    for _ in range(20):
        check(random_tree(generator, 12, largest_cut), bins)


def test_a_cut_that_leaves_nothing_on_its_left():
    tree = random_tree(np.random.default_rng(1), 4)
    tree = replace(tree, cut=np.zeros(3, np.int32), missing_left=np.zeros(3, np.uint8))
    check(tree, np.random.default_rng(2).integers(0, 3, (N_FEATURES, 50)).astype(np.uint8))


def test_a_tree_of_one_leaf_changes_nothing():
    scores = np.full(7, 0.25)
    add_tree(np.zeros((N_FEATURES, 7), np.uint8), BinTree.of_one_leaf(7), 0.5, scores)
    np.testing.assert_array_equal(scores, np.full(7, 0.25))


def test_cuts_by_categories():
    generator = np.random.default_rng(3)
    tree = random_tree(generator, 20)
    by_categories = generator.random(19) < 0.5
    tree = replace(
        tree,
        cut=np.where(by_categories, -1, tree.cut).astype(np.int32),
        left_bins=generator.integers(0, 2**63, (19, 4)).astype(np.uint64),
    )
    assert 0 < by_categories.sum() < 19
    check(tree, generator.integers(0, 256, (N_FEATURES, 500)).astype(np.uint8))


def test_threads_take_ranges_of_documents():
    generator = np.random.default_rng(4)
    bins = generator.integers(0, 256, (N_FEATURES, 4 * tree_values._LEAST_DOCS)).astype(np.uint8)
    for n_leaves in (31, 100):
        tree = random_tree(generator, n_leaves)
        alone, shared = np.zeros((2, bins.shape[1]))
        with kernel_threads(1):
            add_tree(bins, tree, 1.0, alone)
        with kernel_threads(2):
            add_tree(bins, tree, 1.0, shared)
        np.testing.assert_array_equal(alone, shared)
