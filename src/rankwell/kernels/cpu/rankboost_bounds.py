"""RankBoost on the CPU: which features can still have the best weak ranker, without looking at every one.

In a *reference* round every r was computed. Since then π has changed by Δ, and r of a threshold by the sum of Δ over
the documents above it. Joint histograms of Δ (see `rankboost_intervals`) give that sum exactly at the borders of
intervals. Inside an interval r can have risen, beyond what it has at the upper border, by at most the sum of its
positive Δ, and fallen by at most the sum of its negative ones. A feature whose bound is below an r that is surely
reached cannot win; the others are computed in full, so the choice is exactly that of the whole search.

Positive and negative Δ are summed in one addition, in the upper and the lower half of an int64: |Δ| sums to at most 4,
2^32 units, half of it in either direction, so neither half overflows.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.rankboost_intervals import MOST_CELLS

CHANGE_BLOCK = 4096  # documents whose changes one task packs
NOTHING = 2**40  # beyond every r: the bound of an interval with no threshold inside

_HALF = 32
_MASK = 2**_HALF - 1


@kernel(parallel=True)
def pack_changes(kept, pi, reference, changes, rises):
    """Δ of the documents that have pairs, packed; returns the sum of the positive ones, which is that of the negative.

    kept : uint32 (n_kept,); pi, reference : int32 (n_docs,); changes : int64 (n_kept,), written
    rises : int64 (n_kept / CHANGE_BLOCK, rounded up), scratch
    """
    for block in prange(len(rises)):
        start, end = block * CHANGE_BLOCK, min((block + 1) * CHANGE_BLOCK, len(kept))
        rises[block] = _pack_block(kept[start:end], pi, reference, changes[start:end])
    return rises.sum()


@kernel
def _pack_block(kept, pi, reference, changes):
    total = 0
    for i in range(len(kept)):
        change = np.int64(pi[kept[i]]) - np.int64(reference[kept[i]])
        rise, fall = max(change, 0), max(-change, 0)
        changes[i] = (rise << _HALF) | fall
        total += rise
    return total


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
def _add_to_four(codes, changes, cells):
    """Four joint histograms side by side: additions into one do not wait for those into the others."""
    a, b, c, d = codes[0], codes[1], codes[2], codes[3]
    a_cells, b_cells, c_cells, d_cells = cells[0], cells[1], cells[2], cells[3]
    for i in range(len(changes)):
        change = changes[i]
        a_cells[a[i]] += change
        b_cells[b[i]] += change
        c_cells[c[i]] += change
        d_cells[d[i]] += change


@kernel
def _add_to_one(codes, changes, cells):
    for i in range(len(changes)):
        cells[codes[i]] += changes[i]


@kernel(parallel=True)
def joint_histograms(codes, changes, groups, number, sums):
    """Packed sums of Δ by feature and interval.

    codes : uint16 (most groups, n_kept); changes : int64 (n_kept,); number : int64 (n_features,), of intervals
    groups : (how many, group_ptr, members); sums : int64 (n_parts, n_features, 64), written
    """
    n_groups, group_ptr, members = groups
    n_parts = len(sums)
    n_kept = len(changes)
    for task in prange((n_groups + 3) // 4 * n_parts):
        first, part = task // n_parts * 4, task % n_parts
        last = min(first + 4, n_groups)
        start, end = n_kept * part // n_parts, n_kept * (part + 1) // n_parts
        cells = np.zeros((4, MOST_CELLS), np.int64)
        own = changes[start:end]
        if last - first == 4:
            _add_to_four(codes[first : first + 4, start:end], own, cells)
        else:
            for g in range(first, last):
                _add_to_one(codes[g, start:end], own, cells[g - first])
        for g in range(first, last):
            _sum_digits(cells[g - first], members[group_ptr[g] : group_ptr[g + 1]], number, sums[part])


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
def bound_features(table, largest, intervals, summaries, sums, rise, upper):
    """An upper bound of every feature's largest |r|; returns the largest |r| of all borders, which is reached.

    table, largest : of the reference round; rise : the sum of all positive Δ; upper : int64 (n_features,), written
    """
    number, _, _, last = intervals
    highest, lowest = summaries
    reached = 0
    for f in range(len(number)):
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
        if number[f] > 0:
            bound = min(bound, largest[f] + rise) if number[f] > 1 else largest[f] + rise
        upper[f] = bound
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
