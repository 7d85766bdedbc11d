"""RankBoost's document weights in host memory: their start, the replay of earlier rounds, and one round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankwell.kernels.boosting.contract import LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.query_total import QueryTotal
from rankwell.kernels.boosting.cpu.rank_weights import is_due, weigh_by_rank
from rankwell.kernels.boosting.cpu.weights import (
    Documents,
    choose_exponents,
    level_ratios,
    multiply_weights,
    query_potentials,
    query_sum,
    sum_levels,
)
from rankwell.kernels.boosting.precision import QUERY_LANES, RECENTRE_ROUNDS, weight_factors
from rankwell.kernels.threads import run_parts

_DOCS_PER_PART = 16384  # the smallest part for a thread


class DocumentWeights:
    """The weights of a run between two rounds, with the sums over label levels that belong to them.

    Call it with the number of threads set (`kernel_threads`).

    Parameters
    ----------
    queries : LevelledQueries
    weights : ScoreWeights
        Changed in place as rounds are applied.
    total : QueryTotal, optional
        Sums Z over the queries of several processes; by default over these queries only.

    Attributes
    ----------
    arrays : Documents
    common : int
        The power of two that all pair weights were divided by.
    total : float
        Z, after that division.
    """

    def __init__(self, queries: LevelledQueries, weights: ScoreWeights, total: QueryTotal | None = None) -> None:
        self.queries, self.weights, self._total = queries, weights, total
        up_ratio, down_ratio, bridge = np.ones((3, queries.n_segments))
        up_sum, down_sum, below, above = np.zeros((4, queries.n_segments))
        self.arrays = Documents(
            segment_ptr=queries.segment_ptr,
            query_segments=queries.query_segments,
            query_weight=queries.query_weight,
            step=queries.step,
            up=weights.up,
            down=weights.down,
            up_exponent=weights.up_exponent,
            down_exponent=weights.down_exponent,
            up_ratio=up_ratio,
            down_ratio=down_ratio,
            bridge=bridge,
            up_sum=up_sum,
            down_sum=down_sum,
            below=below,
            above=above,
            share=np.zeros(queries.n_queries),
            pi=np.zeros(queries.n_docs, dtype=np.int32),
            lanes=np.zeros(QUERY_LANES),
            marked=np.zeros(queries.n_docs, dtype=np.bool_),
        )
        self._n_parts = max(1, queries.n_docs // _DOCS_PER_PART)
        self.common = self._ratios()
        self.total = self._sum()

    def potentials(self) -> np.ndarray:
        """π of every document in units of 2^−30, int32 (n_docs,); the same array each time."""
        arrays, total = self.arrays, self.total
        self._over_queries(lambda first, last: query_potentials(arrays, total, first, last, arrays.pi))
        return arrays.pi

    def apply(self, above_threshold: np.ndarray, r: int, n_halvings: int) -> float:
        """Apply a weak ranker; the loss after it. above_threshold : bool (n_docs,), where h = 1"""
        _apply_round(self.queries, self.weights, above_threshold, r, n_halvings)
        if self.weights.n_rounds % RECENTRE_ROUNDS == 0:
            self.common = self._ratios()
        self.total = self._sum()
        loss = float(np.ldexp(self.total, self.common))
        self.weigh_if_due()
        return loss

    def weigh_if_due(self) -> None:
        """Weigh documents by their ranks now, if ranks count and it is time."""
        if is_due(self.weights):
            weigh_by_rank(self.queries, self.weights)
            self.total = self._sum()

    def _ratios(self) -> int:
        arrays = self.arrays
        common: int = level_ratios(
            arrays.query_segments,
            arrays.query_weight,
            arrays.up_exponent,
            arrays.down_exponent,
            arrays.up_ratio,
            arrays.down_ratio,
            arrays.bridge,
        )
        return common if self._total is None else self._total.recentre(common)

    def _sum(self) -> float:
        arrays, carry = self.arrays, float(self.queries.carry)
        self._over_queries(lambda first, last: sum_levels(arrays, carry, first, last))
        if self._total is not None:
            return self._total.of(arrays.share)
        total: float = query_sum(arrays.share, arrays.lanes)
        return total

    def _over_queries(self, task: Callable[[int, int], None]) -> None:
        n_queries, n_parts = self.queries.n_queries, self._n_parts
        run_parts(lambda part: task(n_queries * part // n_parts, n_queries * (part + 1) // n_parts), n_parts)


def initial_weights(queries: LevelledQueries, *, by_rank: bool = False) -> ScoreWeights:
    """e^{±H} for H = 0, each times its document's weight.

    by_rank : whether documents will also be weighed by their ranks
    """
    up, down = queries.document_weight.copy(), queries.document_weight.copy()
    up_exponent, down_exponent = (np.zeros(queries.n_segments, dtype=np.int32) for _ in range(2))
    rank_weight = np.ones(queries.n_docs) if by_rank else None
    weights = ScoreWeights(up, down, up_exponent, down_exponent, 0, rank_weight)
    _recentre(queries, weights)
    return weights


def replay_round(
    queries: LevelledQueries, weights: ScoreWeights, above_threshold: np.ndarray, r: int, n_halvings: int
) -> None:
    """Apply a round of an earlier run, bit for bit as that run did. above_threshold : bool (n_docs,), where h = 1"""
    _apply_round(queries, weights, above_threshold, r, n_halvings)
    if is_due(weights):
        weigh_by_rank(queries, weights)


def _apply_round(
    queries: LevelledQueries, weights: ScoreWeights, above_threshold: np.ndarray, r: int, n_halvings: int
) -> None:
    up_factor, down_factor = weight_factors(r, n_halvings)
    multiply_weights(above_threshold, up_factor, down_factor, weights.up, weights.down, 0, queries.n_docs)
    weights.n_rounds += 1
    if weights.n_rounds % RECENTRE_ROUNDS == 0:
        _recentre(queries, weights)


def _recentre(queries: LevelledQueries, weights: ScoreWeights) -> None:
    choose_exponents(
        queries.segment_ptr,
        weights.up,
        weights.down,
        weights.up_exponent,
        weights.down_exponent,
        0,
        queries.n_segments,
    )


def query_pair_weights(queries: LevelledQueries) -> np.ndarray:
    """The sum of each query's initial pair weights, its own weight included, float64 (n_queries,)."""
    documents = DocumentWeights(queries, initial_weights(queries))
    return np.ldexp(documents.arrays.share, documents.common)
