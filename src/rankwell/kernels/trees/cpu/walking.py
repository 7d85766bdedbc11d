"""The value that a tree over bins gives each document."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel, kernel
from rankwell.kernels.threads import run_ranges
from rankwell.kernels.trees.contract import BinTree

# Documents that walk down side by side: a processor works on several of them at once.
_SIDE_BY_SIDE = 256
_MOST_BINS = 256
# A range of fewer takes less time than waking a thread.
_LEAST_DOCS = 16384
U = np.uint64


@inlined_kernel
def _next_node(bins, document, node, nodes, left_bins):
    own = U(bins[document, U(nodes[node, U(0)])])
    is_right = U(1) - ((left_bins[node, own >> U(6)] >> (own & U(63))) & U(1))
    return nodes[node, U(1) + is_right]


@kernel
def add_values(bins, nodes, left_bins, values, scores, start, end, places):
    """Add the tree's value to the scores of documents start, ..., end − 1.

    bins : uint8 (n_docs, n_features); nodes : int32 (n_nodes, 3), feature, left, right
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


def add_tree(bins: np.ndarray, tree: BinTree, share: float, scores: np.ndarray) -> None:
    """scores[d] += share · the tree's value for document d, with the bins uint8 (n_docs, n_features)."""
    # Its value is 0.
    if tree.n_leaves == 1:
        return
    nodes = np.stack([tree.feature, tree.left, tree.right], axis=1)
    values, left_bins = tree.leaf_value.astype(np.float64) * share, _bins_on_the_left(tree)

    def add(start: int, end: int) -> None:
        places = np.empty((2, _SIDE_BY_SIDE), np.int32)
        add_values(bins, nodes, left_bins, values, scores, start, end, places)

    run_ranges(add, len(bins), least_items=_LEAST_DOCS)


def _bins_on_the_left(tree: BinTree) -> np.ndarray:
    """The set of bins that each node sends to the left, uint64 (n_nodes, 4)."""
    is_left = np.arange(_MOST_BINS) <= tree.cut[:, None]
    is_left[:, 0] = tree.missing_left != 0
    by_cut = np.packbits(is_left, axis=1, bitorder="little").view(np.uint64)
    return np.where(tree.cut[:, None] < 0, tree.left_bins, by_cut) if len(tree.left_bins) else by_cut
