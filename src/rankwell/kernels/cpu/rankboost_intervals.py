"""RankBoost on the CPU: runs of neighbouring bins, and the documents' codes in them, for the search by bounds.

An *interval* is a run of neighbouring bins of one feature, a *border* the threshold between two intervals. The
intervals of several features are the digits of one number, a document's *code* in a *joint* histogram: one addition
there counts for all of these features, and sums over digits give each one's own histogram back.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.rankboost_search import GROUP

MOST_INTERVALS = 64  # of a feature
MOST_CELLS = 1024  # of a joint histogram: four of them are 32 KB, the first-level cache
DOCS_PER_CELL = 16  # at least, so that a joint histogram is small beside the documents added to it

# Intervals are made for changes of up to REACH times the largest |r|, and as wide as they can be while the thresholds
# inside stay under (1 − HEADROOM) of it; SMALL_SHARE of the documents may always stand together.
REACH = 1.2
HEADROOM = 0.15
SMALL_SHARE = 1 / 64

_BLOCK = 1024  # documents whose bins, of all features, stay in the second-level cache


@kernel(parallel=True)
def find_varying(bins, order, segment_ptr, query_segments, varies):
    """Which features differ within some query: only these can order a pair.

    order, segment_ptr, query_segments : see `LevelledQueries`; varies : bool (n_features,), written
    """
    for group in prange(bins.shape[0]):
        rows = bins[group]
        different = np.zeros(GROUP, np.uint8)
        for q in range(len(query_segments) - 1):
            start, end = segment_ptr[query_segments[q]], segment_ptr[query_segments[q + 1]]
            first = order[start]
            for i in range(start + 1, end):
                d = order[i]
                for lane in range(GROUP):
                    different[lane] |= rows[d, lane] ^ rows[first, lane]
        for lane in range(min(GROUP, len(varies) - group * GROUP)):
            varies[group * GROUP + lane] = different[lane] != 0


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
def join_features(number, most_cells, group_ptr, members):
    """Share features out to joint histograms of at most `most_cells` cells, the best fit first; returns how many.

    Features that find no place are cut no more: their number of intervals becomes 1.

    number : int64 (n_features,), changed; group_ptr : int64 (most groups + 1,), written
    members : int32 (n_features,), written, those of a group in a row
    """
    most_groups = len(group_ptr) - 1
    cells = np.ones(most_groups, np.int64)
    group_of = np.full(len(number), -1)
    n_groups = 0
    for f in np.argsort(-number, kind="mergesort"):
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


@kernel(parallel=True)
def write_codes(bins, kept, intervals, group_ptr, members, n_groups, codes):
    """Each document's code in each joint histogram, the first member the lowest digit.

    kept : uint32 (n_kept,), documents with pairs; codes : uint16 (most groups, n_kept), written
    """
    number, of_bin = intervals[0], intervals[1]
    n_kept = len(kept)
    for block in prange((n_kept + _BLOCK - 1) // _BLOCK):
        start, end = block * _BLOCK, min((block + 1) * _BLOCK, n_kept)
        for g in range(n_groups):
            own = members[group_ptr[g] : group_ptr[g + 1]]
            _write_block(bins, kept[start:end], number, of_bin, own, codes[g, start:end])


@kernel
def _write_block(bins, kept, number, of_bin, members, codes):
    """One joint histogram's codes of some documents, two digits at a time."""
    codes[:] = 0
    digit = 1
    values = np.zeros((2, 256), np.uint16)
    low, high = values[0], values[1]
    for first in range(0, len(members), 2):
        one, other = members[first], members[min(first + 1, len(members) - 1)]
        for b in range(256):
            low[b] = of_bin[one, b] * digit
            high[b] = of_bin[other, b] * digit * number[one] if other != one else 0
        digit *= number[one] * number[other]
        ones, others = bins[one // GROUP][:, one % GROUP], bins[other // GROUP][:, other % GROUP]
        for i in range(len(kept)):
            codes[i] += low[ones[kept[i]]] + high[others[kept[i]]]
