"""Decision trees on the CPU, 64 documents at a time, by three loops, each the fastest measured for its case
(docs/algorithms/model-evaluation.md; the loop for few documents is in `tree_walks`):

- trees of up to 256 leaves: every node of a tree from the leaves up; a node compares 64 bins with its threshold and
  takes 64 leaf numbers from one child or the other. No branch, no gather.
- larger trees: 64 documents walk down, one level at a time.
- trees with few different tests, as symmetric ones: the outcomes of all tests, a bit each, are the place in a table.

First, features become *bins*: bin columns hold how many thresholds of a column are below the value, as one byte, at
most 255 thresholds per bin column; missing values get the bin that sends them in the direction of the nodes.

columns, trees : `ColumnArrays` and `TreeArrays` of `kinds`, made by `rankwell.scoring.tree_layout`
"""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.scoring.cpu.lanes import LANES, choose_child, count_below, find_outcomes, load_column
from rankwell.kernels.scoring.kinds import NODE_SLOT
from rankwell.kernels.scoring.rules import BIN_BITS, IN_CATEGORIES, LEAF_BIN, NEARLY_ZERO, SUM_RUN, ZERO_IS_MISSING

_BIN_MASK = np.uint32(LEAF_BIN)
_CHILD_BIT = np.uint32(BIN_BITS)


class TreeScratch(NamedTuple):
    """Scratch memory of one thread for 64 documents: bins, uint8 (n_bin_columns, 64), and slots, uint8 (512, 64), rows
    aligned to cache lines. The first 256 slots hold the numbers of the leaves.
    """

    bins: np.ndarray
    slots: np.ndarray


class _ThreadScratch(threading.local):
    """Scratch that a thread keeps between calls: allocating it takes a tenth of the time of scoring 64 documents."""

    def __init__(self) -> None:
        self.bins = _byte_rows(0)
        self.slots = _byte_rows(2 * NODE_SLOT)
        self.slots[:NODE_SLOT] = np.arange(NODE_SLOT, dtype=np.uint8)[:, None]


def tree_scratch(n_bin_columns: int) -> TreeScratch:
    """The calling thread's scratch memory, until its next call."""
    if len(_of_thread.bins) < n_bin_columns:
        _of_thread.bins = _byte_rows(n_bin_columns)
    return TreeScratch(_of_thread.bins[:n_bin_columns], _of_thread.slots)


def _byte_rows(n_rows: int) -> np.ndarray:
    """An uninitialised uint8 array (n_rows, 64) whose rows are aligned to cache lines."""
    raw = np.empty(n_rows * LANES + LANES, np.uint8)
    skip = -raw.ctypes.data % LANES
    return raw[skip : skip + n_rows * LANES].reshape(n_rows, LANES)


_of_thread = _ThreadScratch()


@kernel
def in_categories(categories, x):
    """1 where x without its fraction is one of the ascending categories; NaN where x is NaN."""
    if math.isnan(x) or not (np.float32(0.0) <= x < np.float32(2147483648.0)):
        return x if math.isnan(x) else np.float32(0.0)
    wanted, first, end = np.int32(x), 0, len(categories)
    while first < end:
        middle = (first + end) >> 1
        if categories[middle] < wanted:
            first = middle + 1
        else:
            end = middle
    return np.float32(first < len(categories) and categories[first] == wanted)


@kernel
def _fill_bins(rows, start, columns, values, ranks, bins):
    """The bins of up to 64 documents from row `start` on: uint8 (n_bin_columns, 64)."""
    for c in range(len(columns.feature)):
        load_column(rows, start, columns.feature[c], values)
        if columns.kind[c] == ZERO_IS_MISSING:
            for lane in range(LANES):
                if abs(values[lane]) <= NEARLY_ZERO:
                    values[lane] = np.nan
        elif columns.kind[c] == IN_CATEGORIES:
            categories = columns.categories[columns.category_ptr[c] : columns.category_ptr[c + 1]]
            for lane in range(LANES):
                values[lane] = in_categories(categories, values[lane])
        count_below(columns.thresholds[columns.threshold_ptr[c] : columns.threshold_ptr[c + 1]], values, ranks)
        for b in range(columns.bin_ptr[c], columns.bin_ptr[c + 1]):
            row, offset, for_missing = bins[b], np.int64(columns.first_rank[b]), columns.missing_bin[b]
            for lane in range(LANES):
                place = min(max(np.int64(ranks[lane]) - offset, 0), LEAF_BIN)
                row[lane] = for_missing if math.isnan(values[lane]) else place


@kernel
def _walk_level_by_level(words, child_shift, child_mask, depth, bins, places):
    """64 documents walk down one tree; places[lane] ends as the word of the lane's leaf."""
    for lane in range(LANES):
        places[lane] = 0
    for _ in range(depth):
        for lane in range(LANES):
            word = words[places[lane]]
            goes_right = bins[word >> child_shift, lane] > np.uint8(word & _BIN_MASK)
            places[lane] = ((word >> _CHILD_BIT) & child_mask) + np.uint32(goes_right)


@kernel
def _add_trees(first_tree, end_tree, trees, bins, slots, places, sums):
    """sums[lane] += the leaf value of the trees first_tree, ..., end_tree − 1, for 64 documents."""
    for t in range(first_tree, end_tree):
        start, end = trees.node_ptr[t], trees.node_ptr[t + 1]
        first_test, end_test = trees.test_ptr[t], trees.test_ptr[t + 1]
        if end_test > first_test:
            find_outcomes(bins, trees.tests, first_test, end_test, slots, NODE_SLOT)
            table, outcome = trees.table[trees.table_ptr[t] : trees.table_ptr[t + 1]], slots[NODE_SLOT]
            for lane in range(LANES):
                sums[lane] += table[outcome[lane]]
        elif end - start < NODE_SLOT:
            of_tree = trees.nodes[start:end]
            for i in range(len(of_tree)):
                choose_child(bins, slots, of_tree[i], NODE_SLOT + i)
            leaves = trees.leaf_value[start + t : end + t + 1]
            reached = slots[NODE_SLOT + len(of_tree) - 1] if len(of_tree) > 0 else slots[0]
            for lane in range(LANES):
                sums[lane] += leaves[reached[lane]]
        else:
            first, last = 2 * start + t, 2 * end + t + 1
            _walk_level_by_level(
                trees.words[first:last], trees.child_shift, trees.child_mask, trees.depth[t], bins, places
            )
            leaf_of_word = trees.word_value[first:last]
            for lane in range(LANES):
                sums[lane] += leaf_of_word[places[lane]]


@kernel
def sum_trees(rows, columns, trees, n_trees, scratch, out):
    """out[d] = the sum of the first `n_trees` trees for document d, in runs of `SUM_RUN`.

    rows : float32 (n_docs, n_features); scratch : `TreeScratch`; out : float64 (n_docs,)
    """
    values, ranks = np.empty(LANES, dtype=np.float32), np.empty(LANES, dtype=np.uint32)
    run, total = np.empty(LANES), np.empty(LANES)
    for start in range(0, len(rows), LANES):
        _fill_bins(rows, start, columns, values, ranks, scratch.bins)
        for lane in range(LANES):
            total[lane] = 0.0
        for first in range(0, n_trees, SUM_RUN):
            for lane in range(LANES):
                run[lane] = 0.0
            _add_trees(first, min(first + SUM_RUN, n_trees), trees, scratch.bins, scratch.slots, ranks, run)
            for lane in range(LANES):
                total[lane] += run[lane]
        for lane in range(min(LANES, len(rows) - start)):
            out[start + lane] = total[lane]


@kernel
def tree_inputs(rows, columns, trees, first_input, scratch, out):
    """out[block, first_input + t, lane] = the value of tree t for document 64 · block + lane.

    rows : float32 (n_docs, n_features); scratch : `TreeScratch`; out : float64 (n_blocks, n_inputs, 64)
    """
    values, ranks = np.empty(LANES, dtype=np.float32), np.empty(LANES, dtype=np.uint32)
    for block in range(out.shape[0]):
        _fill_bins(rows, block * LANES, columns, values, ranks, scratch.bins)
        for t in range(len(trees.node_ptr) - 1):
            to = out[block, first_input + t]
            for lane in range(LANES):
                to[lane] = 0.0
            _add_trees(t, t + 1, trees, scratch.bins, scratch.slots, ranks, to)
