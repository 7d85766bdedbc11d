"""The layout of a RankSVM problem on a CUDA device: the queries' workspaces and ranks, and the memory of all arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rankwell.kernels.device_report import DeviceReport
from rankwell.kernels.pair_loss.contract import PairData
from rankwell.kernels.pair_loss.method import SumCosts, cheaper_method

# Scans over a query in the kernels: one per 5 levels, or one per bit of a level.
SUM_COSTS = SumCosts(few_levels=5, few=1.0, fixed=0.0, per_level=0.2, tree_fixed=0.0, tree_per_bit=1.0)
# Blocks per multiprocessor that sum rows; each has its own partial sum.
SUM_BLOCKS_PER_PROCESSOR = 4
# Static shared memory of the kernels, in addition to what is requested at launch.
STATIC_BYTES = 3072
# Documents of a query whose workspace is in shared memory, if it fits: longer ones are rare, and more would allow fewer
# blocks.
_MOST_SHARED_DOCS = {"direct": 512, "order-statistic": 1024}


@dataclass(frozen=True)
class QueryLayout:
    """Where the data of each query is.

    capacity : documents up to which a query's workspace is in shared memory; longer ones have it in `scratch`
    scratch_ptr : int64 (n_queries,), the first double of its workspace, -1 if it is in shared memory
    n_scratch : doubles of all workspaces
    rank_ptr : int64 (n_queries,), the first of its ranks (order-statistic)
    n_ranks : int32 numbers of all queries
    """

    capacity: int
    scratch_ptr: np.ndarray
    n_scratch: int
    rank_ptr: np.ndarray
    n_ranks: int


def lay_out_queries(sizes: np.ndarray, n_levels: np.ndarray, method: str, shared_memory: int) -> QueryLayout:
    """sizes : documents of each query; method : one of `METHODS`; shared_memory : bytes that a block may use"""
    room = ((shared_memory - STATIC_BYTES) // 8 - 7) // 9
    capacity = min(int(sizes.max(initial=1)), _MOST_SHARED_DOCS[method], room)
    needed = np.where(sizes > capacity, workspace_doubles(sizes), 0)
    offsets = np.concatenate(([0], np.cumsum(needed)))
    bits = np.ceil(np.log2(np.maximum(n_levels, 1))).astype(np.int64)
    ranks = bits * (sizes + 1) if method == "order-statistic" else np.zeros(len(sizes), dtype=np.int64)
    rank_offsets = np.concatenate(([0], np.cumsum(ranks)))
    return QueryLayout(
        capacity=capacity,
        scratch_ptr=np.where(needed > 0, offsets[:-1], -1).astype(np.int64),
        n_scratch=int(offsets[-1]),
        rank_ptr=rank_offsets[:-1].astype(np.int64),
        n_ranks=int(rank_offsets[-1]),
    )


def workspace_doubles(n_docs: Any) -> Any:
    """The size of a query's workspace, an even number: see `workspace_at` in `pairs.cuh`."""
    return 9 * n_docs + 6 + (n_docs & 1)


def device_bytes(data: PairData, report: DeviceReport, *, method: str = "auto", **_: Any) -> int:
    """Device memory of a training run: the arrays of `CudaPairLoss`, and the largest temporary ones."""
    (n_docs, n_features), sizes = data.features.shape, np.diff(data.query_ptr)
    chosen = cheaper_method(sizes, data.n_levels, SUM_COSTS) if method == "auto" else method
    layout = lay_out_queries(sizes, data.n_levels, chosen, report.shared_memory)
    width = -(-n_features // 4) * 4
    if sparse.issparse(data.features):
        features = 16 * data.features.nnz + 8 * (n_docs + n_features + 2)
    else:
        features = 4 * n_docs * width
    # Per document: its level, its place and degree in two supports, order, product, factor.
    of_documents = n_docs * (4 + 2 * (16 + 8) + 4 + 8 + 8 + (0 if data.document_weights is None else 8))
    of_queries = 96 * len(sizes) + 8 * layout.n_scratch + 2 * 4 * layout.n_ranks
    # Vectors of the solver, and partial sums of blocks; a sum over all rows first needs a factor for each row.
    passing = 8 * width * (16 + (SUM_BLOCKS_PER_PROCESSOR + 1) * report.processors) + 8 * n_docs
    return features + of_documents + of_queries + passing
