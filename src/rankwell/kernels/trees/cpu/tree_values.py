"""The value that a tree over bins gives each document.

A tree of up to 64 leaves is not walked: each document has a set of the leaves that it may still reach, a bit each from
left to right. A node takes the leaves on its left from the sets of the documents that go right, whole vectors of
documents at once; the first leaf that is left is the document's (Lucchese et al., "QuickScorer", 2015, whose features
are sorted instead). Documents walk down larger trees, and trees with cuts by categories.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.bits import lowest_bit
from rankwell.kernels.cpu.lean_compilation import inlined_kernel, kernel
from rankwell.kernels.threads import run_ranges
from rankwell.kernels.trees.contract import BinTree

MOST_LEAVES_IN_SETS = 64
# Documents whose sets are kept at once; documents that walk down side by side, since a processor works on several.
_SETS = 1024
_SIDE_BY_SIDE = 256
_MOST_BINS = 256
# A range of fewer takes less time than waking a thread.
_LEAST_DOCS = 16384
U = np.uint64
_EVERY_LEAF = U(2**64 - 1)


@inlined_kernel
def _next_node(bins, document, node, nodes, left_bins):
    own = U(bins[U(nodes[node, U(0)]), document])
    is_right = U(1) - ((left_bins[node, own >> U(6)] >> (own & U(63))) & U(1))
    return nodes[node, U(1) + is_right]


@kernel
def add_values(bins, nodes, left_bins, values, scores, start, end, places):
    """Add the tree's value to the scores of documents start, ..., end − 1, which walk down.

    bins : uint8 (n_features, n_docs or more); nodes : int32 (n_nodes, 3), feature, left, right
    left_bins : uint64 (n_nodes, 4), the set of bins that go left
    values : float64 (n_leaves,); scores : float64 (n_docs,)
    places : int32 (2, 256), scratch: where each of the documents side by side is, and which ones are above a leaf
    """
    for first in range(start, end, _SIDE_BY_SIDE):
        n_docs = min(end - first, _SIDE_BY_SIDE)
        for k in range(U(n_docs)):
            places[0, k], places[1, k] = 0, k
        n_walking = n_docs
        while n_walking > 0:
            n_left = U(0)
            for place in range(U(n_walking)):
                k = U(places[1, place])
                node = _next_node(bins, U(first) + k, U(places[0, k]), nodes, left_bins)
                places[0, k], places[1, n_left] = node, k
                n_left += U(node >= 0)
            n_walking = np.int64(n_left)
        for k in range(U(n_docs)):
            scores[U(first) + k] += values[-1 - places[0, k]]


@kernel
def order_leaves(left, right, values, kept, ordered, path):
    """The leaves from left to right.

    left, right : int32 (n_nodes,), as a `BinTree` has them; values : float64 (n_leaves,)
    kept : uint64 (n_nodes,), written: the leaves that a document which goes right may still reach
    ordered : float64 (n_leaves,), written: their values from left to right
    path : int64 (2, n_leaves), scratch
    """
    n_found, depth, child = 0, 0, 0 if len(left) > 0 else -1
    while True:
        while child >= 0:
            # The nodes above whose left side is not done, and the leaves that were found before each.
            path[0, depth], path[1, depth] = child, n_found
            depth += 1
            child = np.int64(left[child])
        ordered[n_found] = values[-1 - child]
        n_found += 1
        if depth == 0:
            return
        depth -= 1
        node, before = path[0, depth], path[1, depth]
        on_the_left = ((U(1) << U(n_found - before)) - U(1)) << U(before)
        kept[node] = ~on_the_left
        child = np.int64(right[node])


@kernel
def add_reached(bins, feature, first_bin, n_bins, kept, ordered, scores, start, end, reached):
    """Add the tree's value to the scores of documents start, ..., end − 1, by the sets of leaves that they reach.

    bins : uint8 (n_features, n_docs or more); feature : int32 (n_nodes,)
    first_bin, n_bins : uint8 (n_nodes,), the bins that go left: n_bins + 1 of them, from `first_bin` on
    kept, ordered : of `order_leaves`; scores : float64 (n_docs,)
    reached : uint64 (1024,), scratch
    """
    for first in range(start, end, _SETS):
        n_docs = U(min(end - first, _SETS))
        for k in range(n_docs):
            reached[k] = _EVERY_LEAF
        for node in range(len(kept)):
            column = bins[feature[node]]
            lowest, most, leaves = first_bin[node], n_bins[node], kept[node]
            for k in range(n_docs):
                goes_left = np.uint8(column[U(first) + k] - lowest) <= most
                reached[k] &= _EVERY_LEAF if goes_left else leaves
        for k in range(n_docs):
            scores[U(first) + k] += ordered[U(lowest_bit(reached[k]))]


class TreeValues:
    """A tree, prepared to give documents its values, each times `share`."""

    def __init__(self, tree: BinTree, share: float) -> None:
        self._tree, self._values = tree, tree.leaf_value.astype(np.float64) * share
        # Without missing values on its left, a node's bins on the left begin with 1.
        self._first_bin = (tree.missing_left == 0).astype(np.uint8)
        self._in_sets = tree.n_leaves <= MOST_LEAVES_IN_SETS and bool((tree.cut >= self._first_bin).all())
        if self._in_sets:
            self._n_bins = (tree.cut - self._first_bin).astype(np.uint8)
            self._kept, self._ordered = np.empty(len(tree.cut), np.uint64), np.empty_like(self._values)
            path = np.empty((2, tree.n_leaves), np.int64)
            order_leaves(tree.left, tree.right, self._values, self._kept, self._ordered, path)
        else:
            self._nodes = np.stack([tree.feature, tree.left, tree.right], axis=1)
            self._left_bins = _bins_on_the_left(tree)

    def add(self, bins: np.ndarray, scores: np.ndarray, start: int, end: int) -> None:
        """Add the values of documents start, ..., end − 1 to float64 `scores`; bins : uint8 (n_features, n_docs)"""
        if self._in_sets:
            by_node = (self._tree.feature, self._first_bin, self._n_bins, self._kept)
            add_reached(bins, *by_node, self._ordered, scores, start, end, np.empty(_SETS, np.uint64))
        else:
            places = np.empty((2, _SIDE_BY_SIDE), np.int32)
            add_values(bins, self._nodes, self._left_bins, self._values, scores, start, end, places)


def add_tree(bins: np.ndarray, tree: BinTree, share: float, scores: np.ndarray) -> None:
    """scores[d] += share · the tree's value for document d, with the bins uint8 (n_features, n_docs or more)."""
    values = TreeValues(tree, share)
    run_ranges(lambda start, end: values.add(bins, scores, start, end), len(scores), least_items=_LEAST_DOCS)


def _bins_on_the_left(tree: BinTree) -> np.ndarray:
    """The set of bins that each node sends to the left, uint64 (n_nodes, 4)."""
    is_left = np.arange(_MOST_BINS) <= tree.cut[:, None]
    is_left[:, 0] = tree.missing_left != 0
    by_cut = np.packbits(is_left, axis=1, bitorder="little").view(np.uint64)
    return np.where(tree.cut[:, None] < 0, tree.left_bins, by_cut) if len(tree.left_bins) else by_cut
