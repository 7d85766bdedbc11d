"""RankBoost on the CPU: the search for the best weak ranker that computes few features in full, by bounds.

Now and then every r is computed, in a *reference* round. In the rounds after it, bounds tell which features can win
(`bounds`), and only these *candidates* are computed. Bounds grow worse with every round; when one has cost
more than the mean of all rounds since the reference round, that one included, the next is a reference round again. What
is chosen never depends on any of this, only the time it takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_num_threads

from rankwell.kernels.boosting.contract import LevelledQueries
from rankwell.kernels.boosting.cpu.bounds import (
    best_bounds,
    bound_features,
    choose_groups,
    joint_histograms,
    summarise_intervals,
)
from rankwell.kernels.boosting.cpu.histograms import (
    GROUP,
    build_histograms,
    feature_histograms,
    integrate_few,
    integrate_histograms,
)
from rankwell.kernels.boosting.cpu.intervals import (
    CODES_A_WORD,
    DOCS_PER_CELL,
    HEADROOM,
    MOST_CELLS,
    MOST_INTERVALS,
    cut_features,
    find_varying,
    join_features,
    write_codes,
)
from rankwell.kernels.boosting.cpu.weights import TASKS
from rankwell.kernels.cpu.compilation import kernel

FIRST_LOOK = 4  # candidates computed before the others: what they reach rules out most of these
# What a feature costs that is computed alone, and a joint histogram, beside one feature of a reference round.
CANDIDATE_COST = 2
JOINT_COST = 1
MOST_RISE = 2.0  # changes beyond so many times the largest |r|: bounds would tell nothing
RISE_FOR_INTERVALS = 0.6  # changes in one round, as a share of the largest |r|, from which on intervals are made
# Intervals are made anew after as many rounds as there were before, within these limits: later rounds differ less.
FEWEST_ROUNDS, MOST_ROUNDS = 8, 256
LONGEST_PAUSE = 31  # rounds without bounds, after these ruled out too little again and again
MOST_PARTS, DOCS_PER_PART = 8, 16384  # parts of the documents that threads look at side by side

# Places in `state`: reference rounds so far; rounds so far, and when intervals were made; joint histograms; the largest
# |r| in the reference round; the sum of all drift.
_REFERENCES, _ROUND, _CUT_ROUND, _N_GROUPS, _BEST, _DRIFT = range(6)
# Rounds since the reference round, their cost and that of the last; rounds without bounds to come, and next time.
_SINCE, _SPENT, _LAST, _PAUSE, _PENALTY = range(6, 11)


class BoundedSearch:
    """What the search by bounds keeps between rounds; arrays of no size where it is not used (`queries` is None).

    Make it with the number of threads set (`kernel_threads`).

    arrays : see `search_by_bounds`
    """

    def __init__(self, bins: np.ndarray, n_features: int, queries: LevelledQueries | None) -> None:
        n_docs, features = (0, 0) if queries is None else (queries.n_docs, n_features)
        n_words = -(-n_docs // CODES_A_WORD)
        n_parts = max(1, min(get_num_threads(), MOST_PARTS, n_docs // DOCS_PER_PART))
        varies = _zeros(features, np.bool_)
        if queries is not None:
            find_varying(bins, queries.segment_ptr, queries.query_segments, varies)
        self.arrays = (
            _zeros(11, np.int64),
            (_zeros(n_docs, np.int32), _zeros((features, 256), np.int32), _zeros(features, np.int32)),
            (_zeros(n_words * CODES_A_WORD, np.int64), _zeros((TASKS, 2), np.int64)),
            _joint_arrays(features, n_words, n_parts),
            (
                _zeros(features, np.int64),
                _zeros((features, 256), np.uint8),
                *(_zeros((features, MOST_INTERVALS), np.uint8) for _ in range(2)),
            ),
            tuple(_zeros((features, MOST_INTERVALS), np.int64) for _ in range(2)),
            tuple(_zeros(features, np.int64) for _ in range(3)),
            _candidate_arrays(features, n_parts),
            (_zeros((features, 256), np.int32), varies),
        )

    @property
    def n_references(self) -> int:
        """Rounds so far in which every feature was computed."""
        return int(self.arrays[0][_REFERENCES])


def _zeros(shape: Any, dtype: Any) -> np.ndarray:
    return np.zeros(shape, dtype=dtype)


def _joint_arrays(n_features: int, n_words: int, n_parts: int) -> tuple[np.ndarray, ...]:
    """group_ptr, members, codes (at most 0.4 of the bins, where there are many features), sums and chosen groups."""
    most_groups = min(n_features, max(16, n_features // 5))
    return (
        _zeros(most_groups + 1, np.int64),
        _zeros(n_features, np.int32),
        _zeros((most_groups, n_words), np.uint64),
        _zeros((n_parts, n_features, MOST_INTERVALS), np.int64),
        _zeros(most_groups, np.int32),
    )


def _candidate_arrays(n_features: int, n_parts: int) -> tuple[np.ndarray, ...]:
    """Which features are done, candidates, and their histograms."""
    most = max(2 * FIRST_LOOK, n_features // 3)
    return (
        _zeros(n_features, np.bool_),
        _zeros(most, np.int32),
        _zeros((most, n_parts, 256), np.int32),
    )


@kernel
def search_by_bounds(search, bounds, pi, moved, n_bins, margin):
    """Fill the rows of `table` and `largest` of all features that may be chosen; `largest` of the others is 0.

    search : (bins, partial histograms, table of r, largest |r| by feature)
    bounds : (state, reference (π, table, largest), changes (packed, scratch), joint (group_ptr, members, codes, sums,
        chosen), intervals (number, of bins, first, last), summaries (highest, lowest), standing (bounds now,
        bounds less all drift, last estimates), candidates (done, features, histograms), documents (counts by bin,
        whether a feature varies))
    moved : what `changed_potentials` returned
    """
    state = bounds[0]
    rise, drift = moved
    state[_ROUND] += 1
    state[_DRIFT] += drift
    worn = state[_LAST] * (state[_SINCE] + 1) > len(search[2]) + state[_SPENT]
    if state[_PAUSE] > 0:
        state[_PAUSE] -= 1
    elif state[_N_GROUPS] > 0 and rise < MOST_RISE * state[_BEST] and not worn:
        if _search_candidates(search, bounds, pi, n_bins, margin, rise):
            state[_PENALTY] = 0
            return
        state[_PENALTY] = min(2 * state[_PENALTY] + 1, LONGEST_PAUSE)
        state[_PAUSE] = state[_PENALTY]
    _search_all(search, bounds, pi, n_bins, rise)


@kernel
def _search_candidates(search, bounds, pi, n_bins, margin, rise):
    """Search the features that can win; whether they were few enough."""
    largest = search[3]
    state, reference, changes, joint, intervals, summaries = bounds[:6]
    group_ptr, members, words, sums, chosen = joint
    upper, standing, estimates = bounds[6]
    done, candidates, _ = bounds[7]
    varies = bounds[8][1]
    drift = state[_DRIFT]
    largest[:] = 0
    done[:] = False
    for f in range(len(upper)):
        upper[f] = min(standing[f] + drift, reference[2][f] + rise) if varies[f] else 0
    candidates[0] = np.argmax(estimates)
    reached = _compute(search, bounds, pi, n_bins, candidates[:1])
    n_chosen = choose_groups(upper, reached - margin, done, joint[:2], state[_N_GROUPS], chosen)
    joint_histograms(words, changes[0], (chosen[:n_chosen], group_ptr, members), intervals[0], sums)
    for g in chosen[:n_chosen]:
        own = members[group_ptr[g] : group_ptr[g + 1]]
        reached = max(reached, bound_features(reference[1], intervals, summaries, sums, own, upper))
        for f in own:
            estimates[f] = upper[f]
    cost = n_chosen * JOINT_COST + CANDIDATE_COST
    for most in (FIRST_LOOK, len(candidates)):
        found = best_bounds(upper, reached - margin, done, candidates[:most])
        if found == len(candidates):
            return False
        reached = max(reached, _compute(search, bounds, pi, n_bins, candidates[:found]))
        cost += found * CANDIDATE_COST
    for f in range(len(upper)):
        standing[f] = upper[f] - drift
    state[_SINCE] += 1
    state[_SPENT] += cost
    state[_LAST] = cost
    return True


@kernel
def _compute(search, bounds, pi, n_bins, features):
    """Compute features in full; returns the largest |r| among them. features : int32 (n,)"""
    bins, _, table, largest = search
    upper, _, estimates = bounds[6]
    done, _, histograms = bounds[7]
    feature_histograms(bins, pi, features, histograms)
    integrate_few(histograms, features, n_bins, table, largest)
    reached = 0
    for f in features:
        upper[f] = estimates[f] = largest[f]
        done[f] = True
        reached = max(reached, largest[f])
    return reached


@kernel
def _search_all(search, bounds, pi, n_bins, rise):
    """Search every feature, which makes this a reference round."""
    bins, partial, table, largest = search
    state, reference, _, _, intervals, summaries = bounds[:6]
    _, standing, estimates = bounds[6]
    build_histograms(bins, pi, partial)
    integrate_histograms(partial, n_bins, table, largest)
    if state[_N_GROUPS] > 0:
        due = state[_ROUND] - state[_CUT_ROUND] >= min(max(state[_CUT_ROUND], FEWEST_ROUNDS), MOST_ROUNDS)
    else:
        near = np.count_nonzero(largest >= (1.0 - HEADROOM) * largest.max())
        calm = rise < RISE_FOR_INTERVALS * state[_BEST]
        due = state[_REFERENCES] > 0 and calm and near < len(bounds[7][1])
    if due:
        _make_intervals(search, bounds, len(pi))
        state[_CUT_ROUND] = state[_ROUND]
    reference[0][:] = pi
    reference[1][:] = table
    reference[2][:] = largest
    estimates[:] = largest
    for f in range(len(largest)):
        standing[f] = largest[f] - state[_DRIFT]
    if state[_N_GROUPS] > 0:
        summarise_intervals(table, intervals, summaries[0], summaries[1])
    state[_BEST] = largest.max()
    state[_SINCE] = state[_SPENT] = state[_LAST] = 0
    state[_REFERENCES] += 1


@kernel
def _make_intervals(search, bounds, n_docs):
    """Cut the features by their r of this round, and write the documents' codes. `partial` is overwritten."""
    bins, partial, table, largest = search
    joint, intervals = bounds[3], bounds[4]
    counts, varies = bounds[8]
    group_ptr, members, words = joint[:3]
    number, of_bin, first, last = intervals
    if counts.max() == 0:
        _count_documents(bins, partial, counts, n_docs)
    cut_features(table, counts, n_docs, largest.max(), varies, number, of_bin, first, last)
    most_cells = max(2, min(MOST_CELLS, n_docs // DOCS_PER_CELL))
    n_groups = join_features(number, largest, most_cells, group_ptr, members)
    write_codes(bins, intervals, group_ptr, members, n_groups, words.view(np.uint16))
    bounds[0][_N_GROUPS] = n_groups


@kernel
def _count_documents(bins, partial, counts, n_docs):
    """Documents by bin. counts : int32 (n_features, 256), written"""
    build_histograms(bins, np.ones(n_docs, np.int32), partial)
    for f in range(len(counts)):
        for part in range(partial.shape[1]):
            counts[f] += partial[f // GROUP, part, f % GROUP]
