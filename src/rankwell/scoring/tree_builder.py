"""Building `TreeInputs` tree by tree, as importers and tests do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankwell.kernels.scoring.rules import IN_CATEGORIES, VALUE
from rankwell.scoring.trees import TreeInputs


@dataclass(frozen=True)
class Tree:
    """One tree as flat lists; a child c >= 0 is node c, c < 0 is leaf -1 - c (see `TreeInputs`).

    leaf_weight : how many training documents each leaf had; () if unknown
    """

    column: Sequence[int]
    threshold: Sequence[float] | np.ndarray
    missing_left: Sequence[bool] | np.ndarray
    left: Sequence[int]
    right: Sequence[int]
    leaf_value: Sequence[float] | np.ndarray
    leaf_weight: Sequence[float] | np.ndarray = ()


class TreeBuilder:
    """Collects columns and trees."""

    def __init__(self) -> None:
        self._columns: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self._trees: list[Tree] = []

    def column(self, feature: int, kind: int = VALUE, categories: Sequence[int] = ()) -> int:
        """The number of the column made from `feature` in this way; equal columns are stored once."""
        key = (feature, kind, tuple(sorted(set(categories))) if kind == IN_CATEGORIES else ())
        return self._columns.setdefault(key, len(self._columns))

    def add(self, tree: Tree) -> None:
        """Append a tree; its nodes are renumbered so that children come after their parents."""
        self._trees.append(_parents_first(tree))

    def build(self, *, round_size: int = 1) -> TreeInputs:
        """All trees added so far."""
        trees, columns = self._trees, list(self._columns)
        return TreeInputs(
            node_ptr=_offsets([len(tree.column) for tree in trees]),
            leaf_ptr=_offsets([len(tree.leaf_value) for tree in trees]),
            column=_joined([tree.column for tree in trees], np.int32),
            threshold=_joined([tree.threshold for tree in trees], np.float32),
            missing_left=_joined([tree.missing_left for tree in trees], np.uint8),
            left=_joined([tree.left for tree in trees], np.int32),
            right=_joined([tree.right for tree in trees], np.int32),
            leaf_value=_joined([tree.leaf_value for tree in trees], np.float64),
            column_feature=np.array([feature for feature, _, _ in columns], dtype=np.int32),
            column_kind=np.array([kind for _, kind, _ in columns], dtype=np.uint8),
            category_ptr=_offsets([len(categories) for _, _, categories in columns]),
            categories=_joined([categories for _, _, categories in columns], np.int32),
            round_size=round_size,
            leaf_weight=_leaf_weights(trees),
        )


def float32_not_above(thresholds: np.ndarray) -> np.ndarray:
    """The largest float32 not above each float64: for a float32 x, x <= threshold if and only if x <= this.

    Rounding to nearest could give the float32 just above the threshold, and an x equal to it would count as not above.
    """
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
        below = np.nextafter(rounded, np.float32(-np.inf))
    return np.where(rounded > thresholds, below, rounded)


def float32_below(thresholds: np.ndarray) -> np.ndarray:
    """The float32 just below each float32: x < threshold if and only if x <= this."""
    # The value below the lowest float32 is minus infinity, as intended.
    with np.errstate(over="ignore"):
        return np.nextafter(thresholds.astype(np.float32), np.float32(-np.inf))


def float32_above(thresholds: np.ndarray) -> np.ndarray:
    """The float32 just above each float32: x <= threshold if and only if x < this."""
    with np.errstate(over="ignore"):
        return np.nextafter(thresholds.astype(np.float32), np.float32(np.inf))


def _parents_first(tree: Tree) -> Tree:
    left, right = np.asarray(tree.left, dtype=np.int64), np.asarray(tree.right, dtype=np.int64)
    internal = np.flatnonzero(left >= 0), np.flatnonzero(right >= 0)
    if (left[internal[0]] > internal[0]).all() and (right[internal[1]] > internal[1]).all():
        return tree
    order = [0]
    for node in order:
        order.extend(int(child) for child in (left[node], right[node]) if child >= 0)
        if len(order) > len(left):
            break  # a cycle, or a node with two parents: `check_trees` refuses it
    order = order[: len(left)]
    place = np.zeros(len(left), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Tree(
        column=np.asarray(tree.column)[order].tolist(),
        threshold=np.asarray(tree.threshold)[order],
        missing_left=np.asarray(tree.missing_left)[order],
        left=np.where(left[order] >= 0, place[np.maximum(left[order], 0)], left[order]).tolist(),
        right=np.where(right[order] >= 0, place[np.maximum(right[order], 0)], right[order]).tolist(),
        leaf_value=tree.leaf_value,
        leaf_weight=tree.leaf_weight,
    )


def _leaf_weights(trees: Sequence[Tree]) -> np.ndarray:
    """The weights of all leaves; empty if those of any tree are unknown."""
    if any(len(tree.leaf_weight) != len(tree.leaf_value) for tree in trees):
        return np.zeros(0)
    return _joined([tree.leaf_weight for tree in trees], np.float64)


def _offsets(sizes: Sequence[int]) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)


def _joined(parts: Sequence[Sequence[float] | np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *(np.asarray(part, dtype=dtype) for part in parts)])
