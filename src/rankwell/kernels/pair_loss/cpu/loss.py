"""RankSVM's pair loss on the CPU: the arrays are prepared once; the passes are in `product`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwell.kernels.cpu.vectors import TOTALS
from rankwell.kernels.disk_arrays import BLOCK_BYTES, give_back, is_on_disk
from rankwell.kernels.pair_loss.contract import PairData
from rankwell.kernels.pair_loss.cpu.product import curvature, hessian_vector, loss_and_gradient, row_scores
from rankwell.kernels.pair_loss.cpu.queries import make_scratch, queries_of
from rankwell.kernels.pair_loss.cpu.rows import kernel_features
from rankwell.kernels.pair_loss.cpu.sums import empty_support
from rankwell.kernels.pair_loss.method import SumCosts, choose_method
from rankwell.kernels.threads import kernel_threads, run_parts, run_ranges

# Nanoseconds, measured on one core of an AMD EPYC with queries of 1,000 documents and 2 to 1,000 levels.
SUM_COSTS = SumCosts(few_levels=TOTALS - 1, few=8.0, fixed=40.0, per_level=0.2, tree_fixed=36.0, tree_per_bit=2.0)

_BLOCK_ROWS = 1024
# Values of X that are worth a thread: reading them takes some tenths of a millisecond, as waking one does. The shape of
# MQ2007, two million values, took 0.10 s on 16 cores when all of them shared it, and 0.015 s on another machine's two.
_VALUES_OF_THREAD = 2**19


class CpuPairLoss:
    """See `rankwell.kernels.pair_loss.contract.PairLoss`."""

    def __init__(self, data: PairData, *, method: str = "auto", n_jobs: int | None = None) -> None:
        self.n_features = int(data.features.shape[1])
        self._n_jobs = n_jobs
        self._features = kernel_features(data.features)
        self._scale = np.ones(self.n_features) if data.column_scale is None else data.column_scale
        self.method = choose_method(method, np.diff(data.query_ptr), data.n_levels, SUM_COSTS)
        self._queries = queries_of(data)
        self._partial = np.empty((len(self._queries.chunk_ptr) - 1, self.n_features))
        self._support, self._support_at_trial = empty_support(len(data.levels)), empty_support(len(data.levels))
        self._most_threads = 1 + int(data.features.size) // _VALUES_OF_THREAD  # of a sparse X, the values stored
        self._of_thread = threading.local()

    def to_device(self, vector: np.ndarray) -> np.ndarray:
        return np.asarray(vector, dtype=np.float64)

    def to_host(self, vector: np.ndarray) -> np.ndarray:
        return vector

    def loss_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        point, support, losses = w * self._scale, self._support_at_trial, np.empty(len(self._partial))

        def look(scratch: Any, first: int, last: int) -> None:
            loss_and_gradient(
                self._features, self._queries, support, *scratch, point, first, last, self._partial, losses
            )  # fmt: skip

        gradient = self._sum_over_chunks(look)
        return float(losses.sum()), 2.0 * self._scale * gradient

    def accept(self) -> None:
        self._support, self._support_at_trial = self._support_at_trial, self._support

    def hessian_vector(self, v: np.ndarray) -> np.ndarray:
        vector, support = v * self._scale, self._support

        def multiply(scratch: Any, first: int, last: int) -> None:
            hessian_vector(self._features, self._queries, support, *scratch, vector, first, last, self._partial)

        return 2.0 * self._scale * self._sum_over_chunks(multiply)

    def curvature(self) -> np.ndarray:
        support = self._support

        def add(scratch: Any, first: int, last: int) -> None:
            curvature(self._features, self._queries, support, scratch[0], first, last, self._partial)

        # Rounding may leave a constant feature just below 0.
        return 2.0 * np.square(self._scale) * np.maximum(self._sum_over_chunks(add), 0.0)

    def _sum_over_chunks(self, run: Callable[[Any, int, int], None]) -> np.ndarray:
        """Call ``run(scratch, first, last)`` for ranges of chunks, on all threads; the sum of the chunks' parts."""
        n_chunks = len(self._partial)
        with kernel_threads(self._n_jobs) as n_threads, kernel_threads(min(n_threads, self._most_threads)):
            if is_on_disk(self._features):
                at_once = max(1, round(2 * BLOCK_BYTES * n_chunks / max(1, self._features.nbytes)))
                run_parts(
                    lambda part: self._read_chunks(run, at_once * part, min(at_once * (part + 1), n_chunks)),
                    -(-n_chunks // at_once),
                )
            else:
                run_ranges(lambda first, last: run(self._own_scratch(), first, last), n_chunks)
        return self._partial.sum(axis=0)

    def _read_chunks(self, run: Callable[[Any, int, int], None], first: int, last: int) -> None:
        """Chunks whose rows are on disk; their memory is given back."""
        rows = slice(*self._queries.query_ptr[self._queries.chunk_ptr[[first, last]]].tolist())
        run(self._own_scratch(), first, last)
        give_back(self._features, rows)

    def _own_scratch(self) -> Any:
        """The scratch of the calling thread."""
        if not hasattr(self._of_thread, "scratch"):
            self._of_thread.scratch = make_scratch(self._queries, self.method, self.n_features)
        return self._of_thread.scratch


def score_rows(features: Any, weights: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """x·weights for every row of features without NaN, dense or CSR: float64 (n_docs,)."""
    n_docs = features.shape[0]
    scores, rows, vector = np.empty(n_docs), kernel_features(features), np.asarray(weights, dtype=np.float64)

    def score_blocks(first: int, last: int) -> None:
        row_scores(rows, vector, _BLOCK_ROWS * first, min(_BLOCK_ROWS * last, n_docs), scores)

    with kernel_threads(n_jobs):
        run_ranges(score_blocks, (n_docs + _BLOCK_ROWS - 1) // _BLOCK_ROWS)
    return scores
