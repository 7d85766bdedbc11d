"""Sums over the support pairs of one query (equations 9 and 10 of the paper), after a sort by score.

Vocabulary. Documents of the query are in ascending order of score; `place` counts them in that order. levels[place]
is the dense rank of the label among the query's labels, 0 the lowest. A pair of a better document a and a worse one b
is a support pair if s_a − s_b < 1. The partners of a document are at one end of the order, so two limits define
them:

    partners above the document at `place`: better ones at places < upper[place]
    partners below it:                      worse ones at places ≥ lower[place]

Both are found by the same comparison ``s_a − s_b < 1``, which rounds equally for both documents; so the pairs
counted from above and from below are the same, and the Hessian stays symmetric.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import intrinsic

from rankwell.kernels.cpu.compilation import call_of, inner_kernel, kernel
from rankwell.kernels.cpu.vectors import TOTALS, running_totals
from rankwell.kernels.pair_loss.cpu.queries import TreeSums

# Row k: 1 for the columns m ≤ k. A document of level k counts in the totals "level m or better" of these columns.
_MEMBERSHIP = np.tril(np.ones((TOTALS, TOTALS)))


class Support(NamedTuple):
    """The support pairs at one w, by place in ascending order of score within each query: 24 bytes per document.

    order : int32 (n_docs,), the row at each place, counted from the query's first row
    sorted_levels : int32 (n_docs,)
    upper, lower : int32 (n_docs,), the limits
    degree : float64 (n_docs,), β⁺ + β⁻: the weight of the partners
    """

    order: np.ndarray
    sorted_levels: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    degree: np.ndarray


def empty_support(n_docs: int) -> Support:
    """Arrays for support pairs, not yet computed."""
    return Support._make((*np.zeros((4, n_docs), dtype=np.int32), np.zeros(n_docs)))


@kernel(inline="always")
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


@kernel(inline="always")
def _sum_by_few_levels(values, levels, upper, lower, totals, above, below):
    # totals[p, m]: the sum over places before p of level m or better. No branch depends on the data, unlike in a sweep
    # with a running tally; column n_levels is always 0.
    running_totals(values, levels, _MEMBERSHIP, totals)
    everything = totals[values.shape[0]]
    for place in range(values.shape[0]):
        level = np.uint64(levels[place])
        before = totals[lower[place]]
        above[place] = totals[upper[place], level + np.uint64(1)]
        below[place] = (everything[0] - everything[level]) - (before[0] - before[level])


@kernel(inline="always")
def _sum_above_directly(values, levels, upper, n_levels, tally, above):
    # tally[k]: the sum of the values passed so far whose level is above k.
    for level in range(n_levels + 1):
        tally[level] = 0.0
    passed = 0
    for place in range(values.shape[0]):
        while passed < upper[place]:
            value = values[passed]
            for level in range(levels[passed]):
                tally[level] += value
            passed += 1
        above[place] = tally[levels[place]]


@kernel(inline="always")
def _sum_below_directly(values, levels, lower, n_levels, tally, below):
    # tally[k]: the sum of the values passed so far, from the top, whose level is below k.
    for level in range(n_levels + 1):
        tally[level] = 0.0
    passed = values.shape[0]
    for place in range(values.shape[0] - 1, -1, -1):
        while passed > lower[place]:
            passed -= 1
            value = values[passed]
            for level in range(levels[passed] + 1, n_levels):
                tally[level] += value
        below[place] = tally[levels[place]]


@kernel(inline="always")
def _sum_above_by_tree(values, levels, upper, n_levels, tree, above):
    # The tree counts levels from the top, so that "better than" is a prefix.
    for node in range(n_levels + 1):
        tree[node] = 0.0
    passed = 0
    for place in range(values.shape[0]):
        while passed < upper[place]:
            _add_to_tree(tree, n_levels, n_levels - 1 - levels[passed], values[passed])
            passed += 1
        above[place] = _sum_of_tree(tree, n_levels - 1 - levels[place])


@kernel(inline="always")
def _sum_below_by_tree(values, levels, lower, n_levels, tree, below):
    for node in range(n_levels + 1):
        tree[node] = 0.0
    passed = values.shape[0]
    for place in range(values.shape[0] - 1, -1, -1):
        while passed > lower[place]:
            passed -= 1
            _add_to_tree(tree, n_levels, levels[passed], values[passed])
        below[place] = _sum_of_tree(tree, levels[place])


@kernel(inline="always")
def _add_to_tree(tree, size, position, value):
    """Fenwick's binary indexed tree over 0 ≤ position < size: add `value` at `position`."""
    node = position + 1
    while node <= size:
        tree[node] += value
        node += node & -node


@kernel(inline="always")
def _sum_of_tree(tree, position):
    """The sum over all positions before `position`."""
    total = 0.0
    node = position
    while node > 0:
        total += tree[node]
        node -= node & -node
    return total


@inner_kernel
def _sum_directly(values, levels, upper, lower, n_levels, sums, above, below):
    if n_levels < TOTALS:
        _sum_by_few_levels(values, levels, upper, lower, sums.totals, above, below)
    else:
        _sum_above_directly(values, levels, upper, n_levels, sums.tally, above)
        _sum_below_directly(values, levels, lower, n_levels, sums.tally, below)


@inner_kernel
def _sum_by_tree(values, levels, upper, lower, n_levels, sums, above, below):
    _sum_above_by_tree(values, levels, upper, n_levels, sums.tree, above)
    _sum_below_by_tree(values, levels, lower, n_levels, sums.tree, below)


@intrinsic
def sum_partners(typing_context, values, levels, upper, lower, n_levels, sums, above, below):
    """above[place] and below[place] = the sums of `values` over the partners above and below each document.

    The type of `sums` selects the method: direct, in O(n_docs·n_levels), or an order-statistic tree, in O(n_docs·log
    n_levels). So a pass contains the machine code of one method.

    Parameters
    ----------
    values : float64 array (n_docs,), in ascending order of score
    levels, upper, lower : int32 arrays (n_docs,), in the same order
    n_levels : the query's number of levels
    sums : DirectSums or TreeSums
    """
    way = _sum_by_tree if sums.instance_class is TreeSums else _sum_directly
    return call_of(way, typing_context, (values, levels, upper, lower, n_levels, sums, above, below))
