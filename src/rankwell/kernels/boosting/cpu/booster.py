"""RankBoost on the CPU: whole rounds in compiled code, over queries in factorised form.

A round: π, best weak ranker, α, new weights. `run_rounds` strings the kernels together so that a batch of rounds costs
one call from Python; `LevelBooster` holds the arrays in between.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.boosting.contract import BoostedRounds, LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.bounded_search import BoundedSearch, search_by_bounds
from rankwell.kernels.boosting.cpu.bounds import changed_potentials
from rankwell.kernels.boosting.cpu.documents import DocumentWeights
from rankwell.kernels.boosting.cpu.histograms import (
    GROUP,
    build_histograms,
    choose_weak_ranker,
    integrate_histograms,
    naive_table,
)
from rankwell.kernels.boosting.cpu.weights import (
    choose_exponents,
    level_ratios,
    potentials,
    query_sum,
    reweight,
    sum_levels,
)
from rankwell.kernels.boosting.precision import LARGEST_R, RECENTRE_ROUNDS, tolerance, weight_factors
from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.threads import kernel_threads

# Parts of the documents that histograms are built over at the same time: enough to share out few features evenly.
_PARTS = 4
_DOCS_PER_PART = 4096
# With fewer, bounds cost what they spare.
_DOCS_FOR_BOUNDS = 8192
_FEATURES_FOR_BOUNDS = 40

_weight_factors = kernel(weight_factors)


@kernel
def run_rounds(queries, weights, exponents, levels, search, bounds, scratch, record, plan, start):
    """Run rounds until `plan`'s number is done or training ends by itself.

    queries : (segment_ptr, query_segments, query_weight)
    weights : (up, down); exponents : (up_exponent, down_exponent)
    levels : (step, up_ratio, down_ratio, bridge)
    search : (bins, partial histograms, table of r, largest |r| by feature)
    bounds : what `search_by_bounds` reads and keeps
    scratch : (sums of levels, shares of Z, lanes, π)
    record : (feature, bin, r, loss), written
    plan : (rounds done before, rounds to do, n_bins, margin, carry, naive, bounded)
    start : (the common power of two of all pair weights, Z), which belong to `weights`

    Returns
    -------
    rounds done, whether training ended by itself, and what `start` is now
    """
    segment_ptr, query_segments, query_weight = queries
    places = queries[:2]
    bins, partial, table, largest = search
    sums, share, lanes, pi = scratch
    first_round, n_rounds, n_bins, margin, carry, naive, bounded = plan
    common, total = start
    for t in range(n_rounds):
        if bounded:
            moved = changed_potentials(places, weights, sums, total, pi, bounds[1][0], bounds[2][0], bounds[2][1])
            search_by_bounds(search, bounds, pi, moved, n_bins, margin)
        else:
            potentials(places, weights, sums, total, pi)
            if naive:
                naive_table(bins, pi, n_bins, table, largest)
            else:
                build_histograms(bins, pi, partial)
                integrate_histograms(partial, n_bins, table, largest)
        feature, threshold = choose_weak_ranker(table, largest, n_bins, margin)
        if feature < 0:
            return t, True, (common, total)
        r = min(max(table[feature, threshold], -LARGEST_R), LARGEST_R)
        weak_ranker = (bins[feature // GROUP], feature % GROUP, threshold)
        reweight(weak_ranker, _weight_factors(r), places, weights, levels, carry, sums, share)
        if (first_round + t + 1) % RECENTRE_ROUNDS == 0:
            choose_exponents(segment_ptr, weights[0], weights[1], exponents[0], exponents[1])
            common = level_ratios(query_segments, query_weight, exponents[0], exponents[1], levels[1:])
            sum_levels(places, weights, levels, carry, sums, share)
        total = query_sum(share, lanes)
        record[0][t], record[1][t], record[2][t], record[3][t] = feature, threshold, r, np.ldexp(total, common)
        if abs(r) >= LARGEST_R:
            return t + 1, True, (common, total)
    return n_rounds, False, (common, total)


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
        n_parts = 1 if naive else max(1, min(_PARTS, queries.n_docs // _DOCS_PER_PART))
        self._search = (
            bins,
            np.empty((bins.shape[0], n_parts, GROUP, 256), dtype=np.int32),
            np.zeros((n_features, 256), dtype=np.int32),
            np.zeros(n_features, dtype=np.int32),
        )
        enough = queries.n_docs >= _DOCS_FOR_BOUNDS and n_features >= _FEATURES_FOR_BOUNDS
        self._bounded = not naive and (enough if bounded is None else bounded)
        with kernel_threads(n_jobs):
            self._documents = DocumentWeights(queries, weights)
            self._bounds = BoundedSearch(bins, n_features, queries if self._bounded else None)

    def boost(self, n_rounds: int) -> BoostedRounds:
        """See `Booster`."""
        documents = self._documents
        queries, weights = documents.queries, documents.weights
        feature, threshold, r = (np.zeros(n_rounds, dtype=np.int32) for _ in range(3))
        loss = np.zeros(n_rounds)
        margin, carry = tolerance(queries.n_docs), float(queries.carry)
        plan = (weights.n_rounds, n_rounds, self._n_bins, margin, carry, self._naive, self._bounded)
        with kernel_threads(self._n_jobs):
            done, finished, documents.start = run_rounds(
                (queries.segment_ptr, queries.query_segments, queries.query_weight),
                (weights.up, weights.down),
                (weights.up_exponent, weights.down_exponent),
                documents.levels,
                self._search,
                self._bounds.arrays,
                (documents.sums, documents.share, documents.lanes, documents.pi),
                (feature, threshold, r, loss),
                plan,
                documents.start,
            )
        weights.n_rounds += done
        return BoostedRounds(feature[:done], threshold[:done], r[:done], loss[:done], finished)
