"""Counts the pairs of a query that a ranking puts right or wrong, in O(n log levels) instead of O(n²)."""

from __future__ import annotations

from rankwell.kernels.cpu.compilation import inner_kernel, kernel


@kernel
def count_pairs(query_ptr, levels, scores, order, tree, counts):
    """Pairs with different labels and different scores, and pairs with equal scores, of each query.

    Walks down the ranking one run of equal scores at a time and keeps, in a Fenwick tree over label levels, how many
    documents of each level are above.

    Parameters
    ----------
    query_ptr : int64 array (n_queries + 1,)
    levels : int64 array (n_docs,)
        The number of each document's label in its query, 0 for the highest.
    scores : float64 array (n_docs,)
    order : int64 array (n_docs,)
        The documents of each query by descending score.
    tree : int64 array (more than the highest level + 1,)
        Room to work.
    counts : int64 array (n_queries, 3), filled
        Pairs whose better document has the higher score, whose worse one has, and pairs with equal scores.
    """
    for query in range(len(query_ptr) - 1):
        first, last = query_ptr[query], query_ptr[query + 1]
        n_levels = 0
        for doc in range(first, last):
            n_levels = max(n_levels, levels[doc] + 1)
        for node in range(n_levels + 1):
            tree[node] = 0
        n_right, n_wrong, n_equal_scores = 0, 0, 0
        start = first
        while start < last:
            end = start
            while end < last and scores[order[end]] == scores[order[start]]:
                level = levels[order[end]]
                n_right += _count_up_to(tree, level - 1)
                n_wrong += start - first - _count_up_to(tree, level)
                end += 1
            for place in range(start, end):
                node = levels[order[place]] + 1
                while node <= n_levels:
                    tree[node] += 1
                    node += node & -node
            n_equal_scores += (end - start) * (end - start - 1) // 2
            start = end
        counts[query, 0], counts[query, 1], counts[query, 2] = n_right, n_wrong, n_equal_scores


@inner_kernel
def _count_up_to(tree, level):
    """How many documents of level 0, ..., `level` the tree holds."""
    count = 0
    node = level + 1
    while node > 0:
        count += tree[node]
        node -= node & -node
    return count
