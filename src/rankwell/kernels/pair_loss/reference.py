"""RankSVM's pair loss, slow and in float64: every pair is enumerated.

The definition that the fast kernels are checked against. O(pairs) time and memory per query.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankwell.kernels.pair_loss.contract import PairData


class ReferencePairLoss:
    """See `rankwell.kernels.pair_loss.contract.PairLoss`; `curvature` is the exact diagonal here."""

    method = "pairs"

    def __init__(self, data: PairData) -> None:
        features = data.features.toarray() if sparse.issparse(data.features) else data.features
        scale = 1.0 if data.column_scale is None else data.column_scale
        self._features = features.astype(np.float64) * scale
        self.n_features = features.shape[1]
        pairs = [_pairs_of_query(data, query) for query in range(len(data.query_ptr) - 1)]
        self._better, self._worse, self._weight = (np.concatenate(part) for part in zip(*pairs, strict=True))
        self._w = self._w_at_trial = np.zeros(self.n_features)

    def to_device(self, vector: np.ndarray) -> np.ndarray:
        return np.asarray(vector, dtype=np.float64)

    def to_host(self, vector: np.ndarray) -> np.ndarray:
        return vector

    def loss_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        self._w_at_trial = w.copy()
        shortfall = np.maximum(0.0, 1.0 - self._differences() @ w)
        return float(self._weight @ shortfall**2), -2.0 * self._differences().T @ (self._weight * shortfall)

    def accept(self) -> None:
        self._w = self._w_at_trial

    def hessian_vector(self, v: np.ndarray) -> np.ndarray:
        differences, weight = self._support()
        return 2.0 * differences.T @ (weight * (differences @ v))

    def curvature(self) -> np.ndarray:
        differences, weight = self._support()
        return 2.0 * weight @ differences**2

    def _differences(self) -> np.ndarray:
        """x_a − x_b of every pair, float64 (n_pairs, n_features)."""
        return self._features[self._better] - self._features[self._worse]

    def _support(self) -> tuple[np.ndarray, np.ndarray]:
        """The differences and weights of the support pairs: those with w·(x_a − x_b) < 1."""
        scores = self._features @ self._w
        is_support = scores[self._better] - scores[self._worse] < 1.0
        return self._differences()[is_support], self._weight[is_support]


def _pairs_of_query(data: PairData, query: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The better row, the worse row and the weight of every pair of one query."""
    start, end = int(data.query_ptr[query]), int(data.query_ptr[query + 1])
    levels = data.levels[start:end]
    weights = np.ones(end - start) if data.document_weights is None else data.document_weights[start:end]
    query_weight = 1.0 if data.query_weights is None else float(data.query_weights[query])
    better, worse = np.nonzero(levels[:, None] > levels[None, :])
    return start + better, start + worse, query_weight * weights[better] * weights[worse]
