"""Counts the pairs of one query that a ranking puts right or wrong, in O(n log levels) instead of O(n²)."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel


@kernel
def count_pairs_of_query(levels, scores, order, tree):
    """Pairs with different labels and different scores, and pairs with equal scores.

    Walks down the ranking one run of equal scores at a time and keeps, in a Fenwick tree over label levels, how many
    documents of each level stand above.

    Parameters
    ----------
    levels : int64 array (n_docs,)
        The number of each document's label, 0 for the highest.
    order : int64 array (n_docs,)
        Documents by descending score.
    tree : int64 array (more than the highest level + 1,)
        Room to work.

    Returns
    -------
    n_right, n_wrong, n_equal_scores : int64
        Pairs whose better document has the higher score, whose worse one has, and pairs with equal scores.
    """
    n_docs = len(order)
    n_levels = np.int64(0)
    for level in levels:
        n_levels = max(n_levels, level + 1)
    tree[: n_levels + 1] = 0
    n_right, n_wrong, n_equal_scores = np.int64(0), np.int64(0), np.int64(0)
    start = 0
    while start < n_docs:
        end = start
        while end < n_docs and scores[order[end]] == scores[order[start]]:
            level = levels[order[end]]
            n_better = _count_up_to(tree, level - 1)
            n_right += n_better
            n_wrong += start - _count_up_to(tree, level)
            end += 1
        for place in range(start, end):
            _add_one(tree, n_levels, levels[order[place]])
        n_equal_scores += (end - start) * (end - start - 1) // 2
        start = end
    return n_right, n_wrong, n_equal_scores


@kernel
def _count_up_to(tree, level):
    """How many documents of level 0, ..., `level` the tree holds."""
    count = np.int64(0)
    node = level + 1
    while node > 0:
        count += tree[node]
        node -= node & -node
    return count


@kernel
def _add_one(tree, n_levels, level):
    node = level + 1
    while node <= n_levels:
        tree[node] += 1
        node += node & -node
