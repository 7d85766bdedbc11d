"""Bucket inputs as trees: a step function of one feature is a balanced tree over its edges."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rankwell.scoring.inputs import BucketInputs
from rankwell.scoring.tree_builder import Tree, TreeBuilder
from rankwell.scoring.trees import TreeInputs

# At most this for every feature, which is finite or missing.
_LARGEST = float(np.finfo(np.float32).max)


def bucket_trees(group: BucketInputs) -> TreeInputs:
    """One tree for each input, with the input's values in its leaves: the same scores, to the bit."""
    builder = TreeBuilder()
    for i, feature in enumerate(group.feature.tolist()):
        start, end = int(group.edge_ptr[i]), int(group.edge_ptr[i + 1])
        edges, values = group.edges[start:end], group.values[start + i : end + i + 1]
        builder.add(_step_tree(builder.column(feature), edges, values, float(group.missing[i])))
    return builder.build()


@dataclass
class _GrowingTree:
    column: int
    missing_left: bool
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)

    def node(self, threshold: float) -> int:
        self.threshold.append(threshold)
        self.left.append(0)
        self.right.append(0)
        return len(self.threshold) - 1

    def split(self, edges: np.ndarray, first: int, end: int) -> int:
        """The node (or leaf) that tells the buckets first, ..., end apart, by the edges between them."""
        if first == end:
            return -1 - first
        middle = (first + end) // 2
        node = self.node(float(edges[middle]))
        self.left[node] = self.split(edges, first, middle)
        self.right[node] = self.split(edges, middle + 1, end)
        return node


def _step_tree(column: int, edges: np.ndarray, values: np.ndarray, missing: float) -> Tree:
    """A missing value goes to the lowest or the highest bucket if that has its value, else to a leaf of its own."""
    growing = _GrowingTree(column, missing_left=missing == values[0])
    leaves = values.tolist()
    if missing in (values[0], values[-1]):
        growing.split(edges, 0, len(edges))
    else:
        root = growing.node(_LARGEST)
        growing.left[root] = growing.split(edges, 0, len(edges))
        growing.right[root] = -1 - len(leaves)
        leaves.append(missing)
    n_nodes = len(growing.threshold)
    return Tree(
        [column] * n_nodes, growing.threshold, [growing.missing_left] * n_nodes, growing.left, growing.right, leaves
    )
