"""The trees that LambdaMART grew, on the features' own scale: as a model, as arrays, and what they say of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.kernels.scoring.rules import IN_CATEGORIES, VALUE
from rankwell.kernels.trees.contract import BinTree
from rankwell.scoring.description import TreeInputs
from rankwell.scoring.tree_builder import Tree, TreeBuilder

IMPORTANCES = ("gain", "split")
# What the gains of the nodes are called in a ranker file.
_GAIN = "gain"


@dataclass(frozen=True)
class BinValues:
    """What the bins of a training mean.

    thresholds : float32 (n_features, 256), of each bin (`Binner.threshold_table`)
    categories : by categorical feature, the categories of its bins 1, 2, ...; int32, ascending
    """

    thresholds: np.ndarray
    categories: Mapping[int, np.ndarray]


@dataclass(frozen=True)
class GrownTree:
    """One tree: see `TreeInputs` for its arrays.

    gain is by node; leaf_docs, training documents, by leaf. n_categories is by node: how many categories go right (all
    others go left), −1 where a threshold decides; `categories` has them, node after node.
    """

    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    gain: np.ndarray
    n_categories: np.ndarray
    categories: np.ndarray
    leaf_value: np.ndarray
    leaf_docs: np.ndarray

    @classmethod
    def from_bins(cls, tree: BinTree, values: BinValues, share: float = 1.0) -> Self:
        """The tree over values, its leaf values times `share`."""
        by_thresholds = cls(
            feature=tree.feature,
            threshold=values.thresholds[tree.feature, tree.cut],
            missing_left=tree.missing_left,
            left=tree.left,
            right=tree.right,
            gain=tree.gain,
            n_categories=np.full(len(tree.feature), -1),
            categories=np.empty(0, np.int32),
            leaf_value=tree.leaf_value.astype(np.float64) * share,
            leaf_docs=tree.leaf_docs,
        )
        return by_thresholds._with_sets(tree, values) if len(tree.left_bins) else by_thresholds

    def _with_sets(self, tree: BinTree, values: BinValues) -> Self:
        """The same with the sets of nodes that have one, instead of a threshold."""
        # In a tree over bins the set is on the left, here it is on the right: "it is in the set" is 1, and above 0.
        has_set = tree.cut < 0
        sets = [_categories(tree, node, values) for node in np.flatnonzero(has_set).tolist()]
        n_categories = self.n_categories.copy()
        n_categories[has_set] = [len(own) for own in sets]
        return replace(
            self,
            threshold=np.where(has_set, np.float32(0.0), self.threshold),
            missing_left=np.where(has_set, 1 - tree.missing_left, tree.missing_left),
            left=np.where(has_set, tree.right, tree.left),
            right=np.where(has_set, tree.left, tree.right),
            n_categories=n_categories,
            categories=np.concatenate([self.categories, *sets]),
        )


def _categories(tree: BinTree, node: int, values: BinValues) -> np.ndarray:
    """The categories in a node's set, int32, ascending."""
    bits = np.unpackbits(tree.left_bins[node].view(np.uint8), bitorder="little")
    bins = np.flatnonzero(bits)
    return values.categories[int(tree.feature[node])][bins[bins > 0] - 1]


_BY_LEAF = ("leaf_value", "leaf_docs")


class GrownTrees:
    """A sequence of trees.

    Attributes
    ----------
    trees : list of GrownTree
    """

    def __init__(self, trees: Sequence[GrownTree] = ()) -> None:
        self.trees = list(trees)

    def __len__(self) -> int:
        return len(self.trees)

    @property
    def n_cuts(self) -> int:
        return sum(len(tree.feature) for tree in self.trees)

    def first(self, n_trees: int) -> GrownTrees:
        return GrownTrees(self.trees[:n_trees])

    def inputs(self, round_size: int = 1) -> TreeInputs:
        """The trees as inputs of a description, `round_size` of them in a round."""
        builder = TreeBuilder()
        for tree in self.trees:
            columns = _columns(tree, builder)
            children = tree.left.tolist(), tree.right.tolist()
            values = tree.leaf_value, tree.leaf_docs
            builder.add(Tree(columns, tree.threshold, tree.missing_left, *children, *values))
        return builder.build(round_size=round_size if self.trees else 1)

    def statistics(self) -> dict[str, np.ndarray]:
        """What a ranker file keeps besides the description."""
        return {_GAIN: self._joined("gain")}

    @classmethod
    def from_model(cls, inputs: TreeInputs, statistics: Mapping[str, np.ndarray]) -> Self:
        """The inverse of `inputs` and `statistics`; an error if they do not fit together."""
        gains = statistics.get(_GAIN)
        if gains is None or gains.shape != inputs.column.shape:
            raise FileFormatError(f"the trees' gains are absent, or not {len(inputs.column)} numbers.")
        if len(inputs.leaf_weight) != len(inputs.leaf_value):
            raise FileFormatError("the trees' leaves have no numbers of documents.")
        is_set = (inputs.column_kind == IN_CATEGORIES)[inputs.column]
        sizes = np.diff(inputs.category_ptr)[inputs.column]
        sets = [inputs.categories_of(column) for column in inputs.column[is_set].tolist()]
        arrays = {
            "n_categories": np.where(is_set, sizes, -1),
            "categories": np.concatenate([np.empty(0, np.int32), *sets]),
            "feature": inputs.column_feature[inputs.column],
            **{name: getattr(inputs, name) for name in ("threshold", "missing_left", "left", "right", "leaf_value")},
            "gain": gains,
            "leaf_docs": inputs.leaf_weight,
        }
        return cls(_divided(arrays, inputs.node_ptr, inputs.leaf_ptr))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a checkpoint."""
        arrays = {field.name: self._joined(field.name) for field in fields(GrownTree)}
        arrays["node_ptr"] = np.cumsum([0, *(len(tree.feature) for tree in self.trees)])
        arrays["leaf_ptr"] = np.cumsum([0, *(len(tree.leaf_value) for tree in self.trees)])
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """The inverse of `to_arrays`."""
        return cls(_divided(arrays, arrays["node_ptr"], arrays["leaf_ptr"]))

    def importance(self, kind: str, n_features: int) -> np.ndarray:
        """Σ of the gains of the nodes that test a feature, or their number; float64 (n_features,)."""
        totals = np.zeros(n_features)
        gains = self._joined("gain")
        np.add.at(totals, self._joined("feature"), gains if kind == "gain" else np.ones(len(gains)))
        return totals

    def _joined(self, name: str) -> np.ndarray:
        kind = _KINDS[name]
        return np.concatenate([np.empty(0, kind), *(getattr(tree, name).astype(kind) for tree in self.trees)])


def _columns(tree: GrownTree, builder: TreeBuilder) -> list[int]:
    """The column that each node tests."""
    columns, first = [], 0
    for feature, n_categories in zip(tree.feature.tolist(), tree.n_categories.tolist(), strict=True):
        if n_categories < 0:
            columns.append(builder.column(feature, VALUE))
            continue
        columns.append(builder.column(feature, IN_CATEGORIES, tree.categories[first : first + n_categories].tolist()))
        first += n_categories
    return columns


_KINDS: dict[str, type] = {
    "feature": np.int32,
    "threshold": np.float32,
    "missing_left": np.uint8,
    "left": np.int32,
    "right": np.int32,
    "gain": np.float64,
    "n_categories": np.int32,
    "categories": np.int32,
    "leaf_value": np.float64,
    "leaf_docs": np.float64,
}


def _divided(arrays: Mapping[str, np.ndarray], node_ptr: np.ndarray, leaf_ptr: np.ndarray) -> list[GrownTree]:
    ends = {name: leaf_ptr if name in _BY_LEAF else node_ptr for name in _KINDS}
    by_node = np.concatenate([[0], np.cumsum(np.maximum(arrays["n_categories"], 0))]).astype(np.int64)
    ends["categories"] = by_node[node_ptr]
    return [
        GrownTree(**{name: arrays[name][ptr[number] : ptr[number + 1]] for name, ptr in ends.items()})
        for number in range(len(node_ptr) - 1)
    ]
