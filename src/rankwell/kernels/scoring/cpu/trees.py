"""Decision trees on the CPU. Three loops, each the fastest measured for its case (docs/algorithms/model-evaluation.md):

- many documents, trees of up to 256 leaves: 64 documents side by side, every node of a tree from the leaves up; a node
  compares 64 bins with its threshold and takes 64 leaf numbers from one child or the other. No branch, no gather.
- many documents, larger trees: 64 documents side by side walk down, a level at a time.
- few documents: one document walks down eight trees side by side.

First, features become *bins*: bin columns hold how many thresholds of a column lie below the value, as one byte, 255
thresholds a bin column at most; missing values get the bin that sends them where the nodes want them. See
`rankwell.scoring.tree_layout`, which makes the arrays named here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.scoring.cpu.lanes import LANES, byte_rows, choose_child, count_below, load_column
from rankwell.kernels.scoring.rules import IN_CATEGORIES, NEARLY_ZERO, SUM_RUN, ZERO_IS_MISSING

# The slots of a tree's nodes come after those of 256 leaves.
NODE_SLOT = 256
# Trees that one document walks at a time; it divides SUM_RUN.
_TREES_AT_ONCE = 8
# Levels walked before the first look whether all of them have reached a leaf, and between looks.
_LEVELS_FIRST, _LEVELS_MORE = 5, 2
_BYTE = np.uint32(255)
_EIGHT = np.uint32(8)


@kernel
def _in_categories(categories, x):
    """1 where x, its fraction cut off, is one of the ascending categories; NaN where it is NaN."""
    if math.isnan(x) or not (np.float32(0.0) <= x < np.float32(2147483648.0)):
        return x if math.isnan(x) else np.float32(0.0)
    place = np.searchsorted(categories, np.int32(x))
    return np.float32(place < len(categories) and categories[place] == np.int32(x))


@kernel
def _load_tested(rows, start, n_docs, feature, kind, categories, values):
    """One tested column of up to 64 documents."""
    load_column(rows, start, n_docs, feature, values)
    if kind == ZERO_IS_MISSING:
        for lane in range(LANES):
            if abs(values[lane]) <= NEARLY_ZERO:
                values[lane] = np.nan
    elif kind == IN_CATEGORIES:
        for lane in range(LANES):
            values[lane] = _in_categories(categories, values[lane])


@kernel
def _fill_bins(rows, start, n_docs, columns, bins, values, ranks):
    """The bins of up to 64 documents: uint8 (n_bin_columns, 64)."""
    feature, kind, category_ptr, categories, threshold_ptr, thresholds, bin_ptr, first_rank, missing_bin = columns
    for c in range(len(feature)):
        own_categories = categories[category_ptr[c] : category_ptr[c + 1]]
        _load_tested(rows, start, n_docs, feature[c], kind[c], own_categories, values)
        count_below(thresholds[threshold_ptr[c] : threshold_ptr[c + 1]], values, ranks)
        for b in range(bin_ptr[c], bin_ptr[c + 1]):
            row, offset, for_missing = bins[b], np.int64(first_rank[b]), missing_bin[b]
            for lane in range(LANES):
                place = min(max(np.int64(ranks[lane]) - offset, 0), 255)
                row[lane] = for_missing if math.isnan(values[lane]) else place


@kernel
def _walk_level_by_level(words, child_shift, child_mask, depth, bins, places):
    """64 documents walk down one tree; places[lane] ends as the word of the lane's leaf."""
    for lane in range(LANES):
        places[lane] = 0
    for _ in range(depth):
        for lane in range(LANES):
            word = words[places[lane]]
            goes_right = bins[word >> child_shift, lane] > np.uint8(word & _BYTE)
            places[lane] = ((word >> _EIGHT) & child_mask) + np.uint32(goes_right)


@kernel
def _add_trees(first_tree, end_tree, trees, bins, slots, places, sums):
    """sums[lane] += the leaf value of each tree from `first_tree` to before `end_tree`, for 64 documents."""
    node_ptr, nodes, leaf_value, depth, words, word_value, child_shift, child_mask = trees
    for t in range(first_tree, end_tree):
        start, end = node_ptr[t], node_ptr[t + 1]
        if end - start < NODE_SLOT:
            of_tree = nodes[start:end]
            for i in range(len(of_tree)):
                choose_child(bins, slots, of_tree[i], NODE_SLOT + i)
            leaves = leaf_value[start + t : end + t + 1]
            reached = slots[NODE_SLOT + len(of_tree) - 1] if len(of_tree) > 0 else slots[0]
            for lane in range(LANES):
                sums[lane] += leaves[reached[lane]]
        else:
            first, last = 2 * start + t, 2 * end + t + 1
            _walk_level_by_level(words[first:last], child_shift, child_mask, depth[t], bins, places)
            leaf_of_word = word_value[first:last]
            for lane in range(LANES):
                sums[lane] += leaf_of_word[places[lane]]


@kernel
def _leaf_slots(n_slots):
    """Slots for `_add_trees`: the first 256 hold the numbers of the leaves."""
    slots = byte_rows(n_slots)
    for leaf in range(min(n_slots, NODE_SLOT)):
        slots[leaf] = leaf
    return slots


@kernel(parallel=True)
def sum_trees(rows, columns, trees, n_trees, n_bin_columns, out):
    """out[d] = the sum of the first `n_trees` trees for document d, in runs as `SUM_RUN` says.

    rows : float32 (n_docs, n_features); columns, trees : tuples of `TreeLayout`; out : float64 (n_docs,)
    """
    n_docs = len(rows)
    for block in prange((n_docs + LANES - 1) // LANES):
        start = block * LANES
        count = min(LANES, n_docs - start)
        bins, slots = byte_rows(n_bin_columns), _leaf_slots(2 * NODE_SLOT)
        column_values, ranks = np.empty(LANES, dtype=np.float32), np.empty(LANES, dtype=np.uint32)
        run, total = np.empty(LANES), np.zeros(LANES)
        _fill_bins(rows, start, count, columns, bins, column_values, ranks)
        for first in range(0, n_trees, SUM_RUN):
            run[:] = 0.0
            _add_trees(first, min(first + SUM_RUN, n_trees), trees, bins, slots, ranks, run)
            for lane in range(LANES):
                total[lane] += run[lane]
        for lane in range(count):
            out[start + lane] = total[lane]


@kernel(parallel=True)
def tree_inputs(rows, columns, trees, n_bin_columns, first_input, out):
    """out[block, first_input + t, lane] = the value of tree t for document 64 · block + lane.

    rows : float32 (n_docs, n_features); out : float64 (n_blocks, n_inputs, 64)
    """
    n_docs, n_trees = len(rows), len(trees[0]) - 1
    for block in prange(out.shape[0]):
        start = block * LANES
        bins, slots = byte_rows(n_bin_columns), _leaf_slots(2 * NODE_SLOT)
        column_values, ranks = np.empty(LANES, dtype=np.float32), np.empty(LANES, dtype=np.uint32)
        _fill_bins(rows, start, min(LANES, n_docs - start), columns, bins, column_values, ranks)
        for t in range(n_trees):
            values = out[block, first_input + t]
            values[:] = 0.0
            _add_trees(t, t + 1, trees, bins, slots, ranks, values)


@kernel
def _bin_document(row, columns, values, ranks, lengths, bins):
    """The bins of one document: uint8 (n_bin_columns,). Columns side by side, as documents are in `count_below`."""
    feature, kind, category_ptr, categories, threshold_ptr, thresholds, bin_ptr, first_rank, missing_bin = columns
    longest = 0
    for c in range(len(feature)):
        x = row[feature[c]]
        if kind[c] == ZERO_IS_MISSING and abs(x) <= NEARLY_ZERO:
            x = np.float32(np.nan)
        elif kind[c] == IN_CATEGORIES:
            x = _in_categories(categories[category_ptr[c] : category_ptr[c + 1]], x)
        values[c] = x
        ranks[c] = threshold_ptr[c]
        lengths[c] = threshold_ptr[c + 1] - threshold_ptr[c]
        longest = max(longest, lengths[c])
    # A column that is done compares with the next column's first threshold, or the sentinel, and adds nothing.
    while longest > 0:
        for c in range(len(feature)):
            half = (lengths[c] + np.uint32(1)) >> np.uint32(1)
            middle = ranks[c] + max(half, np.uint32(1)) - np.uint32(1)
            ranks[c] += half * np.uint32(thresholds[middle] < values[c])
            lengths[c] -= half
        longest >>= 1
    for c in range(len(feature)):
        rank, is_missing = np.int64(ranks[c]) - threshold_ptr[c], math.isnan(values[c])
        for b in range(bin_ptr[c], bin_ptr[c + 1]):
            bins[b] = missing_bin[b] if is_missing else min(max(rank - np.int64(first_rank[b]), 0), 255)


@kernel
def _step(words, root, place, child_shift, child_mask, bins):
    """Where a document goes from the word at `place`: to a child, or nowhere from a leaf."""
    word = words[place]
    goes_right = bins[word >> child_shift] > np.uint8(word & _BYTE)
    return root + np.uint32((word >> _EIGHT) & child_mask) + np.uint32(goes_right)


@kernel
def _walk_one(tree, node_ptr, words, child_shift, child_mask, bins):
    """The word of the leaf that a document reaches in one tree."""
    root = np.uint32(2 * node_ptr[tree] + tree)
    before, place = root, _step(words, root, root, child_shift, child_mask, bins)
    while place != before:
        before, place = place, _step(words, root, place, child_shift, child_mask, bins)
    return place


@kernel
def _sum_run(first_tree, end_tree, node_ptr, words, word_value, child_shift, child_mask, bins):
    """The sum of some trees for one document, which walks down eight of them side by side."""
    roots, places = np.empty(_TREES_AT_ONCE, dtype=np.uint32), np.empty(_TREES_AT_ONCE, dtype=np.uint32)
    total = 0.0
    end_of_eights = first_tree + (end_tree - first_tree) // _TREES_AT_ONCE * _TREES_AT_ONCE
    for first in range(first_tree, end_of_eights, _TREES_AT_ONCE):
        for k in range(_TREES_AT_ONCE):
            roots[k] = np.uint32(2 * node_ptr[first + k] + first + k)
            places[k] = roots[k]
        for _ in range(_LEVELS_FIRST):
            for k in range(_TREES_AT_ONCE):
                places[k] = _step(words, roots[k], places[k], child_shift, child_mask, bins)
        moved = np.uint32(1)
        while moved != 0:
            moved = np.uint32(0)
            for _ in range(_LEVELS_MORE):
                for k in range(_TREES_AT_ONCE):
                    place = _step(words, roots[k], places[k], child_shift, child_mask, bins)
                    moved |= place ^ places[k]
                    places[k] = place
        for k in range(_TREES_AT_ONCE):
            total += word_value[places[k]]
    for t in range(end_of_eights, end_tree):
        total += word_value[_walk_one(t, node_ptr, words, child_shift, child_mask, bins)]
    return total


@kernel
def sum_trees_one_by_one(rows, columns, trees, n_trees, n_bin_columns, out):
    """`sum_trees` for a few documents: the same sums in the same order, without the work for 64."""
    node_ptr, _, _, _, words, word_value, child_shift, child_mask = trees
    n_columns = len(columns[0])
    bins, values = np.empty(n_bin_columns, dtype=np.uint8), np.empty(n_columns, dtype=np.float32)
    ranks, lengths = np.empty(n_columns, dtype=np.uint32), np.empty(n_columns, dtype=np.uint32)
    for d in range(len(rows)):
        _bin_document(rows[d], columns, values, ranks, lengths, bins)
        total = 0.0
        for first in range(0, n_trees, SUM_RUN):
            end = min(first + SUM_RUN, n_trees)
            total += _sum_run(first, end, node_ptr, words, word_value, child_shift, child_mask, bins)
        out[d] = total
