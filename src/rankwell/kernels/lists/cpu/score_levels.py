"""Sums of e^s over the rest of a list after some documents are removed, without cancellation or overflow.

S − e^{s_a} loses every digit when document a dominates, and is 0 when the others underflow. So the remaining sum is
taken relative to the best document that remains. Level p is the list without its p best documents, scaled by the next
best one: `levels[p, i] = e^{s_i − s_top[p]}`, 0 for the p best, and `sums[p]` is at least 1. A set of removed documents
belongs to the level of the best document it leaves; any other removed document has a level value of at most 1, so the
subtraction from `sums[p]` leaves at least 1 and loses less than log2(1 + removed) bits.
"""

from __future__ import annotations

import math

from rankwell.kernels.cpu.compilation import inner_kernel, kernel


@kernel(error_model="numpy", inline="always")
def _best_documents(scores, count, top):
    """top[:count] = the documents with the largest scores, best first; of equal scores the first."""
    n = len(scores)
    for place in range(count):
        best = -1
        for i in range(n):
            taken = False
            for earlier in range(place):
                taken |= top[earlier] == i
            if not taken and (best < 0 or scores[i] > scores[best]):
                best = i
        top[place] = best


@inner_kernel(error_model="numpy", for_any_constant=True)
def score_levels(scores, count, top, levels, sums):
    """Fill `top`, `levels` (count, n_docs) and `sums` (count,) for the first `count` levels; count ≤ n_docs.

    scores : float32 or float64 (n_docs,), the type that exponentials are taken in; top : int64; levels, sums : float64
    """
    _best_documents(scores, count, top)
    for p in range(count):
        shift = scores[top[p]]
        level = levels[p]
        for i in range(len(scores)):
            level[i] = math.exp(scores[i] - shift)
        for q in range(p):
            level[top[q]] = 0.0
        total = 0.0
        for i in range(len(scores)):
            total += level[i]
        sums[p] = total
