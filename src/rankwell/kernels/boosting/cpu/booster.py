"""RankBoost on the CPU, over queries in factorised form: the arrays of a training run, between batches of rounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankwell.kernels.boosting.contract import BoostedRounds, LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.bounded_search import REFERENCES, new_bounds, new_intervals
from rankwell.kernels.boosting.cpu.documents import DocumentWeights
from rankwell.kernels.boosting.cpu.histograms import GROUP, choose_weak_ranker, naive_table, new_search
from rankwell.kernels.boosting.cpu.rank_weights import REFRESH_ROUNDS
from rankwell.kernels.boosting.cpu.rounds import Plan, Record, run_rounds
from rankwell.kernels.boosting.cpu.tasks import (
    ALL_DOCS,
    CARRY,
    COMMON,
    FINISHED,
    N_BINS,
    ROUNDS_DONE,
    STREAMED,
    TOTAL,
)
from rankwell.kernels.boosting.precision import LARGEST_R, tolerance
from rankwell.kernels.cpu.team import (
    FAILED,
    STOP,
    Team,
    new_team,
)
from rankwell.kernels.disk_arrays import BLOCK_BYTES, is_on_disk
from rankwell.kernels.threads import current_threads, kernel_threads, run_parts

# Parts of the documents that histograms are built over at the same time: enough to balance few features.
_PARTS = 4
_DOCS_PER_PART = 4096
# With fewer, bounds cost as much as they save.
DOCS_FOR_BOUNDS = 8192
FEATURES_FOR_BOUNDS = 40
# With fewer values, a round ends before another thread could help.
_VALUES_FOR_A_TEAM = 2**18
# Tasks that queries are divided into: the documents of one stay in the caches from one step to the next.
_MOST_QUERY_TASKS = 64
_DOCS_PER_QUERY_TASK = 1024


class LevelBooster:
    """A training run on the CPU over queries in factorised form.

    Parameters
    ----------
    bins : uint8 (n_groups, n_docs, 16)
        The layout "interleaved16" of `Binner`; in memory or on disk (`kernels/disk_arrays.py`).
    n_features, n_bins : int
    queries : LevelledQueries
    weights : ScoreWeights
        Changed in place as rounds are done.
    n_halvings : int
        The learning rate is 2^−n_halvings.
    naive : bool
        Search as the naive M3 does, threshold by threshold.
    bounded : bool, optional
        Search by bounds, which finds the same weak rankers; by default if there are enough documents and features.
    n_jobs : int or None

    Attributes
    ----------
    documents : DocumentWeights
    search : Search
    bounds, intervals : Bounds and Intervals, or None
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
        n_halvings: int = 0,
        naive: bool = False,
        bounded: bool | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._naive, self._n_jobs, self._n_bins = naive, n_jobs, n_bins
        self._n_halvings = n_halvings
        n_docs = queries.n_docs
        self._is_streamed = is_on_disk(bins)
        # Parts of the documents whose bins, of one group of features, are a block of the disk.
        n_blocks = -(-n_docs * GROUP // BLOCK_BYTES) if self._is_streamed else 1
        self._query_tasks = max(n_blocks, 1, min(_MOST_QUERY_TASKS, n_docs // _DOCS_PER_QUERY_TASK))
        if bounded is None:
            bounded = n_docs >= DOCS_FOR_BOUNDS and n_features >= FEATURES_FOR_BOUNDS
        with kernel_threads(n_jobs):
            self._n_workers = 1 if n_docs * n_features < _VALUES_FOR_A_TEAM else current_threads()
            n_parts = 1 if self._n_workers == 1 else max(1, min(_PARTS, n_docs // _DOCS_PER_PART))
            self.search = new_search(bins, n_features, max(n_blocks, n_parts))
            self.documents = self._document_weights(queries, weights)
            self.bounds, self.intervals = None, None
            if bounded and not naive:
                self.bounds = new_bounds(n_features, n_docs, self._query_tasks, self._n_workers, n_blocks)
                self.intervals = new_intervals(bins, n_features, queries)

    def _document_weights(self, queries: LevelledQueries, weights: ScoreWeights) -> DocumentWeights:
        return DocumentWeights(queries, weights)

    @property
    def n_references(self) -> int:
        """Rounds so far in which every feature was computed, if the search is by bounds."""
        return 0 if self.bounds is None else int(self.bounds.state[REFERENCES])

    def boost(self, n_rounds: int) -> BoostedRounds:
        """See `Booster`."""
        feature, threshold, r = (np.zeros(n_rounds, dtype=np.int32) for _ in range(3))
        record = Record(feature, threshold, r, np.zeros(n_rounds))
        with kernel_threads(self._n_jobs):
            done, finished = self._run_naively(record) if self._naive else self._run_in_batches(record)
        return BoostedRounds(feature[:done], threshold[:done], r[:done], record.loss[:done], finished)

    def _run_in_batches(self, record: Record) -> tuple[int, bool]:
        """All rounds at once, unless documents are weighed by their ranks in between."""
        weights, wanted, done, finished = self.documents.weights, len(record.feature), 0, False
        while done < wanted and not finished:
            end = wanted
            if weights.rank_weight is not None:
                end = min(wanted, done + REFRESH_ROUNDS - weights.n_rounds % REFRESH_ROUNDS)
            n_run, finished = self._run(Record(*(values[done:end] for values in record)))
            done += n_run
            self.documents.weigh_if_due()
        return done, finished

    def _run(self, record: Record) -> tuple[int, bool]:
        documents, team = self.documents, new_team()
        team.control[COMMON], team.control[N_BINS] = documents.common, self._n_bins
        team.control[ALL_DOCS] = self._n_docs_of_all()
        team.control[STREAMED] = self._n_workers if self._is_streamed else 0
        team.numbers[TOTAL], team.numbers[CARRY] = documents.total, float(documents.queries.carry)
        plan = Plan(
            first_round=documents.weights.n_rounds,
            n_rounds=len(record.feature),
            n_bins=self._n_bins,
            margin=tolerance(self._n_docs_of_all()),
            query_tasks=self._query_tasks,
            n_halvings=self._n_halvings,
        )
        self._run_team(team, record, plan)
        done = int(team.control[ROUNDS_DONE])
        documents.common, documents.total = int(team.control[COMMON]), float(team.numbers[TOTAL])
        documents.weights.n_rounds += done
        return done, bool(team.control[FINISHED])

    def _n_docs_of_all(self) -> int:
        """The documents of all processes that train together."""
        return self.documents.queries.n_docs

    def _run_team(self, team: Team, record: Record, plan: Plan) -> None:
        arguments = (team, self.documents.arrays, self.search, self.bounds, self.intervals, record, plan)
        self._on_threads(team, lambda worker: run_rounds(worker, *arguments))

    def _on_threads(self, team: Team, task: Callable[[int], object]) -> None:
        """Run a task of a team on all threads; if one fails, the others stop."""

        def take_part(worker: int) -> None:
            try:
                task(worker)
            except BaseException:
                team.control[FAILED] = team.control[STOP] = 1
                raise

        run_parts(take_part, self._n_workers)

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
            loss = documents.apply(bins[feature // GROUP, :, feature % GROUP] > threshold, r, self._n_halvings)
            record.feature[t], record.bin[t], record.r[t], record.loss[t] = feature, threshold, r, loss
            if abs(r) >= LARGEST_R:
                return t + 1, True
        return len(record.feature), False
