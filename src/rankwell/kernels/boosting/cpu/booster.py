"""RankBoost on the CPU: whole rounds in compiled code, over queries in factorised form.

A round: π, best weak ranker, α, new weights. `run_rounds` calls the kernels one after another, so that a batch of
rounds is one call from Python; `LevelBooster` holds the arrays in between.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwell.kernels.boosting.contract import BoostedRounds, LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.bounded_search import REFERENCES, feature_tasks, new_bounds, search_by_bounds
from rankwell.kernels.boosting.cpu.documents import DocumentWeights
from rankwell.kernels.boosting.cpu.histograms import GROUP, choose_weak_ranker, naive_table, new_search
from rankwell.kernels.boosting.cpu.tasks import (
    CARRY,
    DOWN_FACTOR,
    EXPONENTS,
    FEATURE,
    HISTOGRAMS,
    INTEGRALS,
    N_BINS,
    POTENTIALS,
    SUMS,
    THRESHOLD,
    TOTAL,
    UP_FACTOR,
    WEIGHTS,
    help_out,
    share_out,
)
from rankwell.kernels.boosting.cpu.team import FAILED, STOP, new_team
from rankwell.kernels.boosting.cpu.weights import level_ratios, query_sum
from rankwell.kernels.boosting.precision import LARGEST_R, RECENTRE_ROUNDS, tolerance, weight_factors
from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.threads import current_threads, kernel_threads, run_parts

# Parts of the documents that histograms are built over at the same time: enough to balance few features.
_PARTS = 4
_DOCS_PER_PART = 4096
# With fewer, bounds cost as much as they save.
_DOCS_FOR_BOUNDS = 8192
_FEATURES_FOR_BOUNDS = 40
# With fewer values, a round ends before another thread could help.
_VALUES_FOR_A_TEAM = 2**18
# Tasks that queries are divided into: the documents of one stay in the caches from one step to the next.
_MOST_QUERY_TASKS = 64
_DOCS_PER_QUERY_TASK = 1024

_weight_factors = kernel(weight_factors)


class Plan(NamedTuple):
    """The input of a batch of rounds.

    first_round : rounds done before
    n_rounds : rounds to do
    n_bins : int
    margin : how much two r may differ and still count as equal, in units of 2^−30
    query_tasks : tasks that queries are divided into
    carry : whether steps add up over levels, 1.0 or 0.0
    common, total : see `DocumentWeights`
    """

    first_round: int
    n_rounds: int
    n_bins: int
    margin: int
    query_tasks: int
    carry: float
    common: int
    total: float


class Record(NamedTuple):
    """The rounds of a batch, written: see `BoostedRounds`."""

    feature: np.ndarray
    bin: np.ndarray
    r: np.ndarray
    loss: np.ndarray


@kernel
def run_rounds(worker, team, documents, search, bounds, record, plan):
    """Run rounds until `plan`'s number is done or training ends; worker 0 leads, the others help.

    bounds : Bounds, or None if every round searches every feature

    Returns
    -------
    for worker 0 the rounds done, whether training has ended, and `common` and `total` after them
    """
    if worker > 0:
        help_out(worker, team, documents, search, bounds)
        return 0, False, 0, 0.0
    control, numbers = team.control, team.numbers
    control[N_BINS], numbers[CARRY] = plan.n_bins, plan.carry
    common, total = plan.common, plan.total
    for t in range(plan.n_rounds):
        numbers[TOTAL] = total
        if bounds is None:
            share_out(POTENTIALS, plan.query_tasks, team, documents, search, bounds)
            share_out(HISTOGRAMS, search.partial.shape[0] * search.partial.shape[1], team, documents, search, bounds)
            share_out(INTEGRALS, feature_tasks(len(search.table)), team, documents, search, bounds)
        else:
            search_by_bounds(team, documents, search, bounds, plan.n_bins, plan.margin)
        feature, threshold = choose_weak_ranker(search.table, search.largest, plan.n_bins, plan.margin)
        if feature < 0:
            return t, True, common, total
        r = _limited(search.table[feature, threshold])
        control[FEATURE], control[THRESHOLD] = feature, threshold
        numbers[UP_FACTOR], numbers[DOWN_FACTOR] = _weight_factors(r)
        share_out(WEIGHTS, plan.query_tasks, team, documents, search, bounds)
        if (plan.first_round + t + 1) % RECENTRE_ROUNDS == 0:
            share_out(EXPONENTS, plan.query_tasks, team, documents, search, bounds)
            common = _ratios(documents)
            share_out(SUMS, plan.query_tasks, team, documents, search, bounds)
        total = query_sum(documents.share, documents.lanes)
        record.feature[t], record.bin[t], record.r[t] = feature, threshold, r
        record.loss[t] = math.ldexp(total, common)
        if abs(r) >= LARGEST_R:
            return t + 1, True, common, total
    return plan.n_rounds, False, common, total


@kernel
def _limited(r):
    r = r if r < LARGEST_R else LARGEST_R
    return r if r > -LARGEST_R else -LARGEST_R


@kernel
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
        Search by bounds, which finds the same weak rankers; by default if there are enough documents and features.
    n_jobs : int or None

    Attributes
    ----------
    documents : DocumentWeights
    search : Search
    bounds : Bounds or None
        None if every round searches every feature.
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
            self.bounds = None
            if bounded and not naive:
                self.bounds = new_bounds(bins, n_features, queries, self._query_tasks, self._n_workers)

    @property
    def n_references(self) -> int:
        """Rounds so far in which every feature was computed, if the search is by bounds."""
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
        plan = Plan(
            first_round=documents.weights.n_rounds,
            n_rounds=len(record.feature),
            n_bins=self._n_bins,
            margin=tolerance(documents.queries.n_docs),
            query_tasks=self._query_tasks,
            carry=float(documents.queries.carry),
            common=documents.common,
            total=documents.total,
        )
        ended = [(0, False, documents.common, documents.total)]

        def take_part(worker: int) -> None:
            try:
                result = run_rounds(worker, team, documents.arrays, self.search, self.bounds, record, plan)
                if worker == 0:
                    ended[0] = result
            except BaseException:
                team.control[FAILED] = 1
                raise
            finally:
                if worker == 0:
                    team.control[STOP] = 1

        run_parts(take_part, self._n_workers)
        done, finished, documents.common, documents.total = ended[0]
        documents.weights.n_rounds += done
        return done, finished

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
