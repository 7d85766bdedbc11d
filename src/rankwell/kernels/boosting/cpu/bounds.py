"""RankBoost on the CPU: which features can still have the best weak ranker, without looking at every one.

In a *reference* round every r was computed. Since then π has changed by Δ, and r of a threshold by the sum of Δ over
the documents above it. Joint histograms of Δ (see `intervals`) give that sum exactly at the borders of
intervals. Inside an interval r can have risen, beyond what it has at the upper border, by at most the sum of its
positive Δ, and fallen by at most the sum of its negative ones. From one round to the next no |r| grows by more than the
sum of all positive changes of π, its *drift*, so a bound of an earlier round holds when the drift since is added to it.
A feature whose bound is below an r that is surely reached cannot win; the others are computed in full, so the choice is
exactly that of the whole search.

Positive and negative Δ are summed in one addition, in the upper and the lower half of an int64: |Δ| sums to at most 4,
2^32 units, half of it in either direction, so neither half overflows.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.boosting.cpu.intervals import CODES_A_WORD, MOST_CELLS
from rankwell.kernels.boosting.cpu.weights import TASKS, query_potentials
from rankwell.kernels.cpu.compilation import kernel

NOTHING = 2**40  # beyond every r: the bound of an interval with no threshold inside

_HALF = 32
_MASK = 2**_HALF - 1
_CODE_BITS = np.uint64(16)
_CODE = np.uint64(0xFFFF)


@kernel(parallel=True)
def changed_potentials(places, weights, sums, total, pi, reference, changes, moved):
    """`potentials`, with Δ, packed, and how much π has changed.

    pi : int32 (n_docs,), that of the round before, replaced; reference : int32 (n_docs,), that of the reference round
    changes : int64 (n_docs or a few more,), written; moved : int64 (TASKS, 2), scratch

    Returns
    -------
    the sum of all positive Δ, and of all positive changes since the round before; of the negative ones it is the same
    """
    n_queries = len(places[1]) - 1
    for task in prange(TASKS):
        first, last = n_queries * task // TASKS, n_queries * (task + 1) // TASKS
        start, end = places[0][places[1][first]], places[0][places[1][last]]
        values = np.empty(end - start, np.int32)
        query_potentials(first, last, places, weights, sums, total, values)
        moved[task] = pack_changes(values, pi[start:end], reference[start:end], changes[start:end])
    return moved[:, 0].sum(), moved[:, 1].sum()


@kernel
def pack_changes(values, pi, reference, changes):
    """Put some documents' π in place and pack their Δ; returns the sums of `changed_potentials` for them."""
    rise_of_all = step_of_all = 0
    for i in range(len(values)):
        now = np.int64(values[i])
        step_of_all += max(now - np.int64(pi[i]), 0)
        pi[i] = values[i]
        change = now - np.int64(reference[i])
        rise, fall = max(change, 0), max(-change, 0)
        changes[i] = (rise << _HALF) | fall
        rise_of_all += rise
    return rise_of_all, step_of_all


@kernel
def choose_groups(upper, least, done, joint, n_groups, chosen):
    """The joint histograms with a feature that is not done and whose bound is `least` or more; returns their number.

    joint : (group_ptr, members); chosen : int32 (most groups,), written
    """
    group_ptr, members = joint
    n_chosen = 0
    for g in range(n_groups):
        for f in members[group_ptr[g] : group_ptr[g + 1]]:
            if upper[f] >= least and not done[f]:
                chosen[n_chosen] = g
                n_chosen += 1
                break
    return n_chosen


@kernel
def _sum_digits(cells, members, number, sums):
    """Each member's own histogram out of a joint one, which is used up. sums : int64 (n_features, 64), written"""
    size = 1
    for f in members:
        size *= number[f]
    for f in members[::-1]:
        size //= number[f]
        for digit in range(number[f]):
            part = cells[digit * size : (digit + 1) * size]
            sums[f, digit] = part.sum()
            if digit > 0:
                cells[:size] += part


@kernel
def _add_to_two(one, other, changes, cells):
    """Two joint histograms side by side, so that an addition seldom waits for the one before it.

    one, other : uint64 (n,), four codes in each; changes : int64 (4·n,); cells : int64 (2, most cells), changed
    """
    ones, others = cells[0], cells[1]
    for i in range(len(one)):
        a, b = one[i], other[i]
        for j in range(CODES_A_WORD):
            change = changes[CODES_A_WORD * i + j]
            ones[a & _CODE] += change
            others[b & _CODE] += change
            a >>= _CODE_BITS
            b >>= _CODE_BITS


@kernel
def _add_to_one(words, changes, cells):
    for i in range(len(words)):
        word = words[i]
        for j in range(CODES_A_WORD):
            cells[word & _CODE] += changes[CODES_A_WORD * i + j]
            word >>= _CODE_BITS


@kernel(parallel=True)
def joint_histograms(words, changes, groups, number, sums):
    """Packed sums of Δ by feature and interval.

    words : uint64 (most groups, n), four codes in each; changes : int64 (4·n,)
    groups : (which, group_ptr, members); number : int64 (n_features,), of intervals
    sums : int64 (n_parts, n_features, 64), the rows of these groups' features are written
    """
    chosen, group_ptr, members = groups
    n_parts, n_words = len(sums), words.shape[1]
    for task in prange((len(chosen) + 1) // 2 * n_parts):
        pair, part = chosen[task // n_parts * 2 : task // n_parts * 2 + 2], task % n_parts
        start, end = n_words * part // n_parts, n_words * (part + 1) // n_parts
        cells = np.zeros((2, MOST_CELLS), np.int64)
        own = changes[CODES_A_WORD * start : CODES_A_WORD * end]
        if len(pair) == 2:
            _add_to_two(words[pair[0], start:end], words[pair[1], start:end], own, cells)
        else:
            _add_to_one(words[pair[0], start:end], own, cells[0])
        for place, g in enumerate(pair):
            _sum_digits(cells[place], members[group_ptr[g] : group_ptr[g + 1]], number, sums[part])


@kernel(parallel=True)
def summarise_intervals(table, intervals, highest, lowest):
    """The largest and the smallest r of the thresholds inside each interval, int64 (n_features, 64) each, written."""
    number, _, first, last = intervals
    for f in prange(len(table)):
        for j in range(number[f]):
            high, low = -NOTHING, NOTHING
            for b in range(first[f, j], last[f, j]):
                high, low = max(high, table[f, b]), min(low, table[f, b])
            highest[f, j], lowest[f, j] = high, low


@kernel
def bound_features(table, intervals, summaries, sums, features, upper):
    """Lower the bounds of some features' largest |r|; returns the largest |r| of their borders, which is reached.

    table : of the reference round; features : int32, those that `sums` tells of; upper : int64 (n_features,), changed
    """
    number, _, _, last = intervals
    highest, lowest = summaries
    reached = 0
    for f in features:
        bound = 0
        change = 0  # of r at the upper border of the interval
        for j in range(number[f] - 1, -1, -1):
            risen = fallen = 0
            for part in range(len(sums)):
                risen += (sums[part, f, j] >> _HALF) & _MASK
                fallen += sums[part, f, j] & _MASK
            bound = max(bound, highest[f, j] + change + risen, fallen - change - lowest[f, j])
            change += risen - fallen
            if j > 0:
                r = abs(table[f, last[f, j - 1]] + change)
                bound = max(bound, r)
                reached = max(reached, r)
        upper[f] = min(upper[f], bound)
    return reached


@kernel
def best_bounds(upper, least, done, candidates):
    """The features with bounds of at least `least` that are not done yet, the largest first; returns their number.

    done : bool (n_features,); candidates : int32 (most candidates,), written; one beyond `most` is not looked for
    """
    found = 0
    for f in range(len(upper)):
        if done[f] or upper[f] < least:
            continue
        place = min(found, len(candidates) - 1)
        if found >= len(candidates) and upper[f] <= upper[candidates[place]]:
            continue
        while place > 0 and upper[candidates[place - 1]] < upper[f]:
            candidates[place] = candidates[place - 1]
            place -= 1
        candidates[place] = f
        found = min(found + 1, len(candidates))
    return found
