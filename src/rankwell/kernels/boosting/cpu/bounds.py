"""RankBoost on the CPU: which features can still have the best weak ranker, without computing every one.

In a *reference* round every r was computed. Since then π has changed by Δ, and r of a threshold by the sum of Δ over
the documents above it. Joint histograms of Δ (see `intervals`) give that sum exactly at the borders of
intervals. Inside an interval r can have risen, relative to the upper border, by at most the sum of its
positive Δ, and fallen by at most the sum of its negative ones. From one round to the next no |r| grows by more than the
sum of all positive changes of π, its *drift*, so a bound of an earlier round holds when the drift since is added to it.
A feature whose bound is below an r that is certainly reached cannot win; the others are computed in full, so the choice
is exactly that of the whole search.

Positive and negative Δ are summed in one addition, in the upper and the lower half of an int64: |Δ| sums to at most 4,
2^32 units, half of it in either direction, so neither half overflows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.boosting.cpu.intervals import CODES_A_WORD
from rankwell.kernels.cpu.lean_compilation import kernel

NOTHING = 2**40  # beyond every r: the bound of an interval with no threshold inside

_HALF = 32
_MASK = 2**_HALF - 1
_CODE_BITS = np.uint64(16)
_CODE = np.uint64(0xFFFF)
_CODES = np.uint64(CODES_A_WORD)


class Bounds(NamedTuple):
    """Bounds of features' |r| that are known without computing it. See also `Intervals`.

    state : int64 (12,), see `bounded_search`
    reference_pi : int32 (n_docs,); reference_table : int32 (n_features, 256); reference_largest : int32 (n_features,):
        of the reference round
    changes : int64 (n_docs or a few more,), Δ, packed
    moved : int64 (query tasks, 2), sums of positive Δ, and of positive changes since the previous round
    sums : int64 (n_parts, n_features, 64), packed sums of Δ by feature and interval
    chosen : int32 (most groups,), joint histograms to be made
    cells : int64 (n_workers, 2, 1024), of the joint histograms being made
    upper : int64 (n_features,), bounds of |r| now; standing : the same less all drift; estimates : the last estimates
    done : bool (n_features,), computed in full in this round
    candidates : int32 (most candidates,); histograms : int32 (most candidates, n_parts, 256)
    apart : int32 (n_workers, 8, 256), of the histograms being made
    """

    state: np.ndarray
    reference_pi: np.ndarray
    reference_table: np.ndarray
    reference_largest: np.ndarray
    changes: np.ndarray
    moved: np.ndarray
    sums: np.ndarray
    chosen: np.ndarray
    cells: np.ndarray
    upper: np.ndarray
    standing: np.ndarray
    estimates: np.ndarray
    done: np.ndarray
    candidates: np.ndarray
    histograms: np.ndarray
    apart: np.ndarray


@kernel
def pack_changes(pi, reference, changes, start, end):
    """Store the new π of the documents start, ..., end − 1 and pack their Δ.

    pi : int32 (n_docs,), that of the previous round, replaced; reference : int32 (n_docs,), that of the reference round
    changes : int64 (n_docs or a few more,), the new π, replaced by Δ

    Returns
    -------
    the sum of all positive Δ, and of all positive changes since the previous round
    """
    rise_of_all = step_of_all = 0
    for i in range(np.uint64(start), np.uint64(end)):
        now = changes[i]
        step = now - pi[i]
        step_of_all += step if step > 0 else 0
        pi[i] = now
        change = now - reference[i]
        rise = change if change > 0 else 0
        changes[i] = (rise << _HALF) | (rise - change)
        rise_of_all += rise
    return rise_of_all, step_of_all


@kernel
def choose_groups(upper, least, done, group_ptr, members, n_groups, chosen):
    """The joint histograms with a feature that is not done and whose bound is `least` or more; returns their number.

    chosen : int32 (most groups,), written
    """
    n_chosen = 0
    for g in range(n_groups):
        for place in range(group_ptr[g], group_ptr[g + 1]):
            f = members[place]
            if upper[f] >= least and not done[f]:
                chosen[n_chosen] = g
                n_chosen += 1
                break
    return n_chosen


@kernel
def _add_to_two(one, other, changes, start, end, cells):
    """Two joint histograms at the same time, so that an addition rarely waits for the one before it.

    one, other : uint64 (n,), four codes in each; changes : int64 (4·n,); cells : int64 (2, most cells), changed
    """
    for i in range(np.uint64(start), np.uint64(end)):
        a, b = one[i], other[i]
        for j in range(_CODES):
            change = changes[_CODES * i + j]
            cells[0, a & _CODE] += change
            cells[1, b & _CODE] += change
            a >>= _CODE_BITS
            b >>= _CODE_BITS


@kernel
def _add_to_one(words, changes, start, end, cells):
    for i in range(np.uint64(start), np.uint64(end)):
        word = words[i]
        for j in range(_CODES):
            cells[0, word & _CODE] += changes[_CODES * i + j]
            word >>= _CODE_BITS


@kernel
def _sum_digits(cells, members, first, last, number, sums):
    """The separate histograms of members[first:last] from a joint one, which is overwritten.

    cells : int64 (most cells,); sums : int64 (n_features, 64), written
    """
    size = 1
    for place in range(first, last):
        size *= number[members[place]]
    for place in range(last - 1, first - 1, -1):
        f = members[place]
        size //= number[f]
        for digit in range(number[f]):
            total = 0
            for i in range(np.uint64(digit * size), np.uint64((digit + 1) * size)):
                total += cells[i]
            sums[f, digit] = total
        for digit in range(1, number[f]):
            start = np.uint64(digit * size)
            for i in range(np.uint64(size)):
                cells[i] += cells[start + i]


@kernel
def joint_histograms(words, changes, chosen, n_chosen, group_ptr, members, number, sums, task, cells):
    """Packed sums of Δ by feature and interval, of two chosen joint histograms and one part of the documents.

    task : number of the two · n_parts + part; cells : int64 (2, most cells), scratch; for the others see `Bounds`
    """
    n_parts, n_words = len(sums), words.shape[1]
    pair, part = task // n_parts * 2, task % n_parts
    start, end = n_words * part // n_parts, n_words * (part + 1) // n_parts
    n_joint = 2 if pair + 1 < n_chosen else 1
    for side in range(n_joint):
        for i in range(cells.shape[1]):
            cells[side, i] = 0
    if n_joint == 2:
        _add_to_two(words[chosen[pair]], words[chosen[pair + 1]], changes, start, end, cells)
    else:
        _add_to_one(words[chosen[pair]], changes, start, end, cells)
    for side in range(n_joint):
        g = chosen[pair + side]
        _sum_digits(cells[side], members, group_ptr[g], group_ptr[g + 1], number, sums[part])


@kernel
def pack_sums(sums, chosen, n_chosen, group_ptr, members, number, packed):
    """The sums of the chosen joint histograms over all parts, one after another; returns how many there are.

    packed : int64 (n_features · 64,), written; for the others see `Bounds` and `Intervals`
    """
    place = 0
    for i in range(n_chosen):
        for member in range(group_ptr[chosen[i]], group_ptr[chosen[i] + 1]):
            f = members[member]
            for j in range(number[f]):
                total = 0
                for part in range(len(sums)):
                    total += sums[part, f, j]
                packed[place] = total
                place += 1
    return place


@kernel
def unpack_sums(packed, chosen, n_chosen, group_ptr, members, number, sums):
    """The inverse of `pack_sums`: the sums become those of the first part, 0 those of the others."""
    place = 0
    for i in range(n_chosen):
        for member in range(group_ptr[chosen[i]], group_ptr[chosen[i] + 1]):
            f = members[member]
            for j in range(number[f]):
                sums[0, f, j] = packed[place]
                for part in range(1, len(sums)):
                    sums[part, f, j] = 0
                place += 1


@kernel
def summarise_intervals(table, number, first_bin, last_bin, highest, lowest, first, last):
    """The largest and the smallest r of the thresholds inside each interval of the features first, ..., last − 1."""
    for f in range(first, last):
        for j in range(number[f]):
            high, low = -NOTHING, NOTHING
            for b in range(first_bin[f, j], last_bin[f, j]):
                r = np.int64(table[f, b])
                high = r if r > high else high
                low = r if r < low else low
            highest[f, j], lowest[f, j] = high, low


@kernel
def bound_features(table, sums, members, first, last, number, last_bin, highest, lowest, upper, estimates):
    """Lower the bounds of members[first:last]; returns the largest |r| at their borders, which is exact.

    table : of the reference round
    """
    reached = 0
    for place in range(first, last):
        f = members[place]
        bound = 0
        change = 0  # of r at the upper border of the interval
        for j in range(number[f] - 1, -1, -1):
            risen = fallen = 0
            for part in range(len(sums)):
                risen += (sums[part, f, j] >> _HALF) & _MASK
                fallen += sums[part, f, j] & _MASK
            rise, fall = highest[f, j] + change + risen, fallen - change - lowest[f, j]
            bound = rise if rise > bound else bound
            bound = fall if fall > bound else bound
            change += risen - fallen
            if j > 0:
                r = abs(table[f, last_bin[f, j - 1]] + change)
                bound = r if r > bound else bound
                reached = r if r > reached else reached
        upper[f] = bound if bound < upper[f] else upper[f]
        estimates[f] = upper[f]
    return reached


@kernel
def best_bounds(upper, least, done, candidates, most):
    """The features with bounds of at least `least` that are not done yet, the largest first; returns their number.

    done : bool (n_features,); candidates : int32 (`most` or more,), written; the search ends beyond `most`
    """
    found = 0
    for f in range(len(upper)):
        if done[f] or upper[f] < least:
            continue
        place = found if found < most - 1 else most - 1
        if found >= most and upper[f] <= upper[candidates[place]]:
            continue
        while place > 0 and upper[candidates[place - 1]] < upper[f]:
            candidates[place] = candidates[place - 1]
            place -= 1
        candidates[place] = f
        found = found + 1 if found < most else most
    return found
