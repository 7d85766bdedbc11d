"""RankSVM's pair loss on a CUDA device: X, vectors and support pairs stay there; the host sees scalars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.cuda.ranksvm_features import DenseFeatures, device_features, share_queries
from rankwell.kernels.ranksvm_interface import PairData
from rankwell.kernels.ranksvm_method import SumCosts, choose_method

# Scans over a query, as the kernels make them: one for every 4 levels, or one for every bit of a level.
SUM_COSTS = SumCosts(few_levels=4, few=1.0, fixed=0.0, per_level=0.25, tree_fixed=0.0, tree_per_bit=1.0)

_THREADS = 256
_FUSED_THREADS = 512
_CHUNK_BYTES = 8192
# Shared memory that kernels have beside what is asked for at launch.
_STATIC_BYTES = 4096
_NULL = np.uint64(0)


class CudaPairLoss:
    """See `rankwell.kernels.ranksvm_interface.PairLoss`.

    Parameters
    ----------
    fused : bool
        False takes the Hessian-vector product in three launches, which read X twice: for comparison.
    """

    def __init__(self, data: PairData, *, method: str = "auto", fused: bool = True) -> None:
        import cupy

        self._cupy = cupy
        self.n_features = int(data.features.shape[1])
        self._features = device_features(data.features)
        sizes = np.diff(data.query_ptr)
        self.method = choose_method(method, sizes, data.n_levels, SUM_COSTS)
        self._scale = cupy.ones(self.n_features) if data.column_scale is None else cupy.asarray(data.column_scale)
        self._queries = _Queries(data, self.method, cupy)
        self._support, self._support_at_trial = (_Support(data, self._queries, cupy) for _ in range(2))
        self._products, self._factors = cupy.empty(len(data.levels)), cupy.empty(len(data.levels))
        self._losses = cupy.empty(len(sizes))
        self._fused = None
        if fused and isinstance(self._features, DenseFeatures) and self._features.n_groups <= _FUSED_THREADS:
            self._fused = _FusedProduct(self._features, self._queries, cupy)

    def to_device(self, vector: np.ndarray) -> Any:
        return self._cupy.asarray(vector, dtype=np.float64)

    def to_host(self, vector: Any) -> np.ndarray:
        return np.asarray(self._cupy.asnumpy(vector))

    def loss_and_gradient(self, w: Any) -> tuple[float, Any]:
        queries, support = self._queries, self._support_at_trial
        self._features.products(self._padded(w * self._scale), self._products)
        queries.sort(self._products, support.order)
        queries.find_support(self._products, support, self._factors, self._losses)
        gradient = self._unpadded(self._features.sum_rows(self._factors))
        return float(self._losses.sum()), 2.0 * self._scale * gradient

    def accept(self) -> None:
        self._support, self._support_at_trial = self._support_at_trial, self._support

    def hessian_vector(self, v: Any) -> Any:
        vector = self._padded(v * self._scale)
        if self._fused is not None:
            total = self._fused.multiply(vector, self._support)
        else:
            self._features.products(vector, self._products)
            self._queries.subtract_partners(self._products, self._support)
            total = self._features.sum_rows(self._products)
        return 2.0 * self._scale * self._unpadded(total)

    def curvature(self) -> Any:
        queries = self._queries
        queries.curvature_factors(self._support, self._factors)
        squares = self._features.sum_squares(self._factors, queries.query_ptr, queries.host_query_ptr)
        # Rounding may leave a constant feature just below 0.
        return 2.0 * self._scale * self._scale * self._cupy.maximum(self._unpadded(squares), 0.0)

    def _padded(self, vector: Any) -> Any:
        if self._features.width == self.n_features:
            return vector
        padded = self._cupy.zeros(self._features.width)
        padded[: self.n_features] = vector
        return padded

    def _unpadded(self, vector: Any) -> Any:
        return vector[: self.n_features]


@dataclass
class _Support:
    """The support pairs at one w, by place in ascending order of score: see `ranksvm.cu`."""

    order: Any
    sorted_levels: Any
    upper: Any
    lower: Any
    degree: Any
    ranks: Any

    def __init__(self, data: PairData, queries: _Queries, cupy: Any) -> None:
        n_docs = len(data.levels)
        # Zeros, because queries without pairs are never filled in.
        self.order, self.sorted_levels, self.upper, self.lower = (cupy.zeros(n_docs, dtype=np.int32) for _ in range(4))
        self.degree = cupy.zeros(n_docs)
        self.ranks = cupy.empty(queries.n_ranks, dtype=np.int32)

    def arrays(self) -> tuple[Any, ...]:
        return self.order, self.sorted_levels, self.upper, self.lower, self.degree, self.ranks


class _Queries:
    """What does not change during training, and the kernels that work on queries without reading X."""

    def __init__(self, data: PairData, method: str, cupy: Any) -> None:
        sizes = np.diff(data.query_ptr)
        self.method = 0 if method == "direct" else 1
        self.n_queries = len(sizes)
        self.host_query_ptr = data.query_ptr
        self.query_ptr = cupy.asarray(data.query_ptr)
        self.levels, self.n_levels = cupy.asarray(data.levels), cupy.asarray(data.n_levels)
        self.query_weights = cupy.ones(len(sizes)) if data.query_weights is None else cupy.asarray(data.query_weights)
        self.document_weights = _NULL if data.document_weights is None else cupy.asarray(data.document_weights)
        # Queries of up to `capacity` documents have their workspace in shared memory, longer ones in `scratch`.
        longest = int(sizes.max(initial=1))
        self.capacity = min(longest, 512 if self.method == 0 else 1024)
        needed = np.where(sizes > self.capacity, workspace_doubles(sizes), 0)
        offsets = np.concatenate(([0], np.cumsum(needed)))
        self.scratch_ptr = cupy.asarray(np.where(needed > 0, offsets[:-1], -1).astype(np.int64))
        self.scratch = cupy.empty(max(int(offsets[-1]), 1))
        bits = np.ceil(np.log2(np.maximum(data.n_levels, 1))).astype(np.int64)
        rank_offsets = np.concatenate(([0], np.cumsum(bits * (sizes + 1)))) * self.method
        self.n_ranks = int(rank_offsets[-1])
        self.rank_ptr = cupy.asarray(rank_offsets[:-1].astype(np.int64))
        self._module = cuda_module("ranksvm", f"METHOD={self.method}")
        processors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        self._grid = (max(1, min(self.n_queries, 16 * processors)),)

    def sort(self, products: Any, order: Any) -> None:
        """order: the rows of every query in ascending order of their products."""
        cuda_module("ranksvm_sort").get_function("sort_queries")(
            self._grid,
            (_THREADS,),
            (
                products,
                self.query_ptr,
                self.n_levels,
                self.scratch_ptr,
                np.int32(self.n_queries),
                self.scratch,
                order,
            ),
        )

    def find_support(self, products: Any, support: _Support, residuals: Any, losses: Any) -> None:
        self._launch(
            "find_support",
            products,
            support.order,
            self.levels,
            self.query_ptr,
            self.n_levels,
            self.query_weights,
            self.document_weights,
            self.scratch_ptr,
            self.rank_ptr,
            np.int32(self.n_queries),
            support.sorted_levels,
            support.upper,
            support.lower,
            support.degree,
            support.ranks,
            residuals,
            losses,
            self.scratch,
        )

    def subtract_partners(self, products: Any, support: _Support) -> None:
        self._launch(
            "subtract_partners", products, *support.arrays(), *self.arrays(), np.int32(self.n_queries), self.scratch
        )

    def curvature_factors(self, support: _Support, factors: Any) -> None:
        cuda_module("ranksvm_rows").get_function("curvature_factors")(
            self._grid,
            (_THREADS,),
            (
                support.order,
                support.degree,
                self.query_ptr,
                self.n_levels,
                self.query_weights,
                self.document_weights,
                np.int32(self.n_queries),
                factors,
            ),
        )

    def arrays(self) -> tuple[Any, ...]:
        """The arrays that every product takes, in the kernels' order."""
        return (
            self.query_ptr,
            self.n_levels,
            self.query_weights,
            self.document_weights,
            self.scratch_ptr,
            self.rank_ptr,
        )

    def _launch(self, name: str, *arguments: Any) -> None:
        kernel = self._module.get_function(name)
        kernel.max_dynamic_shared_size_bytes = shared = 8 * int(workspace_doubles(self.capacity))
        kernel(self._grid, (_THREADS,), arguments, shared_mem=shared)


class _FusedProduct:
    """The Hessian-vector product in one launch that reads X once: one block a processor, rows in a ring of chunks."""

    def __init__(self, features: DenseFeatures, queries: _Queries, cupy: Any) -> None:
        self._features, self._queries = features, queries
        attributes = cupy.cuda.Device().attributes
        n_blocks = int(attributes["MultiProcessorCount"])
        row_bytes = 4 * features.width
        rows_per_chunk = max(1, _CHUNK_BYTES // row_bytes)
        module = cuda_module(
            "ranksvm",
            f"METHOD={queries.method}",
            f"COLUMN_GROUPS={features.n_groups}",
            f"ROWS_PER_CHUNK={rows_per_chunk}",
        )
        self._kernel = module.get_function("hessian_vector")
        own = 8 * int(workspace_doubles(queries.capacity)) + 8 * features.width + 8
        most = int(attributes["MaxSharedMemoryPerBlockOptin"]) - _STATIC_BYTES
        n_chunks = -(-features.n_docs // rows_per_chunk)
        self._n_slots = max(2, min(n_chunks + 1, (most - own) // (rows_per_chunk * row_bytes + 8)))
        # At the end the ring's memory takes the totals of up to _FUSED_THREADS threads.
        ring = max(self._n_slots * rows_per_chunk * row_bytes, 32 * _FUSED_THREADS)
        self._shared = ring + 8 * (self._n_slots + 1) + own
        self._kernel.max_dynamic_shared_size_bytes = self._shared
        self._block_ptr = cupy.asarray(share_queries(queries.host_query_ptr, n_blocks))
        self._partial = cupy.empty((n_blocks, features.width))

    def multiply(self, vector: Any, support: _Support) -> Any:
        """Xᵀ AᵀA X·vector, cupy float64 (width,)."""
        self._kernel(
            (len(self._partial),),
            (_FUSED_THREADS,),
            (
                self._features.rows,
                vector,
                *support.arrays(),
                *self._queries.arrays(),
                self._block_ptr,
                np.int64(self._features.n_docs),
                np.int32(self._n_slots),
                self._queries.scratch,
                self._partial,
            ),
            shared_mem=self._shared,
        )
        return self._partial.sum(axis=0)


def workspace_doubles(n_docs: Any) -> Any:
    """The size of a query's workspace, an even number: see `workspace_at` in `ranksvm.cu`."""
    return 9 * n_docs + 4 + (n_docs & 1)
