"""RankBoost on the CPU: the search for the best weak ranker that computes few features in full, by bounds.

In some rounds, the *reference* rounds, every r is computed. In the rounds between, bounds tell which features can win
(`bounds`), and only these *candidates* are computed. Bounds become weaker with every round; when a round
has cost more than the mean of all rounds since the reference round, that one included, the next is a reference round. A
cost is a count of features, not a time. The choice of weak rankers never depends on this, only the time.

A round is a sequence of stages whose tasks a team of threads runs (`tasks`). `continue_search` runs on one thread
between two of them: it reads the results of the stage and returns the next one.

    changes of π ─> one candidate ─> joint histograms ─> four candidates ─> the others ─> the choice
         └────────────────────────────────┬───────────────────┘ too many
                                          └─> histograms ─> r ─> (counts ─> cuts ─> codes) ─> summaries ─> the choice
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rankwell.kernels.boosting.contract import LevelledQueries
from rankwell.kernels.boosting.cpu.bounds import Bounds, best_bounds, bound_features, choose_groups
from rankwell.kernels.boosting.cpu.histograms import GROUP, integrate_few
from rankwell.kernels.boosting.cpu.intervals import (
    CODES_A_WORD,
    DOCS_PER_CELL,
    HEADROOM,
    MOST_CELLS,
    MOST_INTERVALS,
    Intervals,
    differing_bits,
    fill_digits,
    join_features,
)
from rankwell.kernels.boosting.cpu.tasks import (
    ALL_DOCS,
    BEGIN,
    BEST,
    CANDIDATES,
    CHANGES,
    CODES,
    COUNTS,
    CUTS,
    HISTOGRAMS,
    INTEGRALS,
    JOINT,
    N_BINS,
    N_CANDIDATES,
    N_CHOSEN,
    N_GROUPS,
    SUMMARIES,
)
from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel
from rankwell.kernels.disk_arrays import BLOCK_BYTES, give_back, is_on_disk, zeros_beside
from rankwell.kernels.threads import run_parts

FIRST_LOOK = 4  # candidates computed before the others: their r excludes most of the others
# The cost of a feature that is computed alone, and of a joint histogram, relative to a feature of a reference round.
CANDIDATE_COST = 2
JOINT_COST = 1
MOST_RISE = 2.0  # beyond this many times the largest |r|, bounds would be useless
RISE_FOR_INTERVALS = 0.6  # intervals are made once the changes in a round are below this share of the largest |r|
# Intervals are made anew when the number of rounds has doubled, within these limits: later rounds differ less.
FEWEST_ROUNDS, MOST_ROUNDS = 8, 256
LONGEST_PAUSE = 31  # rounds without bounds, after these have repeatedly excluded too little
MOST_PARTS, DOCS_PER_PART = 8, 16384  # parts of the documents that threads work on in parallel

# Places in `state`: reference rounds so far; rounds so far, and when intervals were made; joint histograms; the largest
# |r| in the reference round; the sum of all drift.
REFERENCES, ROUND, CUT_ROUND, GROUPS, BEST_R, DRIFT = range(6)
# Rounds since the reference round, their cost and that of the last; rounds without bounds to come, and next time;
# whether documents were counted.
SINCE, SPENT, LAST, PAUSE, PENALTY, COUNTED = range(6, 12)
# In this round: the sum of all positive Δ; passes over candidates so far, the largest |r| of these and of borders, and
# the cost.
RISE, LOOK, REACHED, COST = range(12, 16)
N_STATE = 16


def new_intervals(bins: np.ndarray, n_features: int, queries: LevelledQueries) -> Intervals:
    """Intervals before any feature is cut. Call it with the number of threads set (`kernel_threads`)."""
    most_groups = _most_groups(n_features)
    words = zeros_beside(bins, (most_groups, -(-queries.n_docs // CODES_A_WORD)), np.uint64)
    return Intervals(
        number=np.zeros(n_features, dtype=np.int64),
        of_bin=np.zeros((n_features, 256), dtype=np.uint8),
        first_bin=np.zeros((n_features, MOST_INTERVALS), dtype=np.uint8),
        last_bin=np.zeros((n_features, MOST_INTERVALS), dtype=np.uint8),
        highest=np.zeros((n_features, MOST_INTERVALS), dtype=np.int64),
        lowest=np.zeros((n_features, MOST_INTERVALS), dtype=np.int64),
        counts=np.zeros((n_features, 256), dtype=np.int32),
        varies=find_varying(bins, n_features, queries),
        group_ptr=np.zeros(most_groups + 1, dtype=np.int64),
        members=np.zeros(n_features, dtype=np.int32),
        digits=np.zeros((n_features + 1, 256), dtype=np.uint16),
        words=words,
        codes=words.view(np.uint16),
        scratch=np.zeros((3, n_features), dtype=np.int64),
    )


def new_bounds(n_features: int, n_docs: int, query_tasks: int, n_workers: int, least_parts: int = 1) -> Bounds:
    """Bounds before the first round. least_parts : parts at least that the documents are divided into"""
    n_parts = max(least_parts, min(n_workers, MOST_PARTS, n_docs // DOCS_PER_PART))
    most_candidates = max(2 * FIRST_LOOK, n_features // 3)
    return Bounds(
        state=np.zeros(N_STATE, dtype=np.int64),
        reference_pi=np.zeros(n_docs, dtype=np.int32),
        reference_table=np.zeros((n_features, 256), dtype=np.int32),
        reference_largest=np.zeros(n_features, dtype=np.int32),
        changes=np.zeros(-(-n_docs // CODES_A_WORD) * CODES_A_WORD, dtype=np.int64),
        moved=np.zeros((query_tasks, 2), dtype=np.int64),
        sums=np.zeros((n_parts, n_features, MOST_INTERVALS), dtype=np.int64),
        chosen=np.zeros(_most_groups(n_features), dtype=np.int32),
        cells=np.zeros((n_workers, 2, MOST_CELLS), dtype=np.int64),
        upper=np.zeros(n_features, dtype=np.int64),
        standing=np.zeros(n_features, dtype=np.int64),
        estimates=np.zeros(n_features, dtype=np.int64),
        done=np.zeros(n_features, dtype=np.bool_),
        candidates=np.zeros(most_candidates, dtype=np.int32),
        histograms=np.zeros((most_candidates, n_parts, 256), dtype=np.int32),
        apart=np.zeros((n_workers, 8, 256), dtype=np.int32),
    )


def _most_groups(n_features: int) -> int:
    """The most joint histograms: their codes take at most 0.4 of the memory of the bins if there are many features."""
    return min(n_features, max(16, n_features // 5))


def find_varying(bins: np.ndarray, n_features: int, queries: LevelledQueries) -> np.ndarray:
    """Which features vary within some query, bool (n_features,): only these can order a pair."""
    words = bins.view(np.uint64)  # eight features in each
    different = np.zeros((len(bins), 2), dtype=np.uint64)
    for segments in _blocks_of_queries(bins, queries):
        in_block = np.zeros_like(different)
        run_parts(lambda group: differing_bits(words, queries.segment_ptr, segments, group, in_block), len(bins))  # noqa: B023
        different |= in_block
        give_back(bins)
    return different.view(np.uint8).ravel()[:n_features] != 0


def _blocks_of_queries(bins: np.ndarray, queries: LevelledQueries) -> list[np.ndarray]:
    """The query_segments of all queries at once; or, if bins are on disk, of a few at a time."""
    if not is_on_disk(bins):
        return [queries.query_segments]
    documents = queries.segment_ptr[queries.query_segments]
    n_blocks = -(-bins.nbytes // (4 * BLOCK_BYTES))
    goals = np.arange(1, n_blocks) * (queries.n_docs / n_blocks)
    cuts = np.unique(np.concatenate(([0], np.searchsorted(documents, goals), [queries.n_queries])))
    return [queries.query_segments[first : last + 1] for first, last in pairwise(cuts)]


@inlined_kernel
def continue_search(stage, control, pi, search, bounds, intervals, margin):
    """The work of one thread after a stage of the search; returns the next stage, or BEGIN if the search is done.

    Then the rows of `table` and `largest` of all features that may be chosen are filled; `largest` of the others is 0.
    """
    if stage == CHANGES:
        return _begin_search(control, search.largest, bounds, intervals.varies)
    if stage == CANDIDATES:
        return _take_candidates(control, search, bounds, intervals, margin)
    if stage == JOINT:
        _take_borders(control, bounds, intervals)
        return _look_at(FIRST_LOOK, control, bounds, margin)
    if stage == HISTOGRAMS:
        return INTEGRALS
    if stage == SUMMARIES:
        return BEGIN
    return _continue_reference(stage, control, pi, search, bounds, intervals)


@inner_kernel
def _begin_search(control, largest, bounds, varies):
    """Search by bounds, or every feature."""
    state, moved, upper, estimates = bounds.state, bounds.moved, bounds.upper, bounds.estimates
    rise = 0
    for task in range(len(moved)):
        rise += moved[task, 0]
        state[DRIFT] += moved[task, 1]
    state[RISE] = rise
    state[ROUND] += 1
    worn = state[LAST] * (state[SINCE] + 1) > len(upper) + state[SPENT]
    if state[PAUSE] > 0:
        state[PAUSE] -= 1
        return HISTOGRAMS
    if state[GROUPS] == 0 or rise >= MOST_RISE * state[BEST_R] or worn:
        return HISTOGRAMS
    best = 0
    for f in range(len(upper)):
        largest[f] = 0
        bounds.done[f] = False
        by_round, by_reference = bounds.standing[f] + state[DRIFT], bounds.reference_largest[f] + rise
        bound = by_round if by_round < by_reference else by_reference
        upper[f] = bound if varies[f] else 0
        best = f if estimates[f] > estimates[best] else best
    bounds.candidates[0] = best
    control[N_CANDIDATES] = 1
    state[LOOK] = state[REACHED] = state[COST] = 0
    return CANDIDATES


@inner_kernel
def _take_candidates(control, search, bounds, intervals, margin):
    """The candidates that were computed in full exclude others."""
    state, candidates, largest = bounds.state, bounds.candidates, search.largest
    n_candidates = control[N_CANDIDATES]
    integrate_few(bounds.histograms, candidates, n_candidates, control[N_BINS], search.table, largest)
    for place in range(n_candidates):
        f = candidates[place]
        bounds.upper[f] = bounds.estimates[f] = largest[f]
        bounds.done[f] = True
        state[REACHED] = largest[f] if largest[f] > state[REACHED] else state[REACHED]
    state[COST] += n_candidates * CANDIDATE_COST
    state[LOOK] += 1
    if state[LOOK] == 1:
        least, group_ptr, members = state[REACHED] - margin, intervals.group_ptr, intervals.members
        n_chosen = choose_groups(bounds.upper, least, bounds.done, group_ptr, members, state[GROUPS], bounds.chosen)
        control[N_CHOSEN] = n_chosen
        state[COST] += n_chosen * JOINT_COST
        return JOINT
    if state[LOOK] == 2:
        return _look_at(len(candidates), control, bounds, margin)
    for f in range(len(largest)):
        bounds.standing[f] = bounds.upper[f] - state[DRIFT]
    state[SINCE] += 1
    state[SPENT] += state[COST]
    state[LAST] = state[COST]
    state[PENALTY] = 0
    return BEGIN


@inner_kernel
def _take_borders(control, bounds, intervals):
    """Joint histograms lower the bounds of their features."""
    state, group_ptr = bounds.state, intervals.group_ptr
    for place in range(control[N_CHOSEN]):
        g = bounds.chosen[place]
        border = bound_features(
            bounds.reference_table,
            bounds.sums,
            intervals.members,
            group_ptr[g],
            group_ptr[g + 1],
            intervals.number,
            intervals.last_bin,
            intervals.highest,
            intervals.lowest,
            bounds.upper,
            bounds.estimates,
        )
        state[REACHED] = border if border > state[REACHED] else state[REACHED]


@inner_kernel
def _look_at(most, control, bounds, margin):
    """The candidates with the highest bounds are next, or every feature if too many can win."""
    state, candidates = bounds.state, bounds.candidates
    found = best_bounds(bounds.upper, state[REACHED] - margin, bounds.done, candidates, most)
    control[N_CANDIDATES] = found
    if found < len(candidates):
        return CANDIDATES
    penalty = 2 * state[PENALTY] + 1
    state[PENALTY] = state[PAUSE] = penalty if penalty < LONGEST_PAUSE else LONGEST_PAUSE
    return HISTOGRAMS


@inlined_kernel
def _continue_reference(stage, control, pi, search, bounds, intervals):
    """Every feature was computed, which makes this a reference round; in some of them intervals are made.

    `partial` and π of the previous reference round, which are not needed any more, are overwritten by the counts.
    """
    state = bounds.state
    if stage == INTEGRALS and _intervals_are_due(search.largest, control, state, len(bounds.candidates)):
        if state[COUNTED] == 0:
            for i in range(np.uint64(len(pi))):
                bounds.reference_pi[i] = 1
            return COUNTS
        return CUTS
    if stage == COUNTS:
        state[COUNTED] = 1
        _sum_counts(search.partial, intervals.counts)
        return CUTS
    if stage == CUTS:
        _join(control[ALL_DOCS], control, search.largest, intervals)
        state[GROUPS] = control[N_GROUPS]
        state[CUT_ROUND] = state[ROUND]
        return CODES
    _keep_reference(pi, search.table, search.largest, bounds)
    state[BEST_R] = control[BEST]
    return SUMMARIES if state[GROUPS] > 0 else BEGIN


@inner_kernel
def _intervals_are_due(largest, control, state, most_candidates):
    best = 0
    for f in range(len(largest)):
        best = largest[f] if largest[f] > best else best
    control[BEST] = best
    if state[GROUPS] > 0:
        wait = state[CUT_ROUND] if state[CUT_ROUND] > FEWEST_ROUNDS else FEWEST_ROUNDS
        return state[ROUND] - state[CUT_ROUND] >= (wait if wait < MOST_ROUNDS else MOST_ROUNDS)
    near = 0
    for f in range(len(largest)):
        near += 1 if largest[f] >= (1.0 - HEADROOM) * best else 0
    return state[REFERENCES] > 0 and state[RISE] < RISE_FOR_INTERVALS * state[BEST_R] and near < most_candidates


@inner_kernel
def _sum_counts(partial, counts):
    """Documents by bin. counts : int32 (n_features, 256), written"""
    for f in range(len(counts)):
        for b in range(256):
            total = 0
            for part in range(partial.shape[1]):
                total += partial[f // GROUP, part, f % GROUP, b]
            counts[f, b] = total


@inlined_kernel
def _join(n_docs, control, largest, intervals):
    most_cells = n_docs // DOCS_PER_CELL if n_docs // DOCS_PER_CELL < MOST_CELLS else MOST_CELLS
    most_cells = most_cells if most_cells > 2 else 2
    number, group_ptr, members = intervals.number, intervals.group_ptr, intervals.members
    n_groups = join_features(number, largest, most_cells, group_ptr, members, intervals.scratch)
    fill_digits(number, intervals.of_bin, group_ptr, members, n_groups, intervals.digits)
    control[N_GROUPS] = n_groups


@inner_kernel
def _keep_reference(pi, table, largest, bounds):
    state = bounds.state
    for i in range(np.uint64(len(pi))):
        bounds.reference_pi[i] = pi[i]
    for f in range(len(largest)):
        for b in range(256):
            bounds.reference_table[f, b] = table[f, b]
        bounds.reference_largest[f] = bounds.estimates[f] = largest[f]
        bounds.standing[f] = largest[f] - state[DRIFT]
    state[SINCE] = state[SPENT] = state[LAST] = 0
    state[REFERENCES] += 1
