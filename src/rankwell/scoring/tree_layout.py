"""Trees arranged for scoring: features as bins, nodes as packed words.

A *bin column* belongs to one tested column and to up to 255 of its thresholds in a row. Its bin is how many of them are
below the value (0 to 255), so "value <= threshold j" is "bin <= j" on bytes. A missing value gets the bin that sends it
in the direction of its nodes: one bin column is enough if they agree on a rank among the thresholds (all left, all
right, or as a zero would go), otherwise those that send it left and those that send it right get separate bin columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwell.kernels.scoring.kinds import (
    COLUMN_BIT,
    LEFT_BIT,
    NODE_SLOT,
    RIGHT_BIT,
    SLOT_BITS,
    ColumnArrays,
    TreeArrays,
    TreeLayout,
)
from rankwell.kernels.scoring.rules import BIN_BITS, LEAF_BIN
from rankwell.scoring.trees import TreeInputs

THRESHOLDS_A_BIN_COLUMN = LEAF_BIN
# A tree is a table if it has no more different tests than this, and twice as many nodes: symmetric trees are.
_MOST_TESTS = 8
_NODES_A_TEST = 2


@dataclass(frozen=True)
class BinColumns:
    """How features become bins, and what each node tests.

    threshold_ptr : int64 (n_columns + 1,)
    thresholds : float32, ascending and distinct in a column, +inf after the last
    bin_ptr : int64 (n_columns + 1,), the bin columns of a column
    first_rank : int32, missing_bin : uint8 (n_bin_columns,)
    node_column : int64, node_bin : uint8 (n_nodes,); left where bins[node_column] <= node_bin
    """

    threshold_ptr: np.ndarray
    thresholds: np.ndarray
    bin_ptr: np.ndarray
    first_rank: np.ndarray
    missing_bin: np.ndarray
    node_column: np.ndarray
    node_bin: np.ndarray


def lay_out(trees: TreeInputs) -> TreeLayout:
    """Arrange `trees` for the kernels."""
    bins = bin_columns(trees)
    child_bits = int(2 * np.diff(trees.node_ptr).max(initial=0) + 1).bit_length()
    words, word_value = walking_words(trees, bins, child_bits)
    test_ptr, tests, table_ptr, table = outcome_tables(trees, bins)
    return TreeLayout(
        ColumnArrays(
            feature=own_array(trees.column_feature),
            kind=own_array(trees.column_kind),
            category_ptr=own_array(trees.category_ptr),
            categories=own_array(trees.categories),
            threshold_ptr=bins.threshold_ptr,
            thresholds=bins.thresholds,
            bin_ptr=bins.bin_ptr,
            first_rank=bins.first_rank,
            missing_bin=bins.missing_bin,
        ),
        TreeArrays(
            node_ptr=own_array(trees.node_ptr),
            depth=tree_depths(trees),
            nodes=_packed_nodes(trees, bins),
            leaf_value=own_array(trees.leaf_value),
            words=words,
            word_value=word_value,
            child_shift=words.dtype.type(BIN_BITS + child_bits),
            child_mask=words.dtype.type((1 << child_bits) - 1),
            test_ptr=test_ptr,
            tests=tests,
            table_ptr=table_ptr,
            table=table,
        ),
    )


def own_array(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """`array` as kernels take it. Read-only or unaligned arrays, as read from files, would need separate kernels."""
    return np.require(array, dtype, ["C", "A", "W"])


def bin_columns(trees: TreeInputs) -> BinColumns:
    """The bin columns of `trees`, column by column."""
    node_column, node_bin = np.zeros(len(trees.column), np.int64), np.zeros(len(trees.column), np.uint8)
    threshold_ptr, bin_ptr, thresholds = [0], [0], []
    first_rank: list[int] = []
    missing_bin: list[int] = []
    by_column = np.argsort(trees.column, kind="stable")
    bounds = np.searchsorted(trees.column[by_column], np.arange(len(trees.column_feature) + 1))
    for c in range(len(trees.column_feature)):
        nodes = by_column[bounds[c] : bounds[c + 1]]
        distinct, rank = np.unique(trees.threshold[nodes], return_inverse=True)
        thresholds.append(distinct)
        threshold_ptr.append(threshold_ptr[-1] + len(thresholds[-1]))
        segment = rank // THRESHOLDS_A_BIN_COLUMN
        for group, missing_rank in _missing_groups(rank, trees.missing_left[nodes]):
            for s in np.unique(segment[group]).tolist():
                own = nodes[group][segment[group] == s]
                start = s * THRESHOLDS_A_BIN_COLUMN
                node_column[own] = len(first_rank)
                node_bin[own] = rank[group][segment[group] == s] - start
                first_rank.append(start)
                missing_bin.append(min(max(missing_rank - start, 0), LEAF_BIN))
        bin_ptr.append(len(first_rank))
    return BinColumns(
        threshold_ptr=np.array(threshold_ptr, np.int64),
        thresholds=np.concatenate([*thresholds, np.full(1, np.inf, np.float32)]),
        bin_ptr=np.array(bin_ptr, np.int64),
        first_rank=np.array(first_rank, np.int32),
        missing_bin=np.array(missing_bin, np.uint8),
        node_column=node_column,
        node_bin=node_bin,
    )


def _missing_groups(rank: np.ndarray, missing_left: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """Nodes of one column in groups that agree on a rank for missing values: (which nodes, that rank)."""
    goes_left = missing_left.astype(bool)
    # A value of rank r goes left at the nodes whose threshold has a rank of r or more.
    lowest_left = int(rank[goes_left].min(initial=len(rank)))
    highest_right = int(rank[~goes_left].max(initial=-1))
    everything = np.ones(len(rank), dtype=bool)
    if len(rank) == 0:
        return []
    if highest_right < lowest_left:
        return [(everything, highest_right + 1)]
    return [(goes_left, 0), (~goes_left, len(rank))]


def _packed_nodes(trees: TreeInputs, bins: BinColumns) -> np.ndarray:
    """uint64 (n_nodes,), see `kinds.LEFT_BIT`; not used for trees of more than 255 nodes."""
    sizes = np.diff(trees.node_ptr)
    size = np.repeat(sizes, sizes)
    end = np.repeat(trees.node_ptr[1:], sizes)
    packed = bins.node_bin.astype(np.uint64) | bins.node_column.astype(np.uint64) << np.uint64(COLUMN_BIT)
    for child, bit in ((trees.left, LEFT_BIT), (trees.right, RIGHT_BIT)):
        slot = np.where(child >= 0, NODE_SLOT + size - 1 - child, -1 - child)
        packed |= (slot.astype(np.uint64) & np.uint64((1 << SLOT_BITS) - 1)) << np.uint64(bit)
    backwards = end - 1 - (np.arange(len(size)) - (end - size))
    return packed[backwards]


def walking_words(trees: TreeInputs, bins: BinColumns, child_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Words to walk by, and the leaf value of each word that is a leaf: uint32 (uint64 if they do not fit)."""
    sizes = np.diff(trees.node_ptr)
    n_words = 2 * sizes + 1
    tree = np.repeat(np.arange(len(trees)), sizes)
    place = np.arange(len(tree)) - trees.node_ptr[:-1][tree]
    first_word = np.concatenate(([0], np.cumsum(n_words)))[:-1]
    column_bits = len(bins.first_rank).bit_length()
    dtype = np.dtype(np.uint32 if BIN_BITS + child_bits + column_bits <= 32 else np.uint64)
    # Every word is initialised as a leaf that points to itself.
    local = np.arange(int(n_words.sum())) - np.repeat(first_word, n_words)
    words = local.astype(np.uint64) << np.uint64(BIN_BITS) | np.uint64(LEAF_BIN)
    word_value = np.zeros(len(words))
    node_word = first_word[tree]  # a root's word is the first of its tree; other nodes' are set by their parents
    for child, side in ((trees.left, 1), (trees.right, 2)):
        word = first_word[tree] + 2 * place + side
        inner = child >= 0
        node_word[trees.node_ptr[:-1][tree[inner]] + child[inner]] = word[inner]
        word_value[word[~inner]] = trees.leaf_value[trees.leaf_ptr[:-1][tree[~inner]] - 1 - child[~inner]]
    only_leaf = np.flatnonzero(sizes == 0)
    word_value[first_word[only_leaf]] = trees.leaf_value[trees.leaf_ptr[only_leaf]]
    words[node_word] = (
        bins.node_bin.astype(np.uint64)
        | (2 * place + 1).astype(np.uint64) << np.uint64(BIN_BITS)
        | bins.node_column.astype(np.uint64) << np.uint64(BIN_BITS + child_bits)
    )
    return words.astype(dtype), word_value


def outcome_tables(trees: TreeInputs, bins: BinColumns) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """test_ptr, tests, table_ptr and table of `TreeArrays`."""
    sizes = np.diff(trees.node_ptr)
    test = bins.node_column.astype(np.int64) << BIN_BITS | bins.node_bin
    tree = np.repeat(np.arange(len(trees)), sizes)
    by_test = np.lexsort((test, tree))
    is_new = np.ones(len(test), bool)
    is_new[1:] = (np.diff(tree[by_test]) != 0) | (np.diff(test[by_test]) != 0)
    n_tests = np.bincount(tree[by_test][is_new], minlength=len(trees))
    n_tests[(n_tests > _MOST_TESTS) | (_NODES_A_TEST * n_tests > sizes)] = 0
    tests, tables = [np.empty(0, np.int64)], [np.empty(0)]
    for t in np.flatnonzero(n_tests).tolist():
        nodes = slice(int(trees.node_ptr[t]), int(trees.node_ptr[t + 1]))
        own, number = np.unique(test[nodes], return_inverse=True)
        tests.append(own)
        tables.append(_table(trees, t, number, len(own)))
    table_sizes = np.where(n_tests > 0, 1 << n_tests, 0)
    return _offsets(n_tests), np.concatenate(tests).astype(np.uint32), _offsets(table_sizes), np.concatenate(tables)


def _table(trees: TreeInputs, t: int, number: np.ndarray, n_tests: int) -> np.ndarray:
    """The value of tree t for each outcome of its tests, float64 (2^n_tests,); number : each node's test"""
    outcome = np.arange(1 << n_tests)
    start = int(trees.node_ptr[t])
    place = np.zeros(len(outcome), np.int64)
    while (place >= 0).any():
        node = np.maximum(place, 0)
        goes_right = outcome >> number[node] & 1
        child = np.where(goes_right, trees.right[start + node], trees.left[start + node])
        place = np.where(place >= 0, child, place)
    return trees.leaf_value[int(trees.leaf_ptr[t]) - 1 - place]


def _offsets(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def tree_depths(trees: TreeInputs) -> np.ndarray:
    """The number of nodes on each tree's longest path, int64 (n_trees,)."""
    sizes = np.diff(trees.node_ptr)
    tree = np.repeat(np.arange(len(trees)), sizes)
    offset = trees.node_ptr[:-1][tree]
    depth = np.zeros(len(trees), dtype=np.int64)
    level = trees.node_ptr[:-1][sizes > 0]
    n_levels = 0
    while len(level):
        n_levels += 1
        depth[tree[level]] = n_levels
        children = np.concatenate([trees.left[level], trees.right[level]])
        offsets = np.concatenate([offset[level], offset[level]])
        level = (offsets + children)[children >= 0]
    return depth
