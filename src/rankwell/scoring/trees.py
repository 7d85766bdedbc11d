"""Decision trees as inputs: one tree, one number.

Vocabulary. A node tests a *column*: one number made from one feature. Most columns are the unchanged feature; a column
can also treat zeros as missing values, or tell whether the feature is in a set of categories. A document goes left if
the column is at most the node's threshold, right if it is larger; the node defines where a missing value goes.
Column and threshold are both float32, so the decision is exact: importers round a threshold of another library to the
float32 that gives the same decision for every float32 feature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.kernels.scoring.rules import IN_CATEGORIES


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

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    def first(self, n_trees: int) -> TreeInputs:
        """The first `n_trees` trees."""
        n_nodes, n_leaves = int(self.node_ptr[n_trees]), int(self.leaf_ptr[n_trees])
        return replace(
            self,
            node_ptr=self.node_ptr[: n_trees + 1],
            leaf_ptr=self.leaf_ptr[: n_trees + 1],
            column=self.column[:n_nodes],
            threshold=self.threshold[:n_nodes],
            missing_left=self.missing_left[:n_nodes],
            left=self.left[:n_nodes],
            right=self.right[:n_nodes],
            leaf_value=self.leaf_value[:n_leaves],
        )

    def categories_of(self, column: int) -> np.ndarray:
        """The categories of a column, int32; empty if it has none."""
        return self.categories[self.category_ptr[column] : self.category_ptr[column + 1]]


def check_trees(trees: TreeInputs, n_features: int) -> None:
    """Refuse trees that could not be walked safely: everything that comes from a file is checked here."""
    _check_shapes(trees)
    n_columns = len(trees.column_feature)
    _require(_within(trees.column_feature, n_features), "a tree's column reads a feature that does not exist")
    _require(_within(trees.column_kind, IN_CATEGORIES + 1), "a tree's column is of an unknown kind")
    _require(_within(trees.column, n_columns), "a tree's node tests a column that does not exist")
    _require(not np.isnan(trees.threshold).any(), "a tree's threshold is not a number")
    _require(bool(np.isfinite(trees.leaf_value).all()), "a tree's leaf is not finite")
    _require(_within(trees.missing_left, 2), "a tree's missing_left is neither 0 nor 1")
    _require(isinstance(trees.round_size, int) and trees.round_size >= 1, "the trees' round_size is not 1 or more")
    _check_children(trees)


def _check_shapes(trees: TreeInputs) -> None:
    for name in ("node_ptr", "leaf_ptr", "category_ptr"):
        pointer = getattr(trees, name)
        _require(
            pointer.ndim == 1 and pointer.dtype == np.int64 and len(pointer) >= 1 and pointer[0] == 0,
            f"the trees' {name} is not a list of offsets",
        )
        _require(bool((np.diff(pointer) >= 0).all()), f"the trees' {name} is not ascending")
    n_nodes = int(trees.node_ptr[-1])
    kinds = {"column": "i4", "threshold": "f4", "missing_left": "u1", "left": "i4", "right": "i4"}
    for name, dtype in kinds.items():
        array = getattr(trees, name)
        _require(array.shape == (n_nodes,) and array.dtype == np.dtype(dtype), f"the trees' {name} has a wrong shape")
    _require(trees.leaf_ptr.shape == trees.node_ptr.shape, "the trees' leaf_ptr has a wrong shape")
    _require(
        bool((np.diff(trees.leaf_ptr) == np.diff(trees.node_ptr) + 1).all()),
        "a tree must have one leaf more than nodes",
    )
    _require(
        trees.leaf_value.shape == (int(trees.leaf_ptr[-1]),) and trees.leaf_value.dtype == np.float64,
        "the trees' leaf_value has a wrong shape",
    )
    n_columns = len(trees.column_feature)
    for name, dtype in {"column_feature": "i4", "column_kind": "u1"}.items():
        array = getattr(trees, name)
        _require(array.shape == (n_columns,) and array.dtype == np.dtype(dtype), f"the trees' {name} has a wrong shape")
    _require(
        trees.category_ptr.shape == (n_columns + 1,)
        and trees.categories.shape == (int(trees.category_ptr[-1]),)
        and trees.categories.dtype == np.int32,
        "the trees' categories have a wrong shape",
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
        _require(bool((child[is_node] > place[is_node]).all()), "a tree's child node comes before its parent")
        _require(bool((child < n_nodes).all()) and bool((-1 - child <= n_nodes).all()), "a tree's child does not exist")
        np.add.at(parents_of_nodes, (child + trees.node_ptr[:-1][tree_of_node])[is_node], 1)
        np.add.at(parents_of_leaves, (-1 - child + trees.leaf_ptr[:-1][tree_of_node])[~is_node], 1)
    _require(bool((parents_of_nodes == (place > 0)).all()), "a tree's node has no parent, or two")
    is_only_leaf = np.repeat(sizes == 0, sizes + 1)
    _require(bool((parents_of_leaves == ~is_only_leaf).all()), "a tree's leaf has no parent, or two")


def _within(values: np.ndarray, end: int) -> bool:
    return bool(((values >= 0) & (values < end)).all())


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise FileFormatError(f"the ranker's description is damaged: {complaint}.")
