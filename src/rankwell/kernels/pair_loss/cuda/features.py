"""Features on the device: products of all rows with a vector, and sums of rows (`rows.cu`).

Dense features are rows of groups of 4, the last one padded with zeros. Sparse ones are kept twice, by rows (CSR) and by
columns (CSC): sums of sparse rows would need atomic additions, whose order, and so whose result, changes from run to
run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.cuda.upload import upload_rows
from rankwell.kernels.pair_loss.cuda.layout import SUM_BLOCKS_PER_PROCESSOR

_THREADS = 256
_BLOCKS_PER_PROCESSOR_BY_WARP = 16


def device_features(features: Any) -> DenseFeatures | SparseFeatures:
    """Copy features, dense or CSR, from the host to the device."""
    return SparseFeatures(features) if sparse.issparse(features) else DenseFeatures(features)


class DenseFeatures:
    """Rows of float32 on the device.

    Attributes
    ----------
    rows : cupy float32 (n_docs, 4·n_groups)
    width : int
        The length of vectors here: 4·n_groups, padded with zeros.
    """

    def __init__(self, features: np.ndarray) -> None:
        self.n_docs = features.shape[0]
        self.n_groups = max(1, -(-features.shape[1] // 4))
        self.width = 4 * self.n_groups
        self.rows = upload_rows(features, self.width)
        self._module = cuda_module("pair_loss/rows")
        self._n_processors = _n_processors()

    def products(self, vector: Any, products: Any) -> None:
        """products[row] = x·vector."""
        self._module.get_function("row_products")(
            (self._n_processors * _BLOCKS_PER_PROCESSOR_BY_WARP,),
            (_THREADS,),
            (self.rows, vector, np.int64(self.n_docs), np.int32(self.n_groups), products),
        )

    def sum_rows(self, factors: Any) -> Any:
        """Σ factors[row]·x, cupy float64 (width,)."""
        partial, grid = self._partial()
        self._module.get_function("add_rows")(
            grid,
            (_THREADS,),
            (self.rows, factors, np.int64(self.n_docs), np.int32(self.n_groups), partial),
            shared_mem=32 * _THREADS,
        )
        return partial.sum(axis=0)

    def sum_squares(self, factors: Any, query_ptr: Any, host_query_ptr: np.ndarray) -> Any:
        """The curvature of each feature (see `kernels.pair_loss.cpu.rows.add_curvature`), cupy float64 (width,)."""
        import cupy

        partial, grid = self._partial()
        block_ptr = cupy.asarray(share_queries(host_query_ptr, grid[0]))
        self._module.get_function("add_curvature")(
            grid,
            (_THREADS,),
            (self.rows, factors, query_ptr, block_ptr, np.int32(self.n_groups), partial),
            shared_mem=32 * _THREADS,
        )
        return partial.sum(axis=0)

    def _partial(self) -> tuple[Any, tuple[int, int]]:
        """An array for one sum per block, and the grid of blocks that fills it."""
        import cupy

        n_blocks = self._n_processors * SUM_BLOCKS_PER_PROCESSOR
        return cupy.empty((n_blocks, self.width)), (n_blocks, -(-self.n_groups // _THREADS))


class SparseFeatures:
    """CSR and CSC of float32 on the device; the same methods as `DenseFeatures`."""

    def __init__(self, features: Any) -> None:
        import cupy

        self.n_docs, self.width = features.shape
        by_column = features.tocsc()
        self._by_row, self._by_column = (
            (cupy.asarray(part.data), cupy.asarray(part.indices), cupy.asarray(part.indptr.astype(np.int64)))
            for part in (features, by_column)
        )
        self._module = cuda_module("pair_loss/rows")
        self._grid = (_n_processors() * _BLOCKS_PER_PROCESSOR_BY_WARP,)

    def products(self, vector: Any, products: Any) -> None:
        self._module.get_function("sparse_row_products")(
            self._grid, (_THREADS,), (*self._by_row, vector, np.int64(self.n_docs), products)
        )

    def sum_rows(self, factors: Any) -> Any:
        return self._sum_columns(factors, squared=False)

    def sum_squares(self, factors: Any, query_ptr: Any, host_query_ptr: np.ndarray) -> Any:
        return self._sum_columns(factors, squared=True)

    def _sum_columns(self, factors: Any, *, squared: bool) -> Any:
        import cupy

        total = cupy.empty(self.width)
        self._module.get_function("sparse_column_sums")(
            self._grid, (_THREADS,), (*self._by_column, factors, np.int32(self.width), np.int32(squared), total)
        )
        return total


def share_queries(query_ptr: np.ndarray, n_blocks: int) -> np.ndarray:
    """Offsets of the queries of each block, with about as many rows each: int32 (n_blocks + 1,)."""
    goals = np.arange(1, n_blocks) * (int(query_ptr[-1]) / n_blocks)
    inner = np.searchsorted(query_ptr, goals)
    # The offset after the target, or the one before if that is nearer.
    inner -= (inner > 0) & (goals - query_ptr[inner - 1] < query_ptr[inner] - goals)
    return np.concatenate(([0], inner, [len(query_ptr) - 1])).astype(np.int32)


def _n_processors() -> int:
    import cupy

    return int(cupy.cuda.Device().attributes["MultiProcessorCount"])
