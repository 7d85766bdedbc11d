"""RankBoost on the CPU over a list of pairs: O(pairs) a round, as in the papers. For pairs that labels do not give, as
clicks do, and for the weak learners of Table I of the FAR paper that look at pairs (M2 and M2.2Dint).

D is kept for every pair and normalised each round. The searches sum D in fixed point, 2^−52 a unit, so their r is exact
to far below the 2^−30 that weak rankers are compared in.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.boosting.contract import BoostedRounds, LevelledQueries, PairList
from rankwell.kernels.boosting.cpu.histograms import GROUP, build_histograms, choose_weak_ranker, integrate_histograms
from rankwell.kernels.boosting.cpu.histograms import naive_table as naive_document_table
from rankwell.kernels.boosting.cpu.weights import query_sum
from rankwell.kernels.boosting.precision import LARGEST_R, PI_BITS, QUERY_LANES, tolerance, weight_factors
from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.threads import kernel_threads

WEAK_LEARNERS = ("m2", "m2.2dint", "m3", "m3.int")

_PAIR_BITS = 52
_EXTRA = _PAIR_BITS - PI_BITS
_SMALLEST_DISTRIBUTION = 1e-300


@kernel
def _rounded(total):
    """A sum in units of 2^−52 as one in units of 2^−30."""
    return (total + (1 << (_EXTRA - 1))) >> _EXTRA


@kernel(parallel=True)
def fixed_point(distribution, fixed):
    """D in units of 2^−52. distribution : float64 (n_pairs,); fixed : int64 (n_pairs,), written"""
    for p in prange(len(distribution)):
        fixed[p] = int(np.rint(distribution[p] * 2.0**_PAIR_BITS))


@kernel(parallel=True)
def pairwise_table(bins, lower, higher, fixed, n_bins, table, largest):
    """Naive M2: r(f, b) = Σ D(x0, x1)·(h(x1) − h(x0)), every threshold looks at every pair."""
    for feature in prange(len(table)):
        rows = bins[feature // GROUP]
        lane = feature % GROUP
        size = 0
        for b in range(n_bins - 1):
            total = 0
            for p in range(len(fixed)):
                if rows[higher[p], lane] > b:
                    total += fixed[p]
                if rows[lower[p], lane] > b:
                    total -= fixed[p]
            r = _rounded(total)
            table[feature, b] = r
            size = max(size, abs(r))
        largest[feature] = size


@kernel(parallel=True)
def integral_pair_table(bins, lower, higher, fixed, n_bins, table, largest):
    """M2.2Dint: D in a 2-D histogram over (bin of x0, bin of x1), then r of every threshold from its integral."""
    for feature in prange(len(table)):
        rows = bins[feature // GROUP]
        lane = feature % GROUP
        integral = np.zeros((n_bins + 1, n_bins + 1), np.int64)
        for p in range(len(fixed)):
            integral[rows[lower[p], lane] + 1, rows[higher[p], lane] + 1] += fixed[p]
        for i in range(1, n_bins + 1):
            along = 0
            for j in range(1, n_bins + 1):
                along += integral[i, j]
                integral[i, j] = integral[i - 1, j] + along
        size = 0
        for b in range(n_bins - 1):
            both_below = integral[b + 1, b + 1]
            right = integral[b + 1, n_bins] - both_below
            wrong = integral[n_bins, b + 1] - both_below
            r = _rounded(right - wrong)
            table[feature, b] = r
            size = max(size, abs(r))
        largest[feature] = size


@kernel(parallel=True)
def pair_potentials(pair_ptr, lower, higher, fixed, exact, pi):
    """π(d) = Σ_d' (D(d', d) − D(d, d')) in units of 2^−30; those of a query sum to exactly 0.

    exact : int64 (n_docs,), scratch; pi : int32 (n_docs,), written for documents with pairs
    """
    for q in prange(len(pair_ptr) - 1):
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            exact[lower[p]] = 0
            exact[higher[p]] = 0
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            exact[higher[p]] += fixed[p]
            exact[lower[p]] -= fixed[p]
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            pi[lower[p]] = _rounded(exact[lower[p]])
            pi[higher[p]] = _rounded(exact[higher[p]])
        left_over = 0
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            left_over += _once(pi, exact, lower[p]) + _once(pi, exact, higher[p])
        pi[higher[pair_ptr[q + 1] - 1]] -= left_over


@kernel
def _once(pi, exact, d):
    """π of d the first time it is asked for, then 0: `exact` is not needed any more and marks it."""
    if exact[d] == np.iinfo(np.int64).min:
        return 0
    exact[d] = np.iinfo(np.int64).min
    return pi[d]


@kernel(parallel=True)
def update_distribution(above_threshold, factors, pairs, distribution, share):
    """D(x0, x1)·exp(α·(h(x0) − h(x1))), not yet normalised; each query's share of the sum is written."""
    up_factor, down_factor = factors
    pair_ptr, lower, higher = pairs
    for q in prange(len(pair_ptr) - 1):
        total = 0.0
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            weight = distribution[p]
            if above_threshold[lower[p]]:
                weight *= up_factor
            if above_threshold[higher[p]]:
                weight *= down_factor
            distribution[p] = max(weight, _SMALLEST_DISTRIBUTION)
            total += distribution[p]
        share[q] = total


@kernel
def _count_pairs(segment_ptr, query_segments, pair_ptr):
    for q in range(len(query_segments) - 1):
        below = pairs = 0
        for s in range(query_segments[q], query_segments[q + 1]):
            size = segment_ptr[s + 1] - segment_ptr[s]
            pairs += size * below
            below += size
        pair_ptr[q + 1] = pair_ptr[q] + pairs


@kernel
def _list_pairs(queries, step, carry, document_weight, pair_ptr, pairs):
    segment_ptr, query_segments, query_weight = queries
    lower, higher, weight = pairs
    for q in range(len(query_weight)):
        p = pair_ptr[q]
        for low in range(query_segments[q], query_segments[q + 1]):
            apart = 0.0
            for high in range(low + 1, query_segments[q + 1]):
                apart = apart * carry + step[high]
                for i in range(segment_ptr[low], segment_ptr[low + 1]):
                    for j in range(segment_ptr[high], segment_ptr[high + 1]):
                        lower[p], higher[p] = i, j
                        weight[p] = query_weight[q] * apart * document_weight[i] * document_weight[j]
                        p += 1


def list_pairs(queries: LevelledQueries) -> PairList:
    """Every pair that the levels of `queries` give, 16 bytes each."""
    pair_ptr = np.zeros(queries.n_queries + 1, dtype=np.int64)
    _count_pairs(queries.segment_ptr, queries.query_segments, pair_ptr)
    n_pairs = int(pair_ptr[-1])
    lower, higher, weight = np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int32), np.empty(n_pairs)
    _list_pairs(
        (queries.segment_ptr, queries.query_segments, queries.query_weight),
        queries.step,
        float(queries.carry),
        queries.document_weight,
        pair_ptr,
        (lower, higher, weight),
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
        n_jobs: int | None = None,
    ) -> None:
        self.pairs = pairs
        self.distribution = pairs.weight / pairs.weight.sum()
        self.loss = 1.0
        self._bins, self._n_bins = bins, n_bins
        self._weak_learner = weak_learner
        self._n_jobs = n_jobs
        self._fixed = np.zeros(pairs.n_pairs, dtype=np.int64)
        self._exact = np.zeros(pairs.n_docs, dtype=np.int64)
        self._pi = np.zeros(pairs.n_docs, dtype=np.int32)
        self._partial = np.zeros((bins.shape[0], 1, GROUP, 256), dtype=np.int32)
        self._table = np.zeros((n_features, 256), dtype=np.int32)
        self._largest = np.zeros(n_features, dtype=np.int32)
        self._share, self._lanes = np.zeros(len(pairs.pair_ptr) - 1), np.zeros(QUERY_LANES)

    def boost(self, n_rounds: int) -> BoostedRounds:
        """See `Booster`."""
        rounds: list[tuple[int, int, int, float]] = []
        finished = False
        with kernel_threads(self._n_jobs):
            while len(rounds) < n_rounds and not finished:
                self.weigh()
                self.search()
                feature, threshold = choose_weak_ranker(
                    self._table, self._largest, self._n_bins, tolerance(self.pairs.n_docs)
                )
                if feature < 0:
                    finished = True
                    break
                r = int(np.clip(self._table[feature, threshold], -LARGEST_R, LARGEST_R))
                self.replay(self._bins[feature // GROUP, :, feature % GROUP] > threshold, r)
                rounds.append((feature, threshold, r, self.loss))
                finished = abs(r) >= LARGEST_R
        feature_bin_r = np.array([found[:3] for found in rounds], dtype=np.int32).reshape(-1, 3)
        loss = np.array([found[3] for found in rounds])
        return BoostedRounds(feature_bin_r[:, 0], feature_bin_r[:, 1], feature_bin_r[:, 2], loss, finished)

    def weigh(self) -> None:
        """What the search reads: D in fixed point, and π where the weak learner is document-wise."""
        pairs = self.pairs
        fixed_point(self.distribution, self._fixed)
        if self._weak_learner in ("m3", "m3.int"):
            pair_potentials(pairs.pair_ptr, pairs.lower, pairs.higher, self._fixed, self._exact, self._pi)

    def search(self) -> None:
        """Fill the table of r, the weak learner's way."""
        pairs, found = self.pairs, (self._n_bins, self._table, self._largest)
        if self._weak_learner == "m2":
            pairwise_table(self._bins, pairs.lower, pairs.higher, self._fixed, *found)
        elif self._weak_learner == "m2.2dint":
            integral_pair_table(self._bins, pairs.lower, pairs.higher, self._fixed, *found)
        elif self._weak_learner == "m3":
            naive_document_table(self._bins, self._pi, *found)
        else:
            build_histograms(self._bins, self._pi, self._partial)
            integrate_histograms(self._partial, *found)

    def replay(self, above_threshold: np.ndarray, r: int) -> None:
        """Apply a round. above_threshold : bool (n_docs,), where h = 1"""
        pairs = (self.pairs.pair_ptr, self.pairs.lower, self.pairs.higher)
        update_distribution(above_threshold, weight_factors(r), pairs, self.distribution, self._share)
        total = query_sum(self._share, self._lanes)
        self.distribution /= total
        self.loss *= total
