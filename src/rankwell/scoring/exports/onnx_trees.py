"""Trees as the attributes of ONNX's TreeEnsembleRegressor: all nodes of all trees as parallel lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.scoring.trees import TreeInputs


def tree_attributes(trees: TreeInputs, column_place: np.ndarray, *, summed: bool) -> dict[str, Any]:
    """The operator's attributes; its output has one column of all trees' sum, or one for each tree.

    column_place : for each column of the trees, which column of the operator's input it is
    """
    from onnx import numpy_helper

    sizes = np.diff(trees.node_ptr)
    tree_of_node = np.repeat(np.arange(len(trees)), sizes)
    tree_of_leaf = np.repeat(np.arange(len(trees)), sizes + 1)
    # Within a tree, nodes are numbered before leaves.
    node = np.arange(len(tree_of_node)) - trees.node_ptr[:-1][tree_of_node]
    leaf = np.arange(len(tree_of_leaf)) - trees.leaf_ptr[:-1][tree_of_leaf] + sizes[tree_of_leaf]
    true, false = (np.where(child >= 0, child, sizes[tree_of_node] - 1 - child) for child in (trees.left, trees.right))
    n_leaves = len(leaf)
    zeros = np.zeros(n_leaves, dtype=np.int64)
    # Trees one after another, the nodes of each from its root on.
    order = np.lexsort((np.concatenate((node, leaf)), np.concatenate((tree_of_node, tree_of_leaf))))

    def both(of_nodes: np.ndarray, of_leaves: np.ndarray = zeros) -> np.ndarray:
        return np.concatenate((of_nodes, of_leaves))[order]

    is_leaf = both(np.zeros(len(node), dtype=bool), np.ones(n_leaves, dtype=bool))
    return {
        "n_targets": 1 if summed else len(trees),
        "aggregate_function": "SUM",
        "post_transform": "NONE",
        "nodes_treeids": both(tree_of_node, tree_of_leaf).tolist(),
        "nodes_nodeids": both(node, leaf).tolist(),
        "nodes_featureids": both(column_place[trees.column]).tolist(),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values_as_tensor": numpy_helper.from_array(
            both(trees.threshold.astype(np.float64), np.zeros(n_leaves)), "thresholds"
        ),
        "nodes_truenodeids": both(true).tolist(),
        "nodes_falsenodeids": both(false).tolist(),
        "nodes_missing_value_tracks_true": both(trees.missing_left.astype(np.int64)).tolist(),
        "target_treeids": tree_of_leaf.tolist(),
        "target_nodeids": leaf.tolist(),
        "target_ids": (zeros if summed else tree_of_leaf).tolist(),
        "target_weights_as_tensor": numpy_helper.from_array(trees.leaf_value.astype(np.float64), "leaf_values"),
    }
