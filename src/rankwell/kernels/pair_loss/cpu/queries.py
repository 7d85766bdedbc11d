"""The queries of a pair loss on the CPU, in chunks, and the scratch that a pass over them needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.vectors import TOTALS
from rankwell.kernels.pair_loss.contract import PairData

# More chunks balance better; each costs one row of n_features numbers, which must be far less than X itself.
_MOST_CHUNKS = 256
_ROWS_PER_CHUNK = 512
_PARTIAL_SUMS_BYTES = 2**26


class Queries(NamedTuple):
    """The data that does not change during training.

    query_ptr : int64 (n_queries + 1,)
    chunk_ptr : int64 (n_chunks + 1,), the queries of each chunk
    n_levels : int32 (n_queries,), the label levels in each query; a query with one has no pairs and is not read
    levels : int32 (n_docs,), the dense rank of each label within its query
    query_weights : float64 (n_queries,)
    document_weights : float64 (n_docs,), or (0,) if all are 1
    """

    query_ptr: np.ndarray
    chunk_ptr: np.ndarray
    n_levels: np.ndarray
    levels: np.ndarray
    query_weights: np.ndarray
    document_weights: np.ndarray


class Scratch(NamedTuple):
    """One thread's scratch.

    products, values, scores, ones, above, below : float64, as long as the longest query
    merged : int32, as long as the longest query
    means : float64 (n_features,)
    """

    products: np.ndarray
    values: np.ndarray
    scores: np.ndarray
    ones: np.ndarray
    above: np.ndarray
    below: np.ndarray
    merged: np.ndarray
    means: np.ndarray


class DirectSums(NamedTuple):
    """Scratch of the method `direct`: tally float64 (most levels + 1,), totals float64 (longest query + 1, TOTALS)."""

    tally: np.ndarray
    totals: np.ndarray


class TreeSums(NamedTuple):
    """Scratch of the method `order-statistic`: tree float64 (most levels + 1,)."""

    tree: np.ndarray


def queries_of(data: PairData) -> Queries:
    """The queries of a pair loss's data, divided into chunks."""
    return Queries(
        query_ptr=data.query_ptr,
        chunk_ptr=divide_queries(data.query_ptr, int(data.features.shape[1])),
        n_levels=data.n_levels,
        levels=data.levels,
        query_weights=np.ones(len(data.n_levels)) if data.query_weights is None else data.query_weights,
        document_weights=np.empty(0) if data.document_weights is None else data.document_weights,
    )


def make_scratch(queries: Queries, method: str, n_features: int) -> tuple[Scratch, DirectSums | TreeSums]:
    """Scratch for any of the queries; the type of its second part selects the method of the sums."""
    longest, most_levels = int(np.diff(queries.query_ptr).max(initial=0)), int(queries.n_levels.max(initial=0))
    scratch = Scratch._make((*np.empty((6, longest)), np.empty(longest, dtype=np.int32), np.empty(n_features)))
    if method == "order-statistic":
        return scratch, TreeSums(np.empty(most_levels + 1))
    return scratch, DirectSums(np.empty(most_levels + 1), np.empty((longest + 1, TOTALS)))


def divide_queries(query_ptr: np.ndarray, n_features: int) -> np.ndarray:
    """Offsets of chunks of queries with about as many rows each: they depend on the data only, not on threads.

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
