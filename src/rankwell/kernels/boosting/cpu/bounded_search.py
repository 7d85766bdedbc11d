"""RankBoost on the CPU: the search for the best weak ranker that computes few features in full, by bounds.

Now and then every r is computed, in a *reference* round. In the rounds after it, bounds tell which features can win
(`bounds`), and only these *candidates* are computed. Bounds become weaker with every round; when a round
has cost more than the mean of all rounds since the reference round, that one included, the next is a reference round. A
cost is a count of features, not a time. The choice of weak rankers never depends on this, only the time.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.boosting.contract import LevelledQueries
from rankwell.kernels.boosting.cpu.bounds import Bounds, best_bounds, bound_features, choose_groups
from rankwell.kernels.boosting.cpu.histograms import GROUP, integrate_few
from rankwell.kernels.boosting.cpu.intervals import (
    CODES_A_WORD,
    DOCS_PER_BLOCK,
    DOCS_PER_CELL,
    HEADROOM,
    MOST_CELLS,
    MOST_INTERVALS,
    differing_bits,
    fill_digits,
    join_features,
)
from rankwell.kernels.boosting.cpu.tasks import (
    BEST,
    CANDIDATES,
    CHANGES,
    CODES,
    COUNTS,
    CUTS,
    HISTOGRAMS,
    INTEGRALS,
    JOINT,
    N_CHOSEN,
    N_GROUPS,
    SUMMARIES,
    share_out,
)
from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.threads import run_parts

FIRST_LOOK = 4  # candidates computed before the others: their r excludes most of the others
# The cost of a feature that is computed alone, and of a joint histogram, relative to a feature of a reference round.
CANDIDATE_COST = 2
JOINT_COST = 1
MOST_RISE = 2.0  # beyond this many times the largest |r|, bounds would be useless
RISE_FOR_INTERVALS = 0.6  # intervals are made if the changes in one round are at least this share of the largest |r|
# Intervals are made anew after as many rounds as there were before, within these limits: later rounds differ less.
FEWEST_ROUNDS, MOST_ROUNDS = 8, 256
LONGEST_PAUSE = 31  # rounds without bounds, after these have repeatedly excluded too little
MOST_PARTS, DOCS_PER_PART = 8, 16384  # parts of the documents that threads work on in parallel
FEW_FEATURES = 128  # up to this many, one thread is done before others could start

# Places in `state`: reference rounds so far; rounds so far, and when intervals were made; joint histograms; the largest
# |r| in the reference round; the sum of all drift.
REFERENCES, ROUND, CUT_ROUND, GROUPS, BEST_R, DRIFT = range(6)
# Rounds since the reference round, their cost and that of the last; rounds without bounds to come, and next time;
# whether documents were counted.
SINCE, SPENT, LAST, PAUSE, PENALTY, COUNTED = range(6, 12)


def new_bounds(bins: np.ndarray, n_features: int, queries: LevelledQueries, query_tasks: int, n_workers: int) -> Bounds:
    """The state before the first round. Call it with the number of threads set (`kernel_threads`)."""
    n_docs = queries.n_docs
    n_words = -(-n_docs // CODES_A_WORD)
    n_parts = max(1, min(n_workers, MOST_PARTS, n_docs // DOCS_PER_PART))
    most_groups = min(n_features, max(16, n_features // 5))  # codes take at most 0.4 of the bins
    most_candidates = max(2 * FIRST_LOOK, n_features // 3)
    words = np.zeros((most_groups, n_words), dtype=np.uint64)
    return Bounds(
        state=np.zeros(12, dtype=np.int64),
        reference_pi=np.zeros(n_docs, dtype=np.int32),
        reference_table=np.zeros((n_features, 256), dtype=np.int32),
        reference_largest=np.zeros(n_features, dtype=np.int32),
        changes=np.zeros(n_words * CODES_A_WORD, dtype=np.int64),
        moved=np.zeros((query_tasks, 2), dtype=np.int64),
        group_ptr=np.zeros(most_groups + 1, dtype=np.int64),
        members=np.zeros(n_features, dtype=np.int32),
        words=words,
        codes=words.view(np.uint16),
        sums=np.zeros((n_parts, n_features, MOST_INTERVALS), dtype=np.int64),
        chosen=np.zeros(most_groups, dtype=np.int32),
        cells=np.zeros((n_workers, 2, MOST_CELLS), dtype=np.int64),
        n_intervals=np.zeros(n_features, dtype=np.int64),
        interval_of_bin=np.zeros((n_features, 256), dtype=np.uint8),
        first_bin=np.zeros((n_features, MOST_INTERVALS), dtype=np.uint8),
        last_bin=np.zeros((n_features, MOST_INTERVALS), dtype=np.uint8),
        highest=np.zeros((n_features, MOST_INTERVALS), dtype=np.int64),
        lowest=np.zeros((n_features, MOST_INTERVALS), dtype=np.int64),
        upper=np.zeros(n_features, dtype=np.int64),
        standing=np.zeros(n_features, dtype=np.int64),
        estimates=np.zeros(n_features, dtype=np.int64),
        done=np.zeros(n_features, dtype=np.bool_),
        candidates=np.zeros(most_candidates, dtype=np.int32),
        histograms=np.zeros((most_candidates, n_parts, 256), dtype=np.int32),
        apart=np.zeros((n_workers, 8, 256), dtype=np.int32),
        counts=np.zeros((n_features, 256), dtype=np.int32),
        varies=find_varying(bins, n_features, queries),
        digits=np.zeros((n_features + 1, 256), dtype=np.uint16),
        group_cells=np.zeros(most_groups, dtype=np.int64),
        order=np.zeros(n_features, dtype=np.int64),
        group_of=np.zeros(n_features, dtype=np.int64),
    )


def find_varying(bins: np.ndarray, n_features: int, queries: LevelledQueries) -> np.ndarray:
    """Which features vary within some query, bool (n_features,): only these can order a pair."""
    words = bins.view(np.uint64)  # eight features in each
    different = np.zeros((len(bins), 2), dtype=np.uint64)
    run_parts(
        lambda group: differing_bits(words, queries.segment_ptr, queries.query_segments, group, different), len(bins)
    )
    return different.view(np.uint8).ravel()[:n_features] != 0


@kernel
def search_by_bounds(team, documents, search, bounds, n_bins, margin):
    """Fill the rows of `table` and `largest` of all features that may be chosen; `largest` of the others is 0."""
    state, moved = bounds.state, bounds.moved
    share_out(CHANGES, len(moved), team, documents, search, bounds)
    rise = 0
    for task in range(len(moved)):
        rise += moved[task, 0]
        state[DRIFT] += moved[task, 1]
    state[ROUND] += 1
    worn = state[LAST] * (state[SINCE] + 1) > len(search.table) + state[SPENT]
    if state[PAUSE] > 0:
        state[PAUSE] -= 1
    elif state[GROUPS] > 0 and rise < MOST_RISE * state[BEST_R] and not worn:
        if _search_candidates(team, documents, search, bounds, n_bins, margin, rise):
            state[PENALTY] = 0
            return
        penalty = 2 * state[PENALTY] + 1
        state[PENALTY] = penalty if penalty < LONGEST_PAUSE else LONGEST_PAUSE
        state[PAUSE] = state[PENALTY]
    _search_all(team, documents, search, bounds, rise)


@kernel
def _search_candidates(team, documents, search, bounds, n_bins, margin, rise):
    """Search the features that can win; whether they were few enough."""
    state, upper, standing, done = bounds.state, bounds.upper, bounds.standing, bounds.done
    group_ptr, members, chosen, candidates = bounds.group_ptr, bounds.members, bounds.chosen, bounds.candidates
    candidates[0] = _lower_bounds(search.largest, bounds, rise)
    reached = _compute(1, team, documents, search, bounds, n_bins)
    n_chosen = choose_groups(upper, reached - margin, done, group_ptr, members, state[GROUPS], chosen)
    team.control[N_CHOSEN] = n_chosen
    share_out(JOINT, (n_chosen + 1) // 2 * len(bounds.sums), team, documents, search, bounds)
    for place in range(n_chosen):
        g = chosen[place]
        border = bound_features(bounds, group_ptr[g], group_ptr[g + 1])
        reached = border if border > reached else reached
    cost = n_chosen * JOINT_COST + CANDIDATE_COST
    for look in range(2):
        most = FIRST_LOOK if look == 0 else len(candidates)
        found = best_bounds(upper, reached - margin, done, candidates, most)
        if found == len(candidates):
            return False
        computed = _compute(found, team, documents, search, bounds, n_bins)
        reached = computed if computed > reached else reached
        cost += found * CANDIDATE_COST
    for f in range(len(upper)):
        standing[f] = upper[f] - state[DRIFT]
    state[SINCE] += 1
    state[SPENT] += cost
    state[LAST] = cost
    return True


@kernel
def _lower_bounds(largest, bounds, rise):
    """Update the bounds from earlier rounds; returns the feature with the best last estimate."""
    upper, estimates = bounds.upper, bounds.estimates
    best = 0
    for f in range(len(upper)):
        largest[f] = 0
        bounds.done[f] = False
        by_round, by_reference = bounds.standing[f] + bounds.state[DRIFT], bounds.reference_largest[f] + rise
        bound = by_round if by_round < by_reference else by_reference
        upper[f] = bound if bounds.varies[f] else 0
        best = f if estimates[f] > estimates[best] else best
    return best


@kernel(for_any_constant=True)
def _compute(n_candidates, team, documents, search, bounds, n_bins):
    """Compute the first candidates in full; returns the largest |r| among them."""
    largest, candidates = search.largest, bounds.candidates
    share_out(CANDIDATES, n_candidates * bounds.histograms.shape[1], team, documents, search, bounds)
    integrate_few(bounds.histograms, candidates, n_candidates, n_bins, search.table, largest)
    reached = 0
    for place in range(n_candidates):
        f = candidates[place]
        bounds.upper[f] = bounds.estimates[f] = largest[f]
        bounds.done[f] = True
        reached = largest[f] if largest[f] > reached else reached
    return reached


@kernel
def feature_tasks(n_features):
    """Tasks that a stage over features is cut into."""
    return 1 if n_features <= FEW_FEATURES else n_features // GROUP


@kernel
def _search_all(team, documents, search, bounds, rise):
    """Search every feature: this is a reference round."""
    table, largest, state = search.table, search.largest, bounds.state
    n_features, pi = len(table), documents.pi
    share_out(HISTOGRAMS, search.partial.shape[0] * search.partial.shape[1], team, documents, search, bounds)
    share_out(INTEGRALS, feature_tasks(n_features), team, documents, search, bounds)
    best = 0
    for f in range(n_features):
        best = largest[f] if largest[f] > best else best
    if _intervals_are_due(largest, best, rise, bounds):
        _make_intervals(team, documents, search, bounds, best)
        state[CUT_ROUND] = state[ROUND]
    for i in range(len(pi)):
        bounds.reference_pi[i] = pi[i]
    for f in range(n_features):
        for b in range(256):
            bounds.reference_table[f, b] = table[f, b]
        bounds.reference_largest[f] = bounds.estimates[f] = largest[f]
        bounds.standing[f] = largest[f] - state[DRIFT]
    if state[GROUPS] > 0:
        share_out(SUMMARIES, feature_tasks(n_features), team, documents, search, bounds)
    state[BEST_R] = best
    state[SINCE] = state[SPENT] = state[LAST] = 0
    state[REFERENCES] += 1


@kernel
def _intervals_are_due(largest, best, rise, bounds):
    state = bounds.state
    if state[GROUPS] > 0:
        wait = state[CUT_ROUND] if state[CUT_ROUND] > FEWEST_ROUNDS else FEWEST_ROUNDS
        return state[ROUND] - state[CUT_ROUND] >= (wait if wait < MOST_ROUNDS else MOST_ROUNDS)
    near = 0
    for f in range(len(largest)):
        near += 1 if largest[f] >= (1.0 - HEADROOM) * best else 0
    return state[REFERENCES] > 0 and rise < RISE_FOR_INTERVALS * state[BEST_R] and near < len(bounds.candidates)


@kernel
def _make_intervals(team, documents, search, bounds, best):
    """Cut the features by their r of this round, and write the documents' codes.

    `partial` and π of the reference round, which are not needed any more, are overwritten.
    """
    n_docs, n_features, state = len(documents.pi), len(search.table), bounds.state
    if state[COUNTED] == 0:
        state[COUNTED] = 1
        for i in range(n_docs):
            bounds.reference_pi[i] = 1
        share_out(COUNTS, search.partial.shape[0] * search.partial.shape[1], team, documents, search, bounds)
        _sum_counts(search.partial, bounds.counts)
    team.control[BEST] = best
    share_out(CUTS, feature_tasks(n_features), team, documents, search, bounds)
    most_cells = n_docs // DOCS_PER_CELL if n_docs // DOCS_PER_CELL < MOST_CELLS else MOST_CELLS
    n_groups = join_features(
        bounds.n_intervals,
        search.largest,
        most_cells if most_cells > 2 else 2,
        bounds.group_ptr,
        bounds.members,
        bounds.group_cells,
        bounds.order,
        bounds.group_of,
    )
    state[GROUPS] = team.control[N_GROUPS] = n_groups
    fill_digits(bounds.n_intervals, bounds.interval_of_bin, bounds.group_ptr, bounds.members, n_groups, bounds.digits)
    share_out(CODES, (n_docs + DOCS_PER_BLOCK - 1) // DOCS_PER_BLOCK, team, documents, search, bounds)


@kernel
def _sum_counts(partial, counts):
    """Documents by bin. counts : int32 (n_features, 256), written"""
    for f in range(len(counts)):
        for b in range(256):
            total = 0
            for part in range(partial.shape[1]):
                total += partial[f // GROUP, part, f % GROUP, b]
            counts[f, b] = total
