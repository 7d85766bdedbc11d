"""Gradients of losses on a CUDA device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.trees.cuda.score_noise import ScoreNoise
from rankwell.kernels.trees.declarations import (
    BLOCK_DOCUMENTS,
    LONG_THREADS,
    QUERIES,
    QUERY_THREADS,
)
from rankwell.kernels.trees.losses import PAIRWISE, XENDCG, JudgedQueries, RankingLoss, distance_weights

# Arrays of a query begin at multiples of 16 bytes.
_PADDING = 4
_WARPS = QUERY_THREADS // 32


class QueryPlaces(NamedTuple):
    """Which block works on which queries.

    order, offset : int32, queries and where each of them is in its block's memory
    block_ptr : int32 (n_blocks + 1,), the queries of each block in `order`
    length : documents of all blocks (long queries) or of one block, with padding
    """

    order: np.ndarray
    offset: np.ndarray
    block_ptr: np.ndarray
    length: int


def place_queries(query_ptr: np.ndarray) -> tuple[QueryPlaces, QueryPlaces]:
    """Short queries, many a block, and long ones, a block each; both the longest first, so that blocks end together.

    Each warp of a block has as many of the short queries, all about as long, so that none waits for the others.
    """
    sizes = np.diff(query_ptr)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    padded = -(-sizes[order] // _PADDING) * _PADDING
    n_long = int((padded > BLOCK_DOCUMENTS).sum())
    long_offset = np.cumsum(padded[:n_long]) - padded[:n_long]
    block_ptr, offsets = _fill_blocks(padded[n_long:].tolist())
    short = (order[n_long:], np.array(offsets), np.array(block_ptr))
    long = (order[:n_long], long_offset, np.arange(n_long + 1))
    return _placed(short, BLOCK_DOCUMENTS), _placed(long, int(padded[:n_long].sum()))


def _fill_blocks(sizes: list[int]) -> tuple[list[int], list[int]]:
    """Where the queries of each block begin and end, and where each query is in its block's memory."""
    block_ptr, used = [0], 0
    offsets: list[int] = []
    for first in range(0, len(sizes), _WARPS):
        turn = sizes[first : first + _WARPS]
        for together in [turn] if sum(turn) <= BLOCK_DOCUMENTS else [[size] for size in turn]:
            if used + sum(together) > BLOCK_DOCUMENTS:
                block_ptr.append(len(offsets))
                used = 0
            for size in together:
                offsets.append(used)
                used += size
    return block_ptr + [len(offsets)] * bool(offsets), offsets


def _placed(arrays: tuple[np.ndarray, ...], length: int) -> QueryPlaces:
    order, offset, block_ptr = (array.astype(np.int32) for array in arrays)
    return QueryPlaces(order, offset, block_ptr, length)


def pack_queries(
    loss: RankingLoss, queries: JudgedQueries, places: QueryPlaces, placed: dict[str, Any], put: Any
) -> tuple[np.ndarray, dict[str, Any]]:
    """The struct `Queries`, and the arrays that it points to.

    placed : the arrays `scores`, `gradient` and `hessian`; put : copies an array to the device
    """
    arrays = {
        **placed,
        "query_ptr": put(queries.query_ptr.astype(np.int32)),
        "gain": put(queries.gain),
        "inverse": put(queries.inverse),
        "discount": put(queries.discount),
        "by_distance": put(distance_weights(loss, len(queries.discount), 0)),
        "weight": put(queries.weight if len(queries.weight) else np.zeros(1, np.float32)),
        "order": put(places.order),
        "offset": put(places.offset),
        "block_ptr": put(places.block_ptr),
    }
    packed = QUERIES.pack(
        **arrays,
        seed=loss.seed,
        tree=0,
        sigma=loss.sigma,
        sigma_32=np.float32(loss.sigma),
        truncation=min(loss.truncation, 2**31 - 1),
        normalize=loss.normalize,
        has_weights=int(len(queries.weight) > 0),
    )
    return packed, arrays


class QueryKernels(NamedTuple):
    """What fills the gradients of a loss.

    source : the `.cu` file; definitions : its macros
    short_bytes, long_bytes : of memory for each document of a short and of a long query
    """

    source: str
    definitions: tuple[str, ...]
    short_bytes: int
    long_bytes: int


def kernels_of(loss: RankingLoss) -> QueryKernels:
    """Those of pairs, or of xendcg."""
    if loss.kind == XENDCG:
        return QueryKernels("trees/cross_entropy", (), 16, 16)
    # Losses by places have one number more.
    return QueryKernels("trees/lambdas", (f"KIND={loss.kind}",), 28 if loss.kind <= PAIRWISE else 32, 36)


def ranks_with_noise(loss: RankingLoss) -> bool:
    """Whether documents are ranked by other scores than those of the trees."""
    return loss.kind != XENDCG and loss.noise > 0.0


def query_bytes(loss: RankingLoss, queries: JudgedQueries) -> int:
    """Bytes of device memory that the queries take."""
    _, long = place_queries(queries.query_ptr)
    of_document = 20 if ranks_with_noise(loss) else 16
    of_long = kernels_of(loss).long_bytes * long.length
    return int(of_document * len(queries.gain) + 24 * len(queries.inverse) + of_long)


class QueryGradients:
    """Fills `gradient` and `hessian` from `scores`, all CuPy float32 (n_docs,)."""

    def __init__(self, loss: RankingLoss, queries: JudgedQueries, placed: dict[str, Any]) -> None:
        import cupy

        self._noise = ScoreNoise(loss, placed["scores"]) if ranks_with_noise(loss) else None
        if self._noise is not None:
            placed = {**placed, "scores": self._noise.noisy}
        kernels = kernels_of(loss)
        module = cuda_module(kernels.source, *kernels.definitions, fuse=False)
        self._short_kernel = module.get_function("short_query_gradients")
        self._long_kernel = module.get_function("long_query_gradients")
        self._short, self._long = place_queries(queries.query_ptr)
        self._short_struct, self._held = pack_queries(loss, queries, self._short, placed, cupy.asarray)
        self._long_struct, self._also_held = pack_queries(loss, queries, self._long, placed, cupy.asarray)
        # Of the memory that a multiprocessor divides between cache and shared memory, as much as there is.
        self._short_kernel.preferred_shared_memory_carveout = 100
        self._shared = kernels.short_bytes * BLOCK_DOCUMENTS
        self._beside = cupy.cuda.Stream(non_blocking=True)
        self._begun, self._done = (cupy.cuda.Event(disable_timing=True) for _ in range(2))
        self._table = cupy.empty(max(1, kernels.long_bytes * self._long.length), dtype=np.uint8)

    def launch(self, tree: int) -> None:
        """Those that tree `tree` is grown on. On the current stream; long queries on another one at the same time."""
        import cupy

        stream = cupy.cuda.get_current_stream()
        n_long, n_blocks = len(self._long.order), len(self._short.block_ptr) - 1
        self._short_struct["tree"] = self._long_struct["tree"] = tree
        if self._noise is not None:
            self._noise.launch(tree)
        if n_long:
            self._begun.record(stream)
            self._beside.wait_event(self._begun)
            with self._beside:
                arguments = (self._long_struct, self._table, np.int32(self._long.length))
                self._long_kernel((n_long,), (LONG_THREADS,), arguments)
            self._done.record(self._beside)
        if n_blocks:
            self._short_kernel((n_blocks,), (QUERY_THREADS,), (self._short_struct,), shared_mem=self._shared)
        if n_long:
            stream.wait_event(self._done)
