"""RankBoost on the CPU: runs of neighbouring bins, and the documents' codes in them, for the search by bounds.

An *interval* is a run of neighbouring bins of one feature, a *border* the threshold between two intervals. The
intervals of several features are the digits of one number, a document's *code* in a *joint* histogram: one addition
there counts for all of these features, and sums over digits give each one's own histogram back.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.boosting.cpu.histograms import GROUP, feature_column
from rankwell.kernels.cpu.compilation import kernel

MOST_INTERVALS = 64  # of a feature
MOST_CELLS = 1024  # of a joint histogram: two of them are 16 KB, half the first-level cache
CODES_A_WORD = 4  # codes of 16 bits that are loaded at once
DOCS_PER_CELL = 16  # at least, so that a joint histogram is small beside the documents added to it

# Intervals are made for changes of up to REACH times the largest |r|, and as wide as they can be while the thresholds
# inside stay under (1 − HEADROOM) of it; SMALL_SHARE of the documents may always stand together.
REACH = 1.2
HEADROOM = 0.15
SMALL_SHARE = 1 / 64

_BLOCK = 1024  # documents whose bins, of all features, stay in the second-level cache
_DIGITS_AT_ONCE = 3


@kernel(parallel=True)
def find_varying(bins, segment_ptr, query_segments, varies):
    """Which features differ within some query: only these can order a pair.

    segment_ptr, query_segments : see `LevelledQueries`; varies : bool (n_features,), written
    """
    words = bins.view(np.uint64)  # eight features in each
    for group in prange(bins.shape[0]):
        rows = words[group]
        different = np.zeros(2, np.uint64)
        for q in range(len(query_segments) - 1):
            start, end = segment_ptr[query_segments[q]], segment_ptr[query_segments[q + 1]]
            for i in range(start + 1, end):
                different[0] |= rows[i, 0] ^ rows[start, 0]
                different[1] |= rows[i, 1] ^ rows[start, 1]
        lanes = different.view(np.uint8)
        for lane in range(min(GROUP, len(varies) - group * GROUP)):
            varies[group * GROUP + lane] = lanes[lane] != 0


@kernel
def _cut_feature(r, counts, n_docs, best, interval_of_bin, first, last):
    """Cut one feature into intervals; returns their number. Each begins and ends with a bin that has documents."""
    number = -1
    docs = 0
    peak = 0
    for b in range(len(counts)):
        if counts[b] > 0:
            higher = max(peak, abs(r[b - 1])) if docs > 0 else 0
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
                first[number] = b
            last[number] = b
        interval_of_bin[b] = max(number, 0)
    return max(number + 1, 1)


@kernel(parallel=True)
def cut_features(table, counts, n_docs, best, varies, number, of_bin, first, last):
    """Cut features into intervals, narrow where r is near the largest |r|, wide where it is far from it.

    table : int32 (n_features, 256), r as it is now; counts : int32 (n_features, 256), documents by bin
    best : the largest |r|; varies : bool (n_features,)
    number : int64 (n_features,), of intervals, 0 where a feature does not vary, written
    of_bin : uint8 (n_features, 256), the interval of each bin, written
    first, last : uint8 (n_features, 64), an interval's first and last bin that has documents, written
    """
    for f in prange(len(table)):
        number[f] = 0
        if varies[f]:
            number[f] = _cut_feature(table[f], counts[f], n_docs, best, of_bin[f], first[f], last[f])


@kernel
def join_features(number, largest, most_cells, group_ptr, members):
    """Share features out to joint histograms of at most `most_cells` cells, the best fit first; returns how many.

    Of features with equally many intervals, those with a similar largest |r| come together: a joint histogram is left
    out where none of its features can win. Features that find no place are cut no more: their number of intervals
    becomes 1.

    number : int64 (n_features,), changed; largest : int32 (n_features,), largest |r|
    group_ptr : int64 (most groups + 1,), written
    members : int32 (n_features,), written, those of a group in a row
    """
    most_groups = len(group_ptr) - 1
    cells = np.ones(most_groups, np.int64)
    group_of = np.full(len(number), -1)
    n_groups = 0
    for f in np.argsort(-(number * 2**32 + largest), kind="mergesort"):
        if number[f] <= 1:
            continue
        best = -1
        for g in range(n_groups):
            if cells[g] * number[f] <= most_cells and (best < 0 or cells[g] > cells[best]):
                best = g
        if best < 0 and n_groups < most_groups:
            best = n_groups
            n_groups += 1
        if best < 0:
            number[f] = 1
        else:
            cells[best] *= number[f]
            group_of[f] = best
    place = 0
    group_ptr[0] = 0
    for g in range(n_groups):
        for f in range(len(number)):
            if group_of[f] == g:
                members[place] = f
                place += 1
        group_ptr[g + 1] = place
    return n_groups


@kernel
def _digit_tables(intervals, group_ptr, members, n_groups):
    """What each bin of each feature adds to a code, uint16 (n_features + 1, 256); the first member is the lowest digit.

    The last row is all 0, for a feature that is not there.
    """
    number, of_bin = intervals[0], intervals[1]
    tables = np.zeros((len(number) + 1, 256), np.uint16)
    for g in range(n_groups):
        place = 1
        for f in members[group_ptr[g] : group_ptr[g + 1]]:
            for b in range(256):
                tables[f, b] = of_bin[f, b] * place
            place *= number[f]
    return tables


@kernel(parallel=True)
def write_codes(bins, intervals, group_ptr, members, n_groups, codes):
    """Each document's code in each joint histogram. codes : uint16 (most groups, n_docs or a few more), written"""
    tables = _digit_tables(intervals, group_ptr, members, n_groups)
    n_docs = bins.shape[1]
    for block in prange((n_docs + _BLOCK - 1) // _BLOCK):
        start, end = block * _BLOCK, min((block + 1) * _BLOCK, n_docs)
        for g in range(n_groups):
            own = members[group_ptr[g] : group_ptr[g + 1]]
            codes[g, start:end] = 0
            for first in range(0, len(own), _DIGITS_AT_ONCE):
                _add_digits(bins[:, start:end], tables, own[first : first + _DIGITS_AT_ONCE], codes[g, start:end])


@kernel
def _add_digits(bins, tables, features, codes):
    """Add the digits of up to three features to the codes of some documents."""
    a = features[0]
    b, b_row = (features[1], features[1]) if len(features) > 1 else (a, len(tables) - 1)
    c, c_row = (features[2], features[2]) if len(features) > 2 else (a, len(tables) - 1)
    a_bins, b_bins, c_bins = feature_column(bins, a), feature_column(bins, b), feature_column(bins, c)
    a_digits, b_digits, c_digits = tables[a], tables[b_row], tables[c_row]
    for i in range(len(codes)):
        codes[i] += a_digits[a_bins[i]] + b_digits[b_bins[i]] + c_digits[c_bins[i]]
