"""The value that a tree over bins gives each document."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import kernel
from rankwell.kernels.threads import run_ranges
from rankwell.kernels.trees.contract import BinTree


@kernel
def add_values(bins, nodes, left_bins, values, scores, start, end):
    """Add the tree's value to the scores of documents start, ..., end − 1.

    bins : uint8 (n_docs, n_features); nodes : int32 (n_nodes, 5), feature, cut, left, right, missing_left
    left_bins : uint64 (n_nodes, 4), of the nodes whose cut is −1
    values : float64 (n_leaves,); scores : float64 (n_docs,)
    """
    for document in range(start, end):
        node = 0
        while node >= 0:
            own = bins[document, nodes[node, 0]]
            if nodes[node, 1] < 0:
                is_left = (left_bins[node, own >> 6] >> np.uint64(own & 63)) & np.uint64(1) != 0
            else:
                is_left = nodes[node, 4] != 0 if own == 0 else own <= nodes[node, 1]
            node = nodes[node, 2] if is_left else nodes[node, 3]
        scores[document] += values[-1 - node]


def add_tree(bins: np.ndarray, tree: BinTree, share: float, scores: np.ndarray) -> None:
    """scores[d] += share · the tree's value for document d, with the bins uint8 (n_docs, n_features)."""
    nodes = np.stack([tree.feature, tree.cut, tree.left, tree.right, tree.missing_left.astype(np.int32)], axis=1)
    values = tree.leaf_value.astype(np.float64) * share
    run_ranges(
        lambda start, end: add_values(bins, nodes, tree.left_bins, values, scores, start, end),
        len(bins),
        least_items=4096,
    )
