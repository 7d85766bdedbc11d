"""Decision trees as inputs: one tree, one number.

Vocabulary. A node tests a *column*: one number made from one feature. Most columns are the unchanged feature; a column
can also treat zeros as missing values, or tell whether the feature is in a set of categories. A document goes left if
the column is at most the node's threshold, right if it is larger; the node defines where a missing value goes.
Column and threshold are both float32, so the decision is exact: importers round a threshold of another library to the
float32 that gives the same decision for every float32 feature.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from rankwell.kernels.scoring.rules import IN_CATEGORIES
from rankwell.scoring.array_checks import (
    check_array,
    check_ascending,
    check_numbers,
    check_offsets,
    check_vector,
    check_within,
    require,
)


@dataclass(frozen=True)
class TreeInputs:
    """input = the value of the leaf that a document reaches; one input per tree.

    Tree t has nodes ``node_ptr[t]:node_ptr[t + 1]``, the first of them its root, and leaves
    ``leaf_ptr[t]:leaf_ptr[t + 1]``, one more than nodes. A child is counted within its tree: c >= 0 is node c, c < 0 is
    leaf -1 - c. A child node comes after its parent.

    node_ptr, leaf_ptr : int64 (n_trees + 1,)
    column, left, right : int32 (n_nodes,)
    threshold : float32 (n_nodes,); left where column value <= threshold
    missing_left : uint8 (n_nodes,); 1 where a missing value goes left
    leaf_value : float64 (n_leaves,)
    column_feature : int32 (n_columns,); the feature a column is made of
    column_kind : uint8 (n_columns,); `VALUE`; `ZERO_IS_MISSING` (a value within 1e-35 of zero is missing as well); or
        `IN_CATEGORIES` (1 if the value without its fraction is one of the column's categories, 0 if it is not)
    category_ptr : int64 (n_columns + 1,); categories : int32, ascending within a column
    round_size : int; trees per round of boosting
    leaf_weight : float64 (n_leaves,); the training documents of a leaf, or their weight, for explanations; empty if
        unknown
    """

    kind: ClassVar[str] = "tree"
    node_ptr: np.ndarray
    leaf_ptr: np.ndarray
    column: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    leaf_value: np.ndarray
    column_feature: np.ndarray
    column_kind: np.ndarray
    category_ptr: np.ndarray
    categories: np.ndarray
    round_size: int = 1
    leaf_weight: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    def first(self, n_trees: int) -> TreeInputs:
        """The first `n_trees` trees."""
        return self.part(0, n_trees)

    def part(self, start: int, end: int) -> TreeInputs:
        """The trees start, ..., end − 1, with the columns of all."""
        nodes = slice(int(self.node_ptr[start]), int(self.node_ptr[end]))
        leaves = slice(int(self.leaf_ptr[start]), int(self.leaf_ptr[end]))
        return replace(
            self,
            node_ptr=self.node_ptr[start : end + 1] - nodes.start,
            leaf_ptr=self.leaf_ptr[start : end + 1] - leaves.start,
            column=self.column[nodes],
            threshold=self.threshold[nodes],
            missing_left=self.missing_left[nodes],
            left=self.left[nodes],
            right=self.right[nodes],
            leaf_value=self.leaf_value[leaves],
            leaf_weight=self.leaf_weight[leaves],
        )

    def categories_of(self, column: int) -> np.ndarray:
        """The categories of a column, int32; empty if it has none."""
        return self.categories[self.category_ptr[column] : self.category_ptr[column + 1]]


def check_trees(trees: TreeInputs, n_features: int) -> None:
    """Refuse trees that could not be walked safely: everything that comes from a file is checked here."""
    n_columns = check_vector(trees.column_feature, "the trees' column_feature", ("i4",))
    _check_shapes(trees, n_columns)
    check_within(trees.column_feature, n_features, "a tree's column reads a feature that does not exist")
    check_within(trees.column_kind, IN_CATEGORIES + 1, "a tree's column is of an unknown kind")
    check_within(trees.column, n_columns, "a tree's node tests a column that does not exist")
    require(not np.isnan(trees.threshold).any(), "a tree's threshold is not a number")
    check_within(trees.missing_left, 2, "a tree's missing_left is neither 0 nor 1")
    require(
        isinstance(trees.round_size, int) and 1 <= trees.round_size <= max(1, len(trees)),
        "the trees' round_size is not between 1 and the number of trees",
    )
    _check_children(trees)


def _check_shapes(trees: TreeInputs, n_columns: int) -> None:
    n_nodes = check_offsets(trees.node_ptr, "the trees' node_ptr")
    n_leaves = check_offsets(trees.leaf_ptr, "the trees' leaf_ptr", len(trees))
    n_categories = check_offsets(trees.category_ptr, "the trees' category_ptr", n_columns)
    for name, dtype in {"column": "i4", "threshold": "f4", "missing_left": "u1", "left": "i4", "right": "i4"}.items():
        check_array(getattr(trees, name), f"the trees' {name}", (dtype,), (n_nodes,))
    check_array(trees.column_kind, "the trees' column_kind", ("u1",), (n_columns,))
    check_array(trees.categories, "the trees' categories", ("i4",), (n_categories,))
    check_ascending(trees.categories, trees.category_ptr, "a column's categories")
    check_array(trees.leaf_value, "the trees' leaf_value", ("f8",), (n_leaves,))
    check_numbers(trees.leaf_value, "the trees' leaf_value", (n_leaves,))
    if trees.leaf_weight.shape != (0,):
        check_numbers(trees.leaf_weight, "the trees' leaf_weight", (n_leaves,))
        require(bool((trees.leaf_weight >= 0).all()), "a leaf's weight is below 0")
    require(
        bool((np.diff(trees.leaf_ptr) == np.diff(trees.node_ptr) + 1).all()),
        "a tree must have one leaf more than nodes",
    )


def _check_children(trees: TreeInputs) -> None:
    """Every node and leaf but the root has one parent, which comes before it: so every walk ends in a leaf."""
    sizes = np.diff(trees.node_ptr)
    tree_of_node = np.repeat(np.arange(len(trees)), sizes)
    place = np.arange(len(trees.left)) - trees.node_ptr[:-1][tree_of_node]
    n_nodes = sizes[tree_of_node]
    parents_of_nodes, parents_of_leaves = np.zeros(len(trees.left), int), np.zeros(len(trees.leaf_value), int)
    for child in (trees.left.astype(np.int64), trees.right.astype(np.int64)):
        is_node = child >= 0
        require(bool((child[is_node] > place[is_node]).all()), "a tree's child node comes before its parent")
        require(bool((child < n_nodes).all()) and bool((-1 - child <= n_nodes).all()), "a tree's child does not exist")
        np.add.at(parents_of_nodes, (child + trees.node_ptr[:-1][tree_of_node])[is_node], 1)
        np.add.at(parents_of_leaves, (-1 - child + trees.leaf_ptr[:-1][tree_of_node])[~is_node], 1)
    require(bool((parents_of_nodes == (place > 0)).all()), "a tree's node has no parent, or two")
    is_only_leaf = np.repeat(sizes == 0, sizes + 1)
    require(bool((parents_of_leaves == ~is_only_leaf).all()), "a tree's leaf has no parent, or two")
