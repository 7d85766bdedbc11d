"""The third place's part of the expected gradient, for exact Top-3 ListNet. See `two_places` for the vocabulary.

The pairs of documents that hold the first two places are summed by level: those with the best-scored document here,
the others as the O(n²) sums of `pair_sums`.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.lists.cpu.two_places import REMOVED

# A document of this probability cannot change a float32 gradient.
NEGLIGIBLE = 1e-30


@kernel(error_model="numpy", inline="always")
def _pair_weight(ratio, exponential, after_best, best_label, a, b):
    """P_y({a, b} hold the first two places)."""
    if a == best_label:
        return after_best[b]
    if b == best_label:
        return after_best[a]
    return ratio[a] * exponential[b] + ratio[b] * exponential[a]


@inner_kernel(error_model="numpy")
def third_after_best(depth, ratio, exponential, after_best, best_label, top, scratch, sums, expected):
    """Pairs with the best-scored document: level 1, and level 2 for the two best; returns their log part."""
    best, second = top[0], top[1]
    next_level, last_level, removed = scratch[1], scratch[2], scratch[REMOVED]
    loss = everywhere = 0.0
    for b in range(len(expected)):
        removed[b] = 0.0
        if b != best and b != second:
            weight = _pair_weight(ratio, exponential, after_best, best_label, best, b)
            remaining = sums[1] - next_level[b]
            removed[b] = weight / remaining
            everywhere += removed[b]
            loss += weight * (np.log(remaining) + depth[1])
    weight = _pair_weight(ratio, exponential, after_best, best_label, best, second)
    share = weight / sums[2]
    for i in range(len(expected)):
        expected[i] += next_level[i] * (everywhere - removed[i]) + share * last_level[i]
    return loss + weight * (np.log(sums[2]) + depth[2])


@kernel(error_model="numpy", inline="always")
def _pairs_of_best_label(after_best, best_label, best, level, total, removed):
    """Level 0's pairs with y1, whose weights do not factorise: adds to `removed`, returns their log part."""
    loss = 0.0
    for b in range(len(after_best)):
        if b != best and b != best_label:
            weight = after_best[b]
            remaining = (total - level[best_label]) - level[b]
            removed[b] += weight / remaining
            removed[best_label] += weight / remaining
            loss += weight * np.log(remaining)
    return loss


@inner_kernel(error_model="numpy")
def pairs_without_best(ratio, exponential, best, level, total, lists):
    """lists[:3] = e, r, E of the documents that count in a pair; returns how many.

    The best-scored document's pairs belong to another level. A document whose E is negligible has no pair above that
    probability: if all labels are different, that excludes all but the best hundred documents.
    lists[3, 0] = S and lists[4] = the documents' numbers, in the lists' own type.
    """
    place = 0
    for i in range(len(ratio)):
        if i != best and exponential[i] > NEGLIGIBLE:
            lists[0, place], lists[1, place], lists[2, place] = level[i], ratio[i], exponential[i]
            lists[4, place] = i
            place += 1
    lists[3, 0] = total
    return place


@inner_kernel(error_model="numpy")
def third_without_best(after_best, best_label, best, scratch, total, lists, count, expected):
    """Pairs without the best-scored document: level 0, from the row sums at removed[:count]; returns y1's log part."""
    n = len(expected)
    level, removed = scratch[0], scratch[REMOVED]
    place = count - 1
    for i in range(n - 1, -1, -1):
        if place >= 0 and lists[4, place] == i:
            removed[i] = removed[place]
            place -= 1
        else:
            removed[i] = 0.0
    loss = 0.0
    if best_label != best:
        loss = _pairs_of_best_label(after_best, best_label, best, level, total, removed)
    everywhere = 0.0
    for i in range(n):
        everywhere += 0.5 * removed[i]
    for i in range(n):
        expected[i] += level[i] * (everywhere - removed[i])
    return loss
