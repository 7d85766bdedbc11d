"""RankBoost on several CPUs that share no memory: each process runs the stages of a round on its part, and between
stages they exchange what the next one needs. Every exchange is of integers, or of float64 numbers that are added in
one order (`query_total`), so that all processes choose the weak rankers that one process with all of the data would.

By documents. Each process has all features of some queries. Histograms, of all features in reference rounds and of
candidates in others, and what bounds are computed from, are summed; weights and level sums by query stay where they
are.

By features (section 4.4 and equations 11 to 13 of the FAR paper). Each process has some features of all documents, and
the weights of all documents. It sends the rows of r that may contain the best, and the process that has the winner
sends where h = 1: one bit for each document.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from rankwell.kernels.boosting.contract import Companions, LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.booster import DOCS_FOR_BOUNDS, FEATURES_FOR_BOUNDS, LevelBooster
from rankwell.kernels.boosting.cpu.bounds import pack_sums, unpack_sums
from rankwell.kernels.boosting.cpu.documents import DocumentWeights
from rankwell.kernels.boosting.cpu.histograms import GROUP
from rankwell.kernels.boosting.cpu.intervals import MOST_INTERVALS
from rankwell.kernels.boosting.cpu.query_total import QueryTotal
from rankwell.kernels.boosting.cpu.rounds import Plan, Record, help_stages, lead_stage
from rankwell.kernels.boosting.cpu.tasks import (
    BEGIN,
    BY_DOCUMENTS,
    BY_FEATURES,
    CANDIDATES,
    CHANGES,
    CHOICE,
    CHOSEN_R,
    COMMON,
    COUNTS,
    DIVISION,
    DOWN_FACTOR,
    FEATURE,
    FINISHED,
    HISTOGRAMS,
    JOINT,
    N_CANDIDATES,
    N_CHOSEN,
    ROUNDS_DONE,
    SUMS,
    THRESHOLD,
    TOTAL,
    UP_FACTOR,
    WEIGHTS,
)
from rankwell.kernels.boosting.precision import LARGEST_R, RECENTRE_ROUNDS, weight_factors
from rankwell.kernels.cpu.team import STOP, Team


class SharedBooster(LevelBooster, ABC):
    """A `LevelBooster` whose stages are led one by one, with exchanges in between.

    exchanged : dict of str to int
        Numbers of this run's exchanges that determine how much is sent; see `docs/guide/cluster.md`.
    """

    division: int

    def __init__(
        self,
        companions: Companions,
        bins: np.ndarray,
        n_features: int,
        n_bins: int,
        queries: LevelledQueries,
        weights: ScoreWeights,
        **options: Any,
    ) -> None:
        self._companions = companions
        self.exchanged: dict[str, int] = {}
        super().__init__(bins, n_features, n_bins, queries, weights, **options)

    def _run_team(self, team: Team, record: Record, plan: Plan) -> None:
        data = (team, self.documents.arrays, self.search, self.bounds, self.intervals)
        team.control[DIVISION] = self.division

        def take_part(worker: int) -> None:
            if worker > 0:
                help_stages(worker, *data)
                return
            while (stage := lead_stage(*data, record, plan)) != BEGIN:
                self._exchange(stage, team, plan)
            team.control[STOP] = 1

        self._on_threads(team, take_part)

    @abstractmethod
    def _exchange(self, stage: int, team: Team, plan: Plan) -> None:
        """Exchange the results of a stage."""

    def _count(self, name: str, number: int = 1) -> None:
        self.exchanged[name] = self.exchanged.get(name, 0) + number


class DocumentsBooster(SharedBooster):
    """One of several processes, each with all features of some queries.

    Parameters
    ----------
    companions : Companions
    others : see `LevelBooster`
    """

    division = BY_DOCUMENTS

    def __init__(
        self,
        companions: Companions,
        bins: np.ndarray,
        n_features: int,
        n_bins: int,
        queries: LevelledQueries,
        weights: ScoreWeights,
        **options: Any,
    ) -> None:
        options.setdefault("bounded", companions.n_docs >= DOCS_FOR_BOUNDS and n_features >= FEATURES_FOR_BOUNDS)
        super().__init__(companions, bins, n_features, n_bins, queries, weights, **options)
        self._packed = np.zeros(n_features * MOST_INTERVALS, dtype=np.int64)
        if self.intervals is not None:
            self.intervals.varies[:] = companions.sum(self.intervals.varies.astype(np.int32)) > 0

    def _document_weights(self, queries: LevelledQueries, weights: ScoreWeights) -> DocumentWeights:
        self._total = QueryTotal(self._companions)
        return DocumentWeights(queries, weights, self._total)

    def _n_docs_of_all(self) -> int:
        return self._companions.n_docs

    def _exchange(self, stage: int, team: Team, plan: Plan) -> None:
        if stage in (WEIGHTS, SUMS):
            self._sum_shares(stage, team, plan)
        elif stage in (HISTOGRAMS, COUNTS):
            self._sum_parts(self.search.partial, 1)
            self._count("histograms")
        elif stage == CHANGES:
            assert self.bounds is not None
            self._sum_parts(self.bounds.moved, 0)
        elif stage == CANDIDATES:
            assert self.bounds is not None
            n_candidates = int(team.control[N_CANDIDATES])
            self._sum_parts(self.bounds.histograms[:n_candidates], 1)
            self._count("candidate passes")
            self._count("candidates", n_candidates)
        elif stage == JOINT:
            self._sum_intervals(int(team.control[N_CHOSEN]))

    def _sum_shares(self, stage: int, team: Team, plan: Plan) -> None:
        """Z; in some rounds exponents are chosen anew first, and shares follow from these."""
        done = plan.first_round + int(team.control[ROUNDS_DONE]) + 1
        if stage == WEIGHTS and done % RECENTRE_ROUNDS == 0:
            return
        if stage == SUMS:
            team.control[COMMON] = self._total.recentre(int(team.control[COMMON]))
            self._count("recentred")
        team.numbers[TOTAL] = self._total.of(self.documents.arrays.share)
        self._count("totals")

    def _sum_parts(self, values: np.ndarray, axis: int) -> None:
        """Sum over this process's parts, along `axis`, and over processes; the result is the first part's."""
        first, others = (slice(None),) * axis + (0,), (slice(None),) * axis + (slice(1, None),)
        own = values[first] if values.shape[axis] == 1 else values.sum(axis=axis, dtype=values.dtype)
        values[first] = self._companions.sum(np.ascontiguousarray(own))
        values[others] = 0

    def _sum_intervals(self, n_chosen: int) -> None:
        assert self.bounds is not None
        assert self.intervals is not None
        sums, of_features = self.bounds.sums, (self.intervals.group_ptr, self.intervals.members, self.intervals.number)
        n_packed = pack_sums(sums, self.bounds.chosen, n_chosen, *of_features, self._packed)
        total = self._companions.sum(self._packed[:n_packed])
        unpack_sums(total, self.bounds.chosen, n_chosen, *of_features, sums)
        self._count("joint passes")
        self._count("interval sums", n_packed)


class FeaturesBooster(SharedBooster):
    """One of several processes, each with some features of all documents.

    Parameters
    ----------
    companions : Companions
    first_feature : int
        The number of this process's first feature; processes have theirs in a row.
    others : see `LevelBooster`, of these features
    """

    division = BY_FEATURES

    def __init__(self, companions: Companions, first_feature: int, *arguments: Any, **options: Any) -> None:
        self._first_feature = first_feature
        super().__init__(companions, *arguments, **options)

    def _exchange(self, stage: int, team: Team, plan: Plan) -> None:
        """Choose the weak ranker together; nothing else is shared."""
        if stage != CHOICE:
            return
        control = team.control
        feature, threshold, r, owner = self._best(plan.n_bins, plan.margin)
        if owner < 0:
            control[FINISHED] = 1
            return
        r = min(max(r, -LARGEST_R), LARGEST_R)
        control[FEATURE], control[THRESHOLD], control[CHOSEN_R] = feature, threshold, r
        team.numbers[UP_FACTOR], team.numbers[DOWN_FACTOR] = weight_factors(r, self._n_halvings)
        marked, n_docs = self.documents.arrays.marked, self.documents.queries.n_docs
        bits = np.zeros(-(-n_docs // 8), dtype=np.uint8)
        own = feature - self._first_feature
        if owner == self._companions.number:
            bits = np.packbits(self.search.bins[own // GROUP, :, own % GROUP] > threshold)
            self._count("winners")
        marked[:] = np.unpackbits(self._companions.announce(bits, owner), count=n_docs)

    def _best(self, n_bins: int, margin: int) -> tuple[int, int, int, int]:
        """The choice of `choose_weak_ranker` over all processes: feature, bin, r and who has it, or −1.

        A feature that is chosen is within the margin of the largest |r| of its process too, so that rows of those are
        enough.
        """
        largest = self.search.largest
        near = np.flatnonzero(largest >= max(1, int(largest.max(initial=0)) - margin))
        rows = np.empty((len(near), n_bins), dtype=np.int32)
        rows[:, 0], rows[:, 1:] = near + self._first_feature, self.search.table[near, : n_bins - 1]
        self._count("rows", len(near))
        gathered = [found.reshape(-1, n_bins) for found in self._companions.gather(rows)]
        best = max((int(np.abs(found[:, 1:]).max(initial=0)) for found in gathered), default=0)
        if best <= margin:
            return -1, -1, 0, -1
        for owner, found in enumerate(gathered):
            is_near = np.abs(found[:, 1:]) >= best - margin
            if is_near.any():
                row = int(np.flatnonzero(is_near.any(axis=1))[0])
                threshold = int(np.flatnonzero(is_near[row])[0])
                return int(found[row, 0]), threshold, int(found[row, 1 + threshold]), owner
        return -1, -1, 0, -1
