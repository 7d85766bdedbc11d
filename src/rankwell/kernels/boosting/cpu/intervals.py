"""RankBoost on the CPU: runs of neighbouring bins, and the documents' codes in them, for the search by bounds.

An *interval* is a run of neighbouring bins of one feature, a *border* the threshold between two intervals. The
intervals of several features are the digits of one number, a document's *code* in a *joint* histogram: one addition
there counts for all of these features, and sums over digits give the histogram of each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.boosting.cpu.histograms import GROUP
from rankwell.kernels.cpu.lean_compilation import inner_kernel, kernel

MOST_INTERVALS = 64  # of a feature
MOST_CELLS = 1024  # of a joint histogram: two of them are 16 KB, half the first-level cache
CODES_A_WORD = 4  # codes of 16 bits that are loaded at once
DOCS_PER_CELL = 16  # at least, so that a joint histogram is small compared with the documents added to it
DOCS_PER_BLOCK = 1024  # documents whose bins, of all features, stay in the second-level cache

# Intervals are made for changes of up to REACH times the largest |r|, and as wide as possible while the thresholds
# inside stay under (1 − HEADROOM) of it; SMALL_SHARE of the documents may always be in one interval.
REACH = 1.2
HEADROOM = 0.15
SMALL_SHARE = 1 / 64

_DIGITS_AT_ONCE = 3


class Intervals(NamedTuple):
    """Features cut into intervals, and joint histograms of them.

    number : int64 (n_features,), of intervals, 0 if a feature does not vary; of_bin : uint8 (n_features, 256)
    first_bin, last_bin : uint8 (n_features, 64), of each interval, of those that have documents
    highest, lowest : int64 (n_features, 64), r of the thresholds inside each interval, in the reference round
    counts : int32 (n_features, 256), documents by bin
    varies : bool (n_features,), whether a feature varies within some query: only such features can order a pair
    group_ptr : int64 (most groups + 1,); members : int32 (n_features,): the features of each joint histogram
    digits : uint16 (n_features + 1, 256), see `fill_digits`
    words : uint64 (most groups, n), four codes in each; codes : uint16 (most groups, 4·n), the same memory
    scratch : int64 (3, n_features)
    """

    number: np.ndarray
    of_bin: np.ndarray
    first_bin: np.ndarray
    last_bin: np.ndarray
    highest: np.ndarray
    lowest: np.ndarray
    counts: np.ndarray
    varies: np.ndarray
    group_ptr: np.ndarray
    members: np.ndarray
    digits: np.ndarray
    words: np.ndarray
    codes: np.ndarray
    scratch: np.ndarray


@kernel
def differing_bits(words, segment_ptr, query_segments, group, different):
    """Which bits of the bins of a group of features differ within some query.

    words : uint64 (n_groups, n_docs, 2), bins of eight features in each; segment_ptr, query_segments : see
    `LevelledQueries`; different : uint64 (n_groups, 2), its row `group` is written
    """
    low = high = np.uint64(0)
    for q in range(len(query_segments) - 1):
        start, end = segment_ptr[query_segments[q]], segment_ptr[query_segments[q + 1]]
        for i in range(np.uint64(start + 1), np.uint64(end)):
            low |= words[group, i, 0] ^ words[group, start, 0]
            high |= words[group, i, 1] ^ words[group, start, 1]
    different[group, 0], different[group, 1] = low, high


@kernel
def cut_feature(r, counts, n_docs, best, interval_of_bin, first_bin, last_bin):
    """Cut one feature into intervals, narrow where |r| is near the largest one of all, wide where it is far from it.

    r : int32 (256,), as it is now; counts : int32 (256,), documents by bin; best : the largest |r| of all features
    interval_of_bin : uint8 (256,), written
    first_bin, last_bin : uint8 (64,), an interval's first and last bin that has documents, written

    Returns
    -------
    the number of intervals
    """
    number = -1
    docs = peak = 0
    for b in range(len(counts)):
        if counts[b] > 0:
            higher = 0
            if docs > 0:
                higher = peak if peak > abs(r[b - 1]) else abs(r[b - 1])
            together = docs + counts[b]
            fits = (
                together * (REACH * best) <= ((1.0 - HEADROOM) * best - higher) * n_docs
                or together <= SMALL_SHARE * n_docs
                or number == MOST_INTERVALS - 1
            )
            if docs > 0 and fits:
                docs, peak = together, higher
            else:
                number += 1
                docs, peak = counts[b], 0
                first_bin[number] = b
            last_bin[number] = b
        interval_of_bin[b] = number if number > 0 else 0
    return number + 1 if number > 0 else 1


@inner_kernel
def _order_features(number, largest, order):
    """Features by their number of intervals, then by their largest |r|, descending, then ascending; a Shell sort."""
    n_features = len(order)
    for f in range(n_features):
        order[f] = f
    gap = 1
    while gap < n_features // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n_features):
            f = order[i]
            place = i
            while place >= gap:
                other = order[place - gap]
                comes_later = number[other] < number[f] or (
                    number[other] == number[f]
                    and (largest[other] < largest[f] or (largest[other] == largest[f] and other > f))
                )
                if not comes_later:
                    break
                order[place] = other
                place -= gap
            order[place] = f
        gap //= 3


@kernel
def join_features(number, largest, most_cells, group_ptr, members, scratch):
    """Assign features to joint histograms of at most `most_cells` cells, by best fit; returns how many.

    Of features with equally many intervals, those with a similar largest |r| are put together: a joint histogram is
    skipped if none of its features can win. Features that do not fit are not divided: their number of intervals becomes
    1.

    number : int64 (n_features,), changed; largest : int32 (n_features,), largest |r|
    group_ptr : int64 (most groups + 1,), written
    members : int32 (n_features,), written, those of a group in a row
    scratch : int64 (3, n_features)
    """
    order, group_of, cells = scratch[0], scratch[1], scratch[2]
    _order_features(number, largest, order)
    n_groups = 0
    for place in range(len(order)):
        f = order[place]
        group_of[f] = -1
        if number[f] <= 1:
            continue
        best = -1
        for g in range(n_groups):
            if cells[g] * number[f] <= most_cells and (best < 0 or cells[g] > cells[best]):
                best = g
        if best < 0 and n_groups < len(group_ptr) - 1:
            best = n_groups
            cells[best] = 1
            n_groups += 1
        if best < 0:
            number[f] = 1
        else:
            cells[best] *= number[f]
            group_of[f] = best
    _list_members(group_of, n_groups, group_ptr, members)
    return n_groups


@inner_kernel
def _list_members(group_of, n_groups, group_ptr, members):
    place = 0
    group_ptr[0] = 0
    for g in range(n_groups):
        for f in range(len(group_of)):
            if group_of[f] == g:
                members[place] = f
                place += 1
        group_ptr[g + 1] = place


@kernel
def fill_digits(number, interval_of_bin, group_ptr, members, n_groups, digits):
    """What each bin of each feature adds to a code; the first member of a group is the lowest digit.

    digits : uint16 (n_features + 1, 256), written; the last row stays 0, for an absent feature
    """
    for g in range(n_groups):
        value = 1
        for place in range(group_ptr[g], group_ptr[g + 1]):
            f = members[place]
            for b in range(256):
                digits[f, b] = interval_of_bin[f, b] * value
            value *= number[f]


@kernel
def write_codes(bins, group_ptr, members, n_groups, digits, codes, start, end):
    """The codes of the documents start, ..., end − 1 in each joint histogram.

    codes : uint16 (most groups, n_docs or a few more), written
    """
    absent = len(digits) - 1
    for g in range(n_groups):
        for i in range(np.uint64(start), np.uint64(end)):
            codes[g, i] = 0
        for place in range(group_ptr[g], group_ptr[g + 1], _DIGITS_AT_ONCE):
            # An absent feature adds the row of zeros, for any bin.
            a, left = members[place], group_ptr[g + 1] - place
            b, b_row = (members[place + 1], members[place + 1]) if left > 1 else (a, absent)
            c, c_row = (members[place + 2], members[place + 2]) if left > 2 else (a, absent)
            a_bins, b_bins, c_bins = bins[a // GROUP], bins[b // GROUP], bins[c // GROUP]
            a_lane, b_lane, c_lane = a % GROUP, b % GROUP, c % GROUP
            for i in range(np.uint64(start), np.uint64(end)):
                codes[g, i] += (
                    digits[a, a_bins[i, a_lane]] + digits[b_row, b_bins[i, b_lane]] + digits[c_row, c_bins[i, c_lane]]
                )
