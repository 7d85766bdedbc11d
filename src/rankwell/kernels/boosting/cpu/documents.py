"""RankBoost's document weights in the host's memory: how they start, how earlier rounds are replayed, and one round."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.boosting.contract import LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.weights import (
    apply_round,
    choose_exponents,
    level_ratios,
    potentials,
    query_sum,
    sum_levels,
)
from rankwell.kernels.boosting.precision import QUERY_LANES, RECENTRE_ROUNDS, weight_factors


class DocumentWeights:
    """The weights of a run between two rounds, with the sums over label levels that belong to them.

    Call it with the number of threads set (`kernel_threads`).

    Parameters
    ----------
    queries : LevelledQueries
    weights : ScoreWeights
        Changed in place as rounds are applied.

    Attributes
    ----------
    levels : (step, up_ratio, down_ratio, bridge), float64 (n_segments,) each
    sums : (up_sum, down_sum, below, above), float64 (n_segments,) each
    share : float64 (n_queries,)
    lanes : float64 (1024,), scratch
    pi : int32 (n_docs,)
    start : (power of two that all pair weights were divided by, Z)
    """

    def __init__(self, queries: LevelledQueries, weights: ScoreWeights) -> None:
        self.queries, self.weights = queries, weights
        self.levels = (queries.step, *(np.ones(queries.n_segments) for _ in range(3)))
        self.sums = tuple(np.zeros(queries.n_segments) for _ in range(4))
        self.share, self.lanes = np.zeros(queries.n_queries), np.zeros(QUERY_LANES)
        self.pi = np.zeros(queries.n_docs, dtype=np.int32)
        self.start = self._sum(self._ratios())

    def potentials(self) -> np.ndarray:
        """π of every document in units of 2^−30, int32 (n_docs,); the same array each time."""
        queries = self.queries
        both = (self.weights.up, self.weights.down)
        places = (queries.segment_ptr, queries.query_segments)
        potentials(places, both, self.sums, self.start[1], self.pi)
        return self.pi

    def apply(self, above_threshold: np.ndarray, r: int) -> float:
        """Apply a weak ranker; the loss after it. above_threshold : bool (n_docs,), where h = 1"""
        replay_round(self.queries, self.weights, above_threshold, r)
        recentred = self.weights.n_rounds % RECENTRE_ROUNDS == 0
        self.start = self._sum(self._ratios() if recentred else self.start[0])
        return float(np.ldexp(self.start[1], self.start[0]))

    def _ratios(self) -> int:
        weights, queries = self.weights, self.queries
        exponents = (weights.up_exponent, weights.down_exponent)
        return level_ratios(queries.query_segments, queries.query_weight, *exponents, self.levels[1:])

    def _sum(self, common: int) -> tuple[int, float]:
        queries = self.queries
        both = (self.weights.up, self.weights.down)
        places = (queries.segment_ptr, queries.query_segments)
        sum_levels(places, both, self.levels, float(queries.carry), self.sums, self.share)
        return common, query_sum(self.share, self.lanes)


def initial_weights(queries: LevelledQueries) -> ScoreWeights:
    """e^{±H} for H = 0, each times its document's weight."""
    up, down = queries.document_weight.copy(), queries.document_weight.copy()
    up_exponent, down_exponent = (np.zeros(queries.n_segments, dtype=np.int32) for _ in range(2))
    choose_exponents(queries.segment_ptr, up, down, up_exponent, down_exponent)
    return ScoreWeights(up, down, up_exponent, down_exponent, 0)


def replay_round(queries: LevelledQueries, weights: ScoreWeights, above_threshold: np.ndarray, r: int) -> None:
    """Apply a round of an earlier run, bit for bit as that run did. above_threshold : bool (n_docs,), where h = 1"""
    apply_round(above_threshold, *weight_factors(r), weights.up, weights.down)
    weights.n_rounds += 1
    if weights.n_rounds % RECENTRE_ROUNDS == 0:
        choose_exponents(queries.segment_ptr, weights.up, weights.down, weights.up_exponent, weights.down_exponent)


def query_pair_weights(queries: LevelledQueries) -> np.ndarray:
    """The sum of each query's initial pair weights, its own weight included, float64 (n_queries,)."""
    documents = DocumentWeights(queries, initial_weights(queries))
    return np.ldexp(documents.share, documents.start[0])
