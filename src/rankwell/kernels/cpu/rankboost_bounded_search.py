"""RankBoost on the CPU: the search for the best weak ranker that computes few features in full, by bounds.

Now and then every r is computed, in a *reference* round. In the rounds after it, bounds tell which features can win
(`rankboost_bounds`), and only these *candidates* are computed. When they have cost as much as a reference round, there
is another. What is chosen never depends on any of this, only the time it takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.rankboost_bounds import (
    CHANGE_BLOCK,
    best_bounds,
    bound_features,
    joint_histograms,
    pack_changes,
    summarise_intervals,
)
from rankwell.kernels.cpu.rankboost_intervals import (
    DOCS_PER_CELL,
    HEADROOM,
    MOST_CELLS,
    MOST_INTERVALS,
    cut_features,
    find_varying,
    join_features,
    write_codes,
)
from rankwell.kernels.cpu.rankboost_search import (
    GROUP,
    build_histograms,
    feature_histograms,
    integrate_few,
    integrate_histograms,
)
from rankwell.kernels.rankboost_interface import LevelledQueries

FIRST_LOOK = 4  # candidates computed before the others: what they reach rules out most of these
CANDIDATE_COST = 2  # of a feature computed alone, beside one among all of them
MOST_RISE = 2.0  # changes beyond so many times the largest |r|: bounds would tell nothing
RISE_FOR_INTERVALS = 0.6  # changes in one round, as a share of the largest |r|, from which on intervals are made
ROUNDS_FOR_INTERVALS = 48  # intervals are made anew after so many
LONGEST_PAUSE = 31  # rounds without bounds, after these ruled out too little again and again
FEW_GROUPS = 64  # joint histograms, up to which each is shared by two threads

# Places in `state`: whether there is a reference round; joint histograms; rounds since intervals were made; cost of
# candidates since the reference round and largest |r| in it; rounds without bounds to come and next time; reference
# rounds in all.
_HAS_REFERENCE, _N_GROUPS, _AGE, _SPENT, _BEST, _PAUSE, _PENALTY, _REFERENCES = range(8)


class BoundedSearch:
    """What the search by bounds keeps between rounds; arrays of no size where it is not used (`queries` is None).

    arrays : see `search_by_bounds`
    """

    def __init__(self, bins: np.ndarray, n_features: int, queries: LevelledQueries | None) -> None:
        order = np.zeros(0, dtype=np.int32) if queries is None else queries.order
        n_docs, features = (0, 0) if queries is None else (queries.n_docs, n_features)
        kept = np.sort(order).astype(np.uint32)
        varies = np.zeros(features, dtype=np.bool_)
        if queries is not None:
            find_varying(bins, order, queries.segment_ptr, queries.query_segments, varies)
        self.arrays = (
            _zeros(8, np.int64),
            (_zeros(n_docs, np.int32), _zeros((features, 256), np.int32), _zeros(features, np.int32)),
            (kept, _zeros(len(kept), np.int64), _zeros(-(-len(kept) // CHANGE_BLOCK), np.int64)),
            _joint_arrays(features, len(kept)),
            (
                _zeros(features, np.int64),
                _zeros((features, 256), np.uint8),
                *(_zeros((features, MOST_INTERVALS), np.uint8) for _ in range(2)),
            ),
            tuple(_zeros((features, MOST_INTERVALS), np.int64) for _ in range(2)),
            _candidate_arrays(features),
            (_zeros((features, 256), np.int32), varies),
        )

    @property
    def n_references(self) -> int:
        """Rounds so far in which every feature was computed."""
        return int(self.arrays[0][_REFERENCES])


def _zeros(shape: Any, dtype: Any) -> np.ndarray:
    return np.zeros(shape, dtype=dtype)


def _joint_arrays(n_features: int, n_kept: int) -> tuple[np.ndarray, ...]:
    """group_ptr, members, codes (at most 0.4 of the bins, where there are many features) and sums."""
    most_groups = min(n_features, max(16, n_features // 5))
    n_parts = 2 if most_groups < FEW_GROUPS else 1
    return (
        _zeros(most_groups + 1, np.int64),
        _zeros(n_features, np.int32),
        _zeros((most_groups, n_kept), np.uint16),
        _zeros((n_parts, n_features, MOST_INTERVALS), np.int64),
    )


def _candidate_arrays(n_features: int) -> tuple[np.ndarray, ...]:
    """Upper bounds, which features are done, candidates, and their histograms in two parts."""
    most = max(2 * FIRST_LOOK, n_features // 3)
    return (
        _zeros(n_features, np.int64),
        _zeros(n_features, np.bool_),
        _zeros(most, np.int32),
        _zeros((most, 2, 256), np.int32),
    )


@kernel
def search_by_bounds(search, bounds, pi, n_bins, margin):
    """Fill the rows of `table` and `largest` of all features that may be chosen; `largest` of the others is 0.

    search : (bins, partial histograms, table of r, largest |r| by feature)
    bounds : (state, reference (π, table, largest), changes (kept, packed, scratch), joint (group_ptr, members, codes,
        sums), intervals (number, of bins, first, last), summaries (highest, lowest), candidates (upper, done, features,
        histograms), documents (counts by bin, whether a feature varies))
    """
    state, reference, changes = bounds[0], bounds[1], bounds[2]
    rise = 0
    state[_AGE] += 1
    if state[_HAS_REFERENCE]:
        rise = pack_changes(changes[0], pi, reference[0], changes[1], changes[2])
        if state[_PAUSE] > 0:
            state[_PAUSE] -= 1
        elif state[_N_GROUPS] > 0 and rise < MOST_RISE * state[_BEST] and state[_SPENT] < len(search[2]):
            if _search_candidates(search, bounds, pi, n_bins, margin, rise):
                state[_PENALTY] = 0
                return
            state[_PENALTY] = min(2 * state[_PENALTY] + 1, LONGEST_PAUSE)
            state[_PAUSE] = state[_PENALTY]
    _search_all(search, bounds, pi, n_bins, rise)


@kernel
def _search_candidates(search, bounds, pi, n_bins, margin, rise):
    """Search the features that can win; whether they were few enough."""
    bins, _, table, largest = search
    state, reference, changes, joint, intervals, summaries = bounds[:6]
    group_ptr, members, codes, sums = joint
    upper, done, candidates, partial = bounds[6]
    joint_histograms(codes, changes[1], (state[_N_GROUPS], group_ptr, members), intervals[0], sums)
    reached = bound_features(reference[1], reference[2], intervals, summaries, sums, rise, upper)
    largest[:] = 0
    done[:] = False
    for most in (FIRST_LOOK, len(candidates)):
        found = best_bounds(upper, reached - margin, done, candidates[:most])
        if found == len(candidates):
            return False
        few = candidates[:found]
        feature_histograms(bins, pi, few, partial)
        integrate_few(partial, few, n_bins, table, largest)
        for f in few:
            reached = max(reached, largest[f])
            done[f] = True
        state[_SPENT] += found * CANDIDATE_COST
    return True


@kernel
def _search_all(search, bounds, pi, n_bins, rise):
    """Search every feature, which makes this a reference round."""
    bins, partial, table, largest = search
    state, reference, _, _, intervals, summaries = bounds[:6]
    build_histograms(bins, pi, partial)
    integrate_histograms(partial, n_bins, table, largest)
    if state[_N_GROUPS] > 0:
        due = state[_AGE] >= ROUNDS_FOR_INTERVALS
    else:
        near = np.count_nonzero(largest >= (1.0 - HEADROOM) * largest.max())
        calm = rise < RISE_FOR_INTERVALS * state[_BEST]
        due = state[_HAS_REFERENCE] and calm and near < len(bounds[6][2])
    if due:
        _make_intervals(search, bounds, len(pi))
        state[_AGE] = 0
    reference[0][:] = pi
    reference[1][:] = table
    reference[2][:] = largest
    if state[_N_GROUPS] > 0:
        summarise_intervals(table, intervals, summaries[0], summaries[1])
    state[_HAS_REFERENCE] = 1
    state[_BEST] = largest.max()
    state[_SPENT] = 0
    state[_REFERENCES] += 1


@kernel
def _make_intervals(search, bounds, n_docs):
    """Cut the features by their r of this round, and write the documents' codes. `partial` is overwritten."""
    bins, partial, table, largest = search
    kept, joint, intervals = bounds[2][0], bounds[3], bounds[4]
    counts, varies = bounds[7]
    group_ptr, members, codes, _ = joint
    number, of_bin, first, last = intervals
    if counts.max() == 0:
        _count_documents(bins, kept, partial, counts, n_docs)
    cut_features(table, counts, len(kept), largest.max(), varies, number, of_bin, first, last)
    most_cells = max(2, min(MOST_CELLS, len(kept) // DOCS_PER_CELL))
    n_groups = join_features(number, most_cells, group_ptr, members)
    write_codes(bins, kept, intervals, group_ptr, members, n_groups, codes)
    bounds[0][_N_GROUPS] = n_groups


@kernel
def _count_documents(bins, kept, partial, counts, n_docs):
    """Documents with pairs by bin. counts : int32 (n_features, 256), written"""
    ones = np.zeros(n_docs, np.int32)
    for d in kept:
        ones[d] = 1
    build_histograms(bins, ones, partial)
    for f in range(len(counts)):
        for part in range(partial.shape[1]):
            counts[f] += partial[f // GROUP, part, f % GROUP]
