"""RankBoost on the CPU over a list of pairs: O(pairs) per round, as in the papers. For pairs that do not come from
labels, such as clicks, and for the pair-wise weak learners of Table I of the FAR paper (M2 and M2.2Dint).

D is kept for every pair and normalised each round.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankwell.kernels.boosting.contract import BoostedRounds, LevelledQueries, PairList
from rankwell.kernels.boosting.cpu.histograms import (
    GROUP,
    build_histograms,
    choose_weak_ranker,
    integrate_histograms,
    naive_table,
    new_search,
)
from rankwell.kernels.boosting.cpu.pair_sums import (
    count_pairs,
    fixed_point,
    integral_pair_table,
    pair_potentials,
    pairwise_table,
    update_distribution,
    write_pairs,
)
from rankwell.kernels.boosting.cpu.weights import query_sum
from rankwell.kernels.boosting.precision import LARGEST_R, QUERY_LANES, tolerance, weight_factors
from rankwell.kernels.threads import kernel_threads, run_parts

WEAK_LEARNERS = ("m2", "m2.2dint", "m3", "m3.int")

_PAIRS_PER_PART = 65536  # the smallest part for a thread


def list_pairs(queries: LevelledQueries) -> PairList:
    """Every pair that the levels of `queries` give, 16 bytes each."""
    pair_ptr = np.zeros(queries.n_queries + 1, dtype=np.int64)
    count_pairs(queries.segment_ptr, queries.query_segments, pair_ptr)
    n_pairs = int(pair_ptr[-1])
    lower, higher, weight = np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int32), np.empty(n_pairs)
    write_pairs(
        queries.segment_ptr,
        queries.query_segments,
        queries.query_weight,
        queries.step,
        float(queries.carry),
        queries.document_weight,
        pair_ptr,
        lower,
        higher,
        weight,
    )
    return PairList(queries.n_docs, lower, higher, weight, pair_ptr)


class PairBooster:
    """A training run on the CPU over a list of pairs.

    Parameters
    ----------
    bins : uint8 (n_groups, n_docs, 16)
    n_features, n_bins : int
    pairs : PairList
    weak_learner : str
        One of `WEAK_LEARNERS`: how the best weak ranker is searched for. All of them find the same one.
    n_halvings : int
        The learning rate is 2^−n_halvings.
    n_jobs : int or None
    """

    def __init__(
        self,
        bins: np.ndarray,
        n_features: int,
        n_bins: int,
        pairs: PairList,
        weak_learner: str,
        *,
        n_halvings: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.pairs = pairs
        self.distribution = pairs.weight / pairs.weight.sum()
        self.loss = 1.0
        self._search, self._n_bins = new_search(bins, n_features, n_parts=1), n_bins
        self._weak_learner = weak_learner
        self._n_jobs, self._n_halvings = n_jobs, n_halvings
        self._fixed = np.zeros(pairs.n_pairs, dtype=np.int64)
        self._exact = np.zeros(pairs.n_docs, dtype=np.int64)
        self._pi = np.zeros(pairs.n_docs, dtype=np.int32)
        self._share, self._lanes = np.zeros(len(pairs.pair_ptr) - 1), np.zeros(QUERY_LANES)
        self._n_parts = max(1, pairs.n_pairs // _PAIRS_PER_PART)

    def boost(self, n_rounds: int) -> BoostedRounds:
        """See `Booster`."""
        rounds: list[tuple[int, int, int, float]] = []
        finished = False
        bins, table, largest = self._search.bins, self._search.table, self._search.largest
        with kernel_threads(self._n_jobs):
            while len(rounds) < n_rounds and not finished:
                self.weigh()
                self.search()
                feature, threshold = choose_weak_ranker(table, largest, self._n_bins, tolerance(self.pairs.n_docs))
                if feature < 0:
                    finished = True
                    break
                r = int(np.clip(table[feature, threshold], -LARGEST_R, LARGEST_R))
                self.replay(bins[feature // GROUP, :, feature % GROUP] > threshold, r, self._n_halvings)
                rounds.append((feature, threshold, r, self.loss))
                finished = abs(r) >= LARGEST_R
        feature_bin_r = np.array([found[:3] for found in rounds], dtype=np.int32).reshape(-1, 3)
        loss = np.array([found[3] for found in rounds])
        return BoostedRounds(feature_bin_r[:, 0], feature_bin_r[:, 1], feature_bin_r[:, 2], loss, finished)

    def weigh(self) -> None:
        """The input of the search: D in fixed point, and π if the weak learner is document-wise."""
        pairs, fixed, exact, pi = self.pairs, self._fixed, self._exact, self._pi
        self._over(pairs.n_pairs, lambda first, last: fixed_point(self.distribution, fixed, first, last))
        if self._weak_learner in ("m3", "m3.int"):
            ptr, lower, higher = pairs.pair_ptr, pairs.lower, pairs.higher
            self._over(
                len(ptr) - 1, lambda first, last: pair_potentials(ptr, lower, higher, fixed, exact, pi, first, last)
            )

    def search(self) -> None:
        """Fill the table of r by the weak learner."""
        pairs, search, n_bins = self.pairs, self._search, self._n_bins
        bins, table, largest, pi = search.bins, search.table, search.largest, self._pi
        n_features = len(table)
        if self._weak_learner == "m3":
            run_parts(lambda f: naive_table(bins, pi, n_bins, table, largest, f, f + 1), n_features)
        elif self._weak_learner == "m3.int":
            run_parts(lambda group: build_histograms(search.words, pi, search.partial, group), len(bins))
            integrate_histograms(search.partial, n_bins, table, largest, 0, n_features)
        else:
            search_feature = pairwise_table if self._weak_learner == "m2" else integral_pair_table
            run_parts(
                lambda f: search_feature(bins, pairs.lower, pairs.higher, self._fixed, n_bins, table, largest, f),
                n_features,
            )

    def replay(self, above_threshold: np.ndarray, r: int, n_halvings: int) -> None:
        """Apply a round. above_threshold : bool (n_docs,), where h = 1"""
        pairs, factors = self.pairs, weight_factors(r, n_halvings)
        arrays = (pairs.pair_ptr, pairs.lower, pairs.higher, self.distribution, self._share)
        self._over(
            len(pairs.pair_ptr) - 1,
            lambda first, last: update_distribution(above_threshold, *factors, *arrays, first, last),
        )
        total = query_sum(self._share, self._lanes)
        self.distribution /= total
        self.loss *= total

    def _over(self, n_items: int, task: Callable[[int, int], None]) -> None:
        """Divide pairs or queries into ranges for threads."""
        n_parts = self._n_parts
        run_parts(lambda part: task(n_items * part // n_parts, n_items * (part + 1) // n_parts), n_parts)
