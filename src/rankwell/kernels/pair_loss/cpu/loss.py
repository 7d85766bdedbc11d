"""RankSVM's pair loss on the CPU: arrays prepared once, passes run by `product`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rankwell.kernels.cpu.vectors import TOTALS
from rankwell.kernels.pair_loss.contract import PairData
from rankwell.kernels.pair_loss.cpu.product import curvature, hessian_vector, loss_and_gradient, row_scores
from rankwell.kernels.pair_loss.cpu.sums import DIRECT, ORDER_STATISTIC
from rankwell.kernels.pair_loss.method import SumCosts, choose_method
from rankwell.kernels.threads import kernel_threads

# Nanoseconds, measured on one core of an AMD EPYC with queries of 1,000 documents and 2 to 1,000 levels.
SUM_COSTS = SumCosts(few_levels=TOTALS - 1, few=8.0, fixed=40.0, per_level=0.2, tree_fixed=36.0, tree_per_bit=2.0)

# More chunks balance better; each costs one row of n_features numbers, which must stay far below X itself.
_MOST_CHUNKS = 256
_ROWS_PER_CHUNK = 512
_PARTIAL_SUMS_BYTES = 2**26


class CpuPairLoss:
    """See `rankwell.kernels.pair_loss.contract.PairLoss`."""

    def __init__(self, data: PairData, *, method: str = "auto", n_jobs: int | None = None) -> None:
        self.n_features = int(data.features.shape[1])
        self._n_jobs = n_jobs
        self._features = kernel_features(data.features)
        self._scale = np.ones(self.n_features) if data.column_scale is None else data.column_scale
        n_docs, n_queries = len(data.levels), len(data.query_ptr) - 1
        self.method = choose_method(method, np.diff(data.query_ptr), data.n_levels, SUM_COSTS)
        self._method = DIRECT if self.method == "direct" else ORDER_STATISTIC
        self._queries = (
            data.query_ptr,
            divide_queries(data.query_ptr, self.n_features),
            data.n_levels,
            data.levels,
            np.ones(n_queries) if data.query_weights is None else data.query_weights,
            np.empty(0) if data.document_weights is None else data.document_weights,
        )
        self._partial = np.empty((len(self._queries[1]) - 1, self.n_features))
        self._support, self._support_at_trial = _empty_support(n_docs), _empty_support(n_docs)

    def to_device(self, vector: np.ndarray) -> np.ndarray:
        return np.asarray(vector, dtype=np.float64)

    def to_host(self, vector: np.ndarray) -> np.ndarray:
        return vector

    def loss_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        losses = np.empty(len(self._partial))
        with kernel_threads(self._n_jobs):
            loss_and_gradient(
                self._features,
                self._queries,
                self._support_at_trial,
                w * self._scale,
                self._method,
                self._partial,
                losses,
            )
        return float(losses.sum()), 2.0 * self._scale * self._partial.sum(axis=0)

    def accept(self) -> None:
        self._support, self._support_at_trial = self._support_at_trial, self._support

    def hessian_vector(self, v: np.ndarray) -> np.ndarray:
        with kernel_threads(self._n_jobs):
            hessian_vector(self._features, self._queries, self._support, v * self._scale, self._method, self._partial)
        return 2.0 * self._scale * self._partial.sum(axis=0)

    def curvature(self) -> np.ndarray:
        with kernel_threads(self._n_jobs):
            curvature(self._features, self._queries, self._support, self._partial)
        # Rounding may leave a constant feature just below 0.
        return 2.0 * np.square(self._scale) * np.maximum(self._partial.sum(axis=0), 0.0)


def score_rows(features: Any, weights: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """x·weights for every row of features without NaN, dense or CSR: float64 (n_docs,)."""
    scores = np.empty(features.shape[0])
    with kernel_threads(n_jobs):
        row_scores(kernel_features(features), np.asarray(weights, dtype=np.float64), scores)
    return scores


def kernel_features(features: Any) -> Any:
    """Features as the kernels take them: the dense array itself, or the three arrays of CSR."""
    if not sparse.issparse(features):
        return features
    return features.data, features.indices, features.indptr


def divide_queries(query_ptr: np.ndarray, n_features: int) -> np.ndarray:
    """Offsets of chunks of queries with about as many rows each: by the data alone, never by the number of threads.

    Returns
    -------
    int64 array (n_chunks + 1,)
    """
    n_docs = int(query_ptr[-1])
    n_chunks = min(_MOST_CHUNKS, n_docs // _ROWS_PER_CHUNK, _PARTIAL_SUMS_BYTES // (8 * max(n_features, 1)))
    n_chunks = max(n_chunks, 1)
    goals = np.arange(1, n_chunks) * (n_docs / n_chunks)
    inner = np.searchsorted(query_ptr[:-1], goals)
    return np.concatenate(([0], inner, [len(query_ptr) - 1])).astype(np.int64)


def _empty_support(n_docs: int) -> tuple[np.ndarray, ...]:
    """The `support` tuple of `product`, not yet filled: 24 bytes a document."""
    places = tuple(np.zeros(n_docs, dtype=np.int32) for _ in range(4))
    return (*places, np.zeros(n_docs))
