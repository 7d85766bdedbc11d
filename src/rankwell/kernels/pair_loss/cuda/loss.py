"""RankSVM's pair loss on a CUDA device: X, vectors and support pairs stay there; the host reads only scalars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.device import memory_errors
from rankwell.kernels.pair_loss.contract import PAIR_LOSS, PairData
from rankwell.kernels.pair_loss.cuda.features import DenseFeatures, device_features, share_queries
from rankwell.kernels.pair_loss.cuda.layout import STATIC_BYTES, SUM_COSTS, lay_out_queries, workspace_doubles
from rankwell.kernels.pair_loss.declarations import LEVELS_PER_PASS, METHOD_NUMBERS, PLACE, QUERY
from rankwell.kernels.pair_loss.method import choose_method

_THREADS = 256
# Warps of the fused product's pipeline: with 16 in all, a thread has 128 registers.
_FILL_WARPS, _MULTIPLY_WARPS, _SUM_WARPS, _ADD_WARPS = 2, 4, 5, 5
_CHUNK_BYTES = 4608
_WIDEST_FUSED = 768
# The fused product multiplies in float32, where larger values times factors could overflow.
_LARGEST_FUSED = 1e12
_NULL = np.uint64(0)


class CudaPairLoss:
    """See `rankwell.kernels.pair_loss.contract.PairLoss`.

    Parameters
    ----------
    fused : bool
        False computes the Hessian-vector product by three launches, which read X twice: for comparison.
    """

    def __init__(self, data: PairData, *, method: str = "auto", fused: bool = True) -> None:
        import cupy

        self._cupy = cupy
        self.n_features = int(data.features.shape[1])
        self._features = device_features(data.features)
        sizes = np.diff(data.query_ptr)
        self.method = choose_method(method, sizes, data.n_levels, SUM_COSTS)
        self._scale = cupy.ones(self.n_features) if data.column_scale is None else cupy.asarray(data.column_scale)
        self._twice_scale = 2.0 * self._scale
        self._queries = _Queries(data, self.method, cupy)
        self._support, self._support_at_trial = (_Support(data, self._queries, cupy) for _ in range(2))
        self._order = cupy.zeros(len(data.levels), dtype=np.int32)
        self._products, self._factors = cupy.empty(len(data.levels)), cupy.empty(len(data.levels))
        self._losses = cupy.empty(len(sizes))
        self._fused = None
        if fused and isinstance(self._features, DenseFeatures) and _can_fuse(self._features, cupy):
            self._fused = _FusedProduct(self._features, self._queries, self._scale, cupy)

    def to_device(self, vector: np.ndarray) -> Any:
        return self._cupy.asarray(vector, dtype=np.float64)

    def to_host(self, vector: Any) -> np.ndarray:
        return np.asarray(self._cupy.asnumpy(vector))

    def loss_and_gradient(self, w: Any) -> tuple[float, Any]:
        with memory_errors("cuda", PAIR_LOSS.task):
            return self._loss_and_gradient(w)

    def _loss_and_gradient(self, w: Any) -> tuple[float, Any]:
        queries, support = self._queries, self._support_at_trial
        self._features.products(self._padded(w * self._scale), self._products)
        queries.sort(self._products, self._order)
        queries.find_support(self._products, self._order, support, self._factors, self._losses)
        gradient = self._unpadded(self._features.sum_rows(self._factors))
        return float(self._losses.sum()), self._twice_scale * gradient

    def accept(self) -> None:
        self._support, self._support_at_trial = self._support_at_trial, self._support

    def hessian_vector(self, v: Any) -> Any:
        if self._fused is not None:
            return self._fused.multiply(v, self._support)
        self._features.products(self._padded(v * self._scale), self._products)
        self._queries.subtract_partners(self._products, self._support)
        return self._twice_scale * self._unpadded(self._features.sum_rows(self._products))

    def curvature(self) -> Any:
        queries = self._queries
        queries.curvature_factors(self._support, self._factors)
        squares = self._features.sum_squares(self._factors, queries.query_ptr, queries.host_query_ptr)
        # Rounding may leave a constant feature just below 0.
        return self._twice_scale * self._scale * self._cupy.maximum(self._unpadded(squares), 0.0)

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
    """The support pairs at one w, by place in ascending order of score: see `pairs.cuh`."""

    places: Any
    degree: Any
    ranks: Any

    def __init__(self, data: PairData, queries: _Queries, cupy: Any) -> None:
        n_docs = len(data.levels)
        # Zeros, because queries without pairs are never written.
        self.places = cupy.zeros((n_docs, len(PLACE.fields)), dtype=np.int32)
        self.degree = cupy.zeros(n_docs)
        self.ranks = cupy.empty(queries.layout.n_ranks, dtype=np.int32)

    def arrays(self) -> tuple[Any, ...]:
        return self.places, self.degree, self.ranks


class _Queries:
    """Data that does not change during training, and the kernels that work on queries without reading X."""

    def __init__(self, data: PairData, method: str, cupy: Any) -> None:
        sizes = np.diff(data.query_ptr)
        self.method = method
        self.n_queries = len(sizes)
        self.host_query_ptr = data.query_ptr
        self.host_n_levels = data.n_levels
        self.query_ptr = cupy.asarray(data.query_ptr)
        self.levels, self.n_levels = cupy.asarray(data.levels), cupy.asarray(data.n_levels)
        self.host_query_weights = np.ones(len(sizes)) if data.query_weights is None else data.query_weights
        self.query_weights = cupy.asarray(self.host_query_weights)
        self.document_weights = _NULL if data.document_weights is None else cupy.asarray(data.document_weights)
        attributes = cupy.cuda.Device().attributes
        self.layout = lay_out_queries(sizes, data.n_levels, method, int(attributes["MaxSharedMemoryPerBlockOptin"]))
        self.scratch_ptr = cupy.asarray(self.layout.scratch_ptr)
        self.scratch = cupy.empty(max(self.layout.n_scratch, 1))
        self.rank_ptr = cupy.asarray(self.layout.rank_ptr)
        self._module = cuda_module("pair_loss/support_pairs", *support_definitions(method))
        self._grid = (max(1, min(self.n_queries, 16 * int(attributes["MultiProcessorCount"]))),)

    def sort(self, products: Any, order: Any) -> None:
        """order: the rows of every query in ascending order of their products."""
        cuda_module("pair_loss/sort").get_function("sort_queries")(
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

    def find_support(self, products: Any, order: Any, support: _Support, residuals: Any, losses: Any) -> None:
        self._launch(
            "find_support",
            products,
            order,
            self.levels,
            self.query_ptr,
            self.n_levels,
            self.query_weights,
            self.document_weights,
            self.scratch_ptr,
            self.rank_ptr,
            np.int32(self.n_queries),
            *support.arrays(),
            residuals,
            losses,
            self.scratch,
        )

    def subtract_partners(self, products: Any, support: _Support) -> None:
        self._launch(
            "subtract_partners",
            products,
            *support.arrays(),
            self.query_ptr,
            self.n_levels,
            self.query_weights,
            self.document_weights,
            self.scratch_ptr,
            self.rank_ptr,
            np.int32(self.n_queries),
            self.scratch,
        )

    def curvature_factors(self, support: _Support, factors: Any) -> None:
        cuda_module("pair_loss/rows").get_function("curvature_factors")(
            self._grid,
            (_THREADS,),
            (
                support.places,
                support.degree,
                self.query_ptr,
                self.n_levels,
                self.query_weights,
                self.document_weights,
                np.int32(self.n_queries),
                factors,
            ),
        )

    def _launch(self, name: str, *arguments: Any) -> None:
        kernel = self._module.get_function(name)
        kernel.max_dynamic_shared_size_bytes = shared = 8 * int(workspace_doubles(self.layout.capacity))
        kernel(self._grid, (_THREADS,), arguments, shared_mem=shared)


class _FusedProduct:
    """The Hessian-vector product in one launch that reads X once: one block per processor, rows in a ring of chunks."""

    def __init__(self, features: DenseFeatures, queries: _Queries, scale: Any, cupy: Any) -> None:
        self._features, self._queries, self._scale, self._empty_like = features, queries, scale, cupy.empty_like
        self._centre = (features.sum_rows(cupy.ones(features.n_docs)) / features.n_docs).astype(np.float32)
        attributes = cupy.cuda.Device().attributes
        n_blocks = int(attributes["MultiProcessorCount"])
        rows_per_chunk = _rows_per_chunk(features.n_groups)
        module = cuda_module("pair_loss/hessian_vector", *product_definitions(queries.method, features.n_groups))
        self._kernel = module.get_function("hessian_vector")
        most = int(attributes["MaxSharedMemoryPerBlockOptin"]) - STATIC_BYTES
        self._n_slots, self._n_factors, self._shared = _divide_memory(features, queries, rows_per_chunk, most)
        self._kernel.max_dynamic_shared_size_bytes = self._shared
        records = _describe_queries(queries)[queries.host_n_levels > 1]
        block_ptr = share_queries(np.concatenate(([0], np.cumsum(records["n"]))), n_blocks)
        self._records, self._block_ptr = cupy.asarray(records.view(np.int64)), cupy.asarray(block_ptr)
        self._partial, self._n_finished = cupy.empty((n_blocks, features.width)), cupy.zeros(1, dtype=np.uint32)

    def multiply(self, v: Any, support: _Support) -> Any:
        """2·scale·Xᵀ AᵀA X·(scale·v), cupy float64 (n_features,)."""
        product = self._empty_like(v)
        self._kernel(
            (len(self._partial),),
            (32 * (_FILL_WARPS + _MULTIPLY_WARPS + _SUM_WARPS + _ADD_WARPS),),
            (
                self._features.rows,
                self._centre,
                self._scale,
                v,
                np.int32(len(v)),
                *support.arrays(),
                self._queries.document_weights,
                self._records,
                self._block_ptr,
                np.int32(self._n_slots),
                np.int32(self._n_factors),
                self._queries.scratch,
                self._partial,
                self._n_finished,
                product,
            ),
            shared_mem=self._shared,
        )
        return product


def support_definitions(method: str) -> tuple[str, ...]:
    """The macros of `support_pairs.cu`."""
    return (f"METHOD={METHOD_NUMBERS[method]}",)


def product_definitions(method: str, n_groups: int) -> tuple[str, ...]:
    """The macros of `hessian_vector.cu` for rows of this many groups of 4 features."""
    warps = {"FILL": _FILL_WARPS, "MULTIPLY": _MULTIPLY_WARPS, "SUM": _SUM_WARPS, "ADD": _ADD_WARPS}
    return (
        *support_definitions(method),
        f"COLUMN_GROUPS={n_groups}",
        f"ROWS_PER_CHUNK={_rows_per_chunk(n_groups)}",
        *(f"{task}_WARPS={number}" for task, number in warps.items()),
    )


def _rows_per_chunk(n_groups: int) -> int:
    return max(1, _CHUNK_BYTES // (16 * n_groups))


def _can_fuse(features: DenseFeatures, cupy: Any) -> bool:
    """Bulk copies need compute capability 9.0, and the sums of wider rows would not fit in the registers of a warp."""
    if features.width > _WIDEST_FUSED or int(cupy.cuda.Device().compute_capability) < 90 or not features.n_docs:
        return False
    return max(float(features.rows.max()), -float(features.rows.min())) <= _LARGEST_FUSED


def _describe_queries(queries: _Queries) -> np.ndarray:
    """`Query` of the kernels for every query."""
    records = np.zeros(queries.n_queries, dtype=QUERY.dtype)
    records["start"] = queries.host_query_ptr[:-1]
    records["scratch"] = queries.layout.scratch_ptr
    records["ranks"] = queries.layout.rank_ptr
    records["weight"] = queries.host_query_weights
    records["n"] = np.diff(queries.host_query_ptr)
    records["n_levels"] = queries.host_n_levels
    return records


def _divide_memory(features: DenseFeatures, queries: _Queries, rows_per_chunk: int, most: int) -> tuple[int, int, int]:
    """Shared memory of `hessian_vector`: slots of the ring, rows whose factors fit, and bytes in all.

    Factors of a query are needed until it is added, while the ring fills with later rows. So there is room for a
    query of `capacity` documents, and for as many further rows as are in the ring or in a longer query that passes
    through it.
    """
    capacity = queries.layout.capacity
    workspace = 8 * capacity + 2
    if queries.method == "direct":
        passes = -(-int(queries.host_n_levels.max(initial=1)) // LEVELS_PER_PASS)
        workspace = 5 * (capacity + 1) + (2 * capacity if passes > 1 else 0)
    # The workspace, barriers of queries, and two numbers for alignment.
    own = 8 * (workspace + 4 * _MULTIPLY_WARPS + 2)
    # A slot: rows of X, barriers of the chunk and of a query.
    slot = rows_per_chunk * 4 * features.width + 4 * 8
    n_slots = min((most - own - 8 * capacity) // slot, (most - own - 4 * capacity) // (slot + 4 * rows_per_chunk))
    n_slots = max(_MULTIPLY_WARPS, _ADD_WARPS, n_slots)
    n_factors = -(-(capacity + max(capacity, n_slots * rows_per_chunk)) // 4) * 4
    # At the end, the ring's memory is used for the totals of the adding warps, and parts of the sum over blocks.
    at_end = 8 * max(features.width * _ADD_WARPS, 1024)
    return n_slots, n_factors, max(n_slots * slot, at_end) + 4 * n_factors + own
