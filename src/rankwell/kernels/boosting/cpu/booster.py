"""RankBoost on the CPU: whole rounds in compiled code, over queries in factorised form.

A round: π, best weak ranker, α, new weights. `run_rounds` strings the kernels together so that a batch of rounds costs
one call from Python; `LevelBooster` holds the arrays in between.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwell.kernels.boosting.contract import BoostedRounds, LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.bounded_search import REFERENCES, continue_search, new_bounds, new_intervals
from rankwell.kernels.boosting.cpu.compilation import inlined_kernel, inner_kernel, kernel
from rankwell.kernels.boosting.cpu.documents import DocumentWeights
from rankwell.kernels.boosting.cpu.histograms import GROUP, choose_weak_ranker, naive_table, new_search
from rankwell.kernels.boosting.cpu.tasks import (
    BEGIN,
    CARRY,
    CHANGES,
    CHOSEN_R,
    COMMON,
    DOWN_FACTOR,
    EXPONENTS,
    FEATURE,
    FINISHED,
    HISTOGRAMS,
    INTEGRALS,
    N_BINS,
    POTENTIALS,
    ROUNDS_DONE,
    STAGE,
    SUMS,
    THRESHOLD,
    TOTAL,
    UP_FACTOR,
    WEIGHTS,
    count_tasks,
    work_off,
)
from rankwell.kernels.boosting.cpu.team import (
    FAILED,
    STOP,
    new_team,
    publish,
    read_place,
    wait_a_little,
    wait_for_tasks,
    write_place,
)
from rankwell.kernels.boosting.cpu.weights import level_ratios, query_sum
from rankwell.kernels.boosting.precision import LARGEST_R, RECENTRE_ROUNDS, tolerance, weight_factors
from rankwell.kernels.threads import current_threads, kernel_threads, run_parts

# Parts of the documents that histograms are built over at the same time: enough to share out few features evenly.
_PARTS = 4
_DOCS_PER_PART = 4096
# With fewer, bounds cost what they spare.
_DOCS_FOR_BOUNDS = 8192
_FEATURES_FOR_BOUNDS = 40
# With fewer values, a round is over before another thread would have helped.
_VALUES_FOR_A_TEAM = 2**18
# Tasks that queries are shared out to: the documents of one stay in the caches from one step to the next.
_MOST_QUERY_TASKS = 64
_DOCS_PER_QUERY_TASK = 1024

_weight_factors = kernel(weight_factors)


class Plan(NamedTuple):
    """What a batch of rounds begins with.

    first_round : rounds done before
    n_rounds : rounds to do
    n_bins : int
    margin : what two r may differ by and still be equals, in units of 2^−30
    query_tasks : tasks that queries are shared out to
    """

    first_round: int
    n_rounds: int
    n_bins: int
    margin: int
    query_tasks: int


class Record(NamedTuple):
    """The rounds of a batch, written: see `BoostedRounds`."""

    feature: np.ndarray
    bin: np.ndarray
    r: np.ndarray
    loss: np.ndarray


@kernel
def run_rounds(worker, team, documents, search, bounds, intervals, record, plan):
    """Run rounds until `plan`'s number is done or training ends by itself; worker 0 leads, the others help.

    bounds, intervals : Bounds and Intervals, or None, where every round searches every feature
    """
    control, times = team.control, 0
    while read_place(control, STOP) == 0:
        worked = work_off(worker, team, documents, search, bounds, intervals)
        if worker > 0:
            times = 0 if worked else times + 1
            wait_a_little(times)
            continue
        wait_for_tasks(control)
        stage = control[STAGE]
        if stage >= POTENTIALS:
            stage = _continue_search(stage, control, documents.pi, search, bounds, intervals, plan.margin)
            stage = _choose(team, search, plan) if stage == BEGIN else stage
        else:
            stage = _continue_round(stage, team, documents, record, plan)
            if bounds is not None:
                stage = CHANGES if stage == POTENTIALS else stage
        if stage == BEGIN:
            write_place(control, STOP, 1)
        else:
            control[STAGE] = stage
            publish(control, stage, count_tasks(stage, plan.query_tasks, control, search, bounds))


@inlined_kernel
def _continue_search(stage, control, pi, search, bounds, intervals, margin):
    """The stage of the search that is next, or BEGIN where it is done."""
    if bounds is not None:
        return continue_search(stage, control, pi, search, bounds, intervals, margin)
    if stage == INTEGRALS:
        return BEGIN
    return HISTOGRAMS if stage == POTENTIALS else INTEGRALS


@inlined_kernel
def _choose(team, search, plan):
    """Choose the weak ranker of the round: new weights are next, or BEGIN where none helps."""
    control, numbers = team.control, team.numbers
    feature, threshold = choose_weak_ranker(search.table, search.largest, plan.n_bins, plan.margin)
    if feature < 0:
        control[FINISHED] = 1
        return BEGIN
    control[FEATURE], control[THRESHOLD] = feature, threshold
    r = search.table[feature, threshold]
    r = r if r < LARGEST_R else LARGEST_R
    control[CHOSEN_R] = r if r > -LARGEST_R else -LARGEST_R
    numbers[UP_FACTOR], numbers[DOWN_FACTOR] = _weight_factors(control[CHOSEN_R])
    return WEIGHTS


@inlined_kernel
def _continue_round(stage, team, documents, record, plan):
    """What follows the new weights: now and then exponents, at last the record, and π of the next round or BEGIN."""
    control, numbers = team.control, team.numbers
    t = control[ROUNDS_DONE]
    if stage == WEIGHTS and (plan.first_round + t + 1) % RECENTRE_ROUNDS == 0:
        return EXPONENTS
    if stage == EXPONENTS:
        control[COMMON] = _ratios(documents)
        return SUMS
    if stage != BEGIN:
        numbers[TOTAL] = query_sum(documents.share, documents.lanes)
        r = control[CHOSEN_R]
        record.feature[t], record.bin[t], record.r[t] = control[FEATURE], control[THRESHOLD], r
        record.loss[t] = math.ldexp(numbers[TOTAL], control[COMMON])
        t += 1
        control[ROUNDS_DONE] = t
        control[FINISHED] = abs(r) >= LARGEST_R
    return BEGIN if t == plan.n_rounds or control[FINISHED] else POTENTIALS


@inner_kernel
def _ratios(documents):
    return level_ratios(
        documents.query_segments,
        documents.query_weight,
        documents.up_exponent,
        documents.down_exponent,
        documents.up_ratio,
        documents.down_ratio,
        documents.bridge,
    )


class LevelBooster:
    """A training run on the CPU over queries in factorised form.

    Parameters
    ----------
    bins : uint8 (n_groups, n_docs, 16)
        The layout "interleaved16" of `Binner`.
    n_features, n_bins : int
    queries : LevelledQueries
    weights : ScoreWeights
        Changed in place as rounds are done.
    naive : bool
        Search as the naive M3 does, threshold by threshold.
    bounded : bool, optional
        Search by bounds, which finds the same weak rankers; without it, where there are enough documents and features.
    n_jobs : int or None

    Attributes
    ----------
    documents : DocumentWeights
    search : Search
    bounds, intervals : Bounds and Intervals, or None
        None where every round searches every feature.
    """

    def __init__(
        self,
        bins: np.ndarray,
        n_features: int,
        n_bins: int,
        queries: LevelledQueries,
        weights: ScoreWeights,
        *,
        naive: bool = False,
        bounded: bool | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._naive, self._n_jobs, self._n_bins = naive, n_jobs, n_bins
        n_docs = queries.n_docs
        self._query_tasks = max(1, min(_MOST_QUERY_TASKS, n_docs // _DOCS_PER_QUERY_TASK))
        if bounded is None:
            bounded = n_docs >= _DOCS_FOR_BOUNDS and n_features >= _FEATURES_FOR_BOUNDS
        with kernel_threads(n_jobs):
            self._n_workers = 1 if n_docs * n_features < _VALUES_FOR_A_TEAM else current_threads()
            n_parts = 1 if self._n_workers == 1 else max(1, min(_PARTS, n_docs // _DOCS_PER_PART))
            self.search = new_search(bins, n_features, n_parts)
            self.documents = DocumentWeights(queries, weights)
            self.bounds, self.intervals = None, None
            if bounded and not naive:
                self.bounds = new_bounds(n_features, n_docs, self._query_tasks, self._n_workers)
                self.intervals = new_intervals(bins, n_features, queries)

    @property
    def n_references(self) -> int:
        """Rounds so far in which every feature was computed, where the search is by bounds."""
        return 0 if self.bounds is None else int(self.bounds.state[REFERENCES])

    def boost(self, n_rounds: int) -> BoostedRounds:
        """See `Booster`."""
        feature, threshold, r = (np.zeros(n_rounds, dtype=np.int32) for _ in range(3))
        record = Record(feature, threshold, r, np.zeros(n_rounds))
        with kernel_threads(self._n_jobs):
            done, finished = self._run_naively(record) if self._naive else self._run(record)
        return BoostedRounds(feature[:done], threshold[:done], r[:done], record.loss[:done], finished)

    def _run(self, record: Record) -> tuple[int, bool]:
        documents, team = self.documents, new_team()
        team.control[COMMON], team.control[N_BINS] = documents.common, self._n_bins
        team.numbers[TOTAL], team.numbers[CARRY] = documents.total, float(documents.queries.carry)
        plan = Plan(
            first_round=documents.weights.n_rounds,
            n_rounds=len(record.feature),
            n_bins=self._n_bins,
            margin=tolerance(documents.queries.n_docs),
            query_tasks=self._query_tasks,
        )
        arguments = (team, documents.arrays, self.search, self.bounds, self.intervals, record, plan)

        def take_part(worker: int) -> None:
            try:
                run_rounds(worker, *arguments)
            except BaseException:
                team.control[FAILED] = team.control[STOP] = 1
                raise

        run_parts(take_part, self._n_workers)
        done = int(team.control[ROUNDS_DONE])
        documents.common, documents.total = int(team.control[COMMON]), float(team.numbers[TOTAL])
        documents.weights.n_rounds += done
        return done, bool(team.control[FINISHED])

    def _run_naively(self, record: Record) -> tuple[int, bool]:
        bins, table, largest = self.search.bins, self.search.table, self.search.largest
        documents, n_features = self.documents, len(table)
        margin = tolerance(documents.queries.n_docs)
        for t in range(len(record.feature)):
            pi = documents.potentials()
            run_parts(lambda f: naive_table(bins, pi, self._n_bins, table, largest, f, f + 1), n_features)  # noqa: B023
            feature, threshold = choose_weak_ranker(table, largest, self._n_bins, margin)
            if feature < 0:
                return t, True
            r = int(np.clip(table[feature, threshold], -LARGEST_R, LARGEST_R))
            loss = documents.apply(bins[feature // GROUP, :, feature % GROUP] > threshold, r)
            record.feature[t], record.bin[t], record.r[t], record.loss[t] = feature, threshold, r, loss
            if abs(r) >= LARGEST_R:
                return t + 1, True
        return len(record.feature), False
