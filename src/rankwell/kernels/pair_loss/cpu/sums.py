"""Sums over the support pairs of one query (equations 9 and 10 of the paper), after a sort by score.

Vocabulary. Documents of the query stand in ascending order of score; `place` counts them in that order. levels[place]
is the dense rank of the label among the query's labels, 0 the lowest. A pair of a better document a and a worse one b
is a support pair if s_a − s_b < 1. For a given document the partners lie at one end of the order, so two limits say
everything:

    partners above the document at `place`: better ones at places < upper[place]
    partners below it:                      worse ones at places ≥ lower[place]

Both are found with the one comparison ``s_a − s_b < 1``, which rounds the same seen from either document; so the pairs
counted from above and from below are the same, and the Hessian stays symmetric.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.vectors import TOTALS, running_totals

DIRECT = 0
ORDER_STATISTIC = 1

_INSERTION_RUN = 16
# Row k: 1 for the columns m ≤ k. A document of level k counts in the totals "level m or better" of these columns.
_MEMBERSHIP = np.tril(np.ones((TOTALS, TOTALS)))


@kernel
def sort_by_score(scores, order, scratch):
    """Fill `order` with the places of `scores` in ascending order, stably: insertion sort of runs, then merges."""
    n_docs = scores.shape[0]
    for start in range(0, n_docs, _INSERTION_RUN):
        for i in range(start, min(start + _INSERTION_RUN, n_docs)):
            k = i
            while k > start and scores[order[k - 1]] > scores[i]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = i
    width = _INSERTION_RUN
    while width < n_docs:
        for start in range(0, n_docs, 2 * width):
            middle = min(start + width, n_docs)
            _merge(scores, order, start, middle, min(start + 2 * width, n_docs), scratch)
        width *= 2


@kernel
def _merge(scores, order, start, middle, end, scratch):
    if middle >= end or scores[order[middle - 1]] <= scores[order[middle]]:
        return
    for k in range(start, middle):
        scratch[k - start] = order[k]
    left = 0
    right = middle
    for k in range(start, end):
        if left == middle - start:
            return
        if right < end and scores[order[right]] < scores[scratch[left]]:
            order[k] = order[right]
            right += 1
        else:
            order[k] = scratch[left]
            left += 1


@kernel
def find_limits(scores, upper, lower):
    """Fill `upper` and `lower` for `scores` in ascending order."""
    n_docs = scores.shape[0]
    limit = 0
    for place in range(n_docs):
        while limit < n_docs and scores[limit] - scores[place] < 1.0:
            limit += 1
        upper[place] = limit
    limit = 0
    for place in range(n_docs):
        while limit < place and not scores[place] - scores[limit] < 1.0:
            limit += 1
        lower[place] = limit


@kernel
def sum_partners(values, pairs, tally, totals, above, below):
    """above[place] and below[place]: the sums of `values` over the partners above and below each document.

    Parameters
    ----------
    values : float64 array (n_docs,), in ascending order of score
    pairs : tuple (levels, upper, lower, n_levels, method)
        Arrays (n_docs,) in the same order; DIRECT costs O(n_docs·n_levels), ORDER_STATISTIC O(n_docs·log n_levels).
    tally : float64 array, at least (n_levels + 1,); totals : float64 array, at least (n_docs + 1, TOTALS)
        Scratch.
    """
    levels, upper, lower, n_levels, method = pairs
    if method == DIRECT and n_levels < TOTALS:
        _sum_by_few_levels(values, levels, upper, lower, totals, above, below)
    elif method == DIRECT:
        _sum_above_directly(values, levels, upper, n_levels, tally, above)
        _sum_below_directly(values, levels, lower, n_levels, tally, below)
    else:
        _sum_above_by_tree(values, levels, upper, n_levels, tally, above)
        _sum_below_by_tree(values, levels, lower, n_levels, tally, below)


@kernel
def _sum_by_few_levels(values, levels, upper, lower, totals, above, below):
    # totals[p, m]: the sum over places before p of level m or better. No branch depends on the data, which a sweep with
    # a running tally cannot avoid; column n_levels is always 0.
    running_totals(values, levels, _MEMBERSHIP, totals)
    everything = totals[values.shape[0]]
    for place in range(values.shape[0]):
        level = np.uint64(levels[place])
        before = totals[lower[place]]
        above[place] = totals[upper[place], level + np.uint64(1)]
        below[place] = (everything[0] - everything[level]) - (before[0] - before[level])


@kernel
def _sum_above_directly(values, levels, upper, n_levels, tally, above):
    # tally[k]: the sum of the values passed so far whose level is above k.
    tally[: n_levels + 1] = 0.0
    passed = 0
    for place in range(values.shape[0]):
        while passed < upper[place]:
            value = values[passed]
            for level in range(levels[passed]):
                tally[level] += value
            passed += 1
        above[place] = tally[levels[place]]


@kernel
def _sum_below_directly(values, levels, lower, n_levels, tally, below):
    # tally[k]: the sum of the values passed so far, from the top, whose level is below k.
    tally[: n_levels + 1] = 0.0
    passed = values.shape[0]
    for place in range(values.shape[0] - 1, -1, -1):
        while passed > lower[place]:
            passed -= 1
            value = values[passed]
            for level in range(levels[passed] + 1, n_levels):
                tally[level] += value
        below[place] = tally[levels[place]]


@kernel
def _sum_above_by_tree(values, levels, upper, n_levels, tree, above):
    # The tree counts levels from the top, so that "better than" is a prefix.
    tree[: n_levels + 1] = 0.0
    passed = 0
    for place in range(values.shape[0]):
        while passed < upper[place]:
            _add_to_tree(tree, n_levels, n_levels - 1 - levels[passed], values[passed])
            passed += 1
        above[place] = _sum_of_tree(tree, n_levels - 1 - levels[place])


@kernel
def _sum_below_by_tree(values, levels, lower, n_levels, tree, below):
    tree[: n_levels + 1] = 0.0
    passed = values.shape[0]
    for place in range(values.shape[0] - 1, -1, -1):
        while passed > lower[place]:
            passed -= 1
            _add_to_tree(tree, n_levels, levels[passed], values[passed])
        below[place] = _sum_of_tree(tree, levels[place])


@kernel
def _add_to_tree(tree, size, position, value):
    """Fenwick's binary indexed tree over 0 ≤ position < size: add `value` at `position`."""
    node = position + 1
    while node <= size:
        tree[node] += value
        node += node & -node


@kernel
def _sum_of_tree(tree, position):
    """The sum over all positions before `position`."""
    total = 0.0
    node = position
    while node > 0:
        total += tree[node]
        node -= node & -node
    return total
