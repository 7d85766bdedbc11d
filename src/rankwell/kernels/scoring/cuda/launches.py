"""Launches of `scoring.cu`: input and output are arrays on the device, and no launch waits.

An array of inputs or outputs is float64 (n, stride): document d of input i at [i, d]; `stride` is the number of
documents rounded up to 32. The caller owns every array.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rankwell.errors import DeviceError
from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.scoring.contract import MOST_CUDA_INPUTS
from rankwell.kernels.scoring.declarations import DENSE_UNITS, TILE, TILE_DOCUMENTS, TILE_UNITS, TILE_WARPS
from rankwell.kernels.scoring.rules import NEARLY_ZERO, SUM_RUN

_THREADS = 256
# With this many sums there are enough blocks of `dense_tiles` for a large device; with fewer, `dense` is faster.
_MANY_SUMS = 2**17
# Shared memory that a block of `walk_trees` may use for bins and for words: if the device has that much, two or more
# blocks still fit on a processor.
_MOST_SHARED_BINS = 64 * 1024
_MOST_SHARED_WORDS = 48 * 1024
# Blocks of `walk_trees` that run on a processor at the same time: further blocks would wait.
_BLOCKS_A_PROCESSOR = 4


def document_stride(n_docs: int) -> int:
    """Documents rounded up to whole warps."""
    return (n_docs + 31) // 32 * 32


def transpose(rows: Any, n_docs: int, columns: Any) -> None:
    """float32 (n_docs, n_features) to float32 (n_features, stride)."""
    n_features, stride = columns.shape
    grid = (_blocks(n_docs, TILE), _blocks(n_features, TILE))
    _launch("transpose", grid, (TILE, 8), (rows, _long(n_docs), np.int32(n_features), _long(stride), columns))


def bin_columns(columns: Any, n_docs: int, tested: tuple[Any, ...], bins: Any) -> None:
    """Bins of the tested columns (`TreeLayout.columns`, on the device): uint32 (n_bin_words, stride)."""
    n_tested = len(tested[0])
    if n_tested:
        arguments = (columns, _long(n_docs), _long(columns.shape[1]), *tested, NEARLY_ZERO, bins)
        _launch("bin_columns", (_blocks(n_docs, _THREADS), n_tested), (_THREADS,), arguments)


def walk_trees(
    bins: Any, n_docs: int, trees: tuple[Any, ...], n_trees: int, largest_run: int, *, write_values: bool, out: Any
) -> None:
    """Leaf values (n_trees, stride), or without `write_values` the sums of runs (n_runs, stride).

    trees : (word_ptr, words, word_value, child_shift, child_mask); largest_run : words of the largest run of trees
    """
    word_ptr, words, word_value, child_shift, child_mask = trees
    n_bin_words, stride = bins.shape
    shared_bins = 4 * n_bin_words * _THREADS
    shared_words = largest_run * words.dtype.itemsize
    share_bins = shared_bins <= min(_MOST_SHARED_BINS, _shared_memory())
    left = _shared_memory() - shared_bins * share_bins
    share_words = shared_words <= min(_MOST_SHARED_WORDS, left)
    n_runs = (n_trees + SUM_RUN - 1) // SUM_RUN
    documents = _blocks(n_docs, _THREADS)
    grid = (documents, max(1, min(n_runs, _BLOCKS_A_PROCESSOR * _processors() // documents)))
    arguments = (
        bins,
        _long(n_docs),
        _long(stride),
        np.int32(n_bin_words),
        word_ptr,
        words,
        word_value,
        np.int32(child_shift),
        np.uint32(child_mask),
        np.int32(n_trees),
        np.int32(share_bins),
        np.int32(share_words),
        np.int32(write_values),
        out,
    )
    shared = shared_bins * share_bins + shared_words * share_words
    _launch("walk_trees", grid, (_THREADS,), arguments, shared=shared, wide_words=words.dtype == np.uint64)


def line_inputs(columns: Any, n_docs: int, arrays: tuple[Any, ...], out: Any, *, logarithmic: bool) -> None:
    """Linear or log-linear inputs; arrays : (feature, scale, offset, missing)."""
    arguments = (columns, _long(n_docs), _long(columns.shape[1]), *arrays, np.int32(logarithmic), out)
    _launch("line_inputs", (_blocks(n_docs, _THREADS), len(out)), (_THREADS,), arguments)


def bucket_inputs(columns: Any, n_docs: int, arrays: tuple[Any, ...], out: Any) -> None:
    """Bucket inputs; arrays : (feature, edge_ptr, edges, values, missing)."""
    arguments = (columns, _long(n_docs), _long(columns.shape[1]), *arrays, out)
    _launch("bucket_inputs", (_blocks(n_docs, _THREADS), len(out)), (_THREADS,), arguments)


def expression_inputs(columns: Any, n_docs: int, arrays: tuple[Any, ...], out: Any) -> None:
    """Expression inputs; arrays : (program_ptr, operation, operand, constant_ptr, constants, missing)."""
    arguments = (columns, _long(n_docs), _long(columns.shape[1]), *arrays, out)
    _launch("expression_inputs", (_blocks(n_docs, _THREADS), len(out)), (_THREADS,), arguments)


def dense(values: Any, n_docs: int, weights: Any, bias: Any, activation: int, out: Any) -> None:
    """activation(weightsᵀ · values + bias): (n_in, stride) to (n_out, stride).

    weights : (n_in, n_out), the columns padded with zeros to a multiple of `DENSE_UNITS`; bias : (n_out,)
    """
    (n_in, n_padded), n_out = weights.shape, len(bias)
    arguments = (
        values,
        _long(n_docs),
        _long(values.shape[1]),
        np.int32(n_in),
        np.int32(n_out),
        np.int32(n_padded),
        weights,
        bias,
        np.int32(activation),
        out,
    )
    if n_out >= TILE_UNITS and n_docs * n_out >= _MANY_SUMS:
        grid = (_blocks(n_docs, TILE_DOCUMENTS), _blocks(n_out, TILE_UNITS))
        _launch("dense_tiles", grid, (32, TILE_WARPS), arguments)
    else:
        _launch("dense", (_blocks(n_docs, 32), _blocks(n_out, DENSE_UNITS)), (32, 8), arguments)


def sum_runs(values: Any, n_docs: int, out: Any) -> None:
    """The sums of runs of inputs: (n_in, stride) to (n_runs, stride)."""
    n_in, stride = values.shape
    arguments = (values, _long(n_docs), _long(stride), np.int32(n_in), out)
    _launch("sum_runs", (_blocks(n_docs, _THREADS), max(1, len(out))), (_THREADS,), arguments)


def add_runs(runs: Any, n_docs: int, n_runs: int, divisor: float, bias: float, out: Any) -> None:
    """The sums of runs added up, divided and shifted: (n_runs, stride) to (1, stride)."""
    arguments = (
        runs,
        _long(n_docs),
        _long(runs.shape[1]),
        np.int32(n_runs),
        np.float64(divisor),
        np.float64(bias),
        out,
    )
    _launch("add_runs", (_blocks(n_docs, _THREADS),), (_THREADS,), arguments)


def _launch(
    name: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    arguments: tuple[Any, ...],
    *,
    shared: int = 0,
    wide_words: bool = False,
) -> None:
    if len(grid) > 1 and grid[1] > MOST_CUDA_INPUTS:
        raise DeviceError(
            f"the ranker has {grid[1]} inputs or columns of one kind, a CUDA device takes {MOST_CUDA_INPUTS}. "
            "Evaluate it with device='cpu'."
        )
    kernel = _kernel(name, wide_words)
    if shared > 48 * 1024:
        kernel.max_dynamic_shared_size_bytes = shared
    kernel(grid, block, arguments, shared_mem=shared)


def definitions(*, wide_words: bool) -> tuple[str, ...]:
    """The macros of `scoring.cu`."""
    return ("WORD=unsigned long long",) if wide_words else ("WORD=unsigned int",)


@cache
def _kernel(name: str, wide_words: bool) -> Any:
    return cuda_module("scoring/scoring", *definitions(wide_words=wide_words)).get_function(name)


@cache
def _processors() -> int:
    import cupy

    return int(cupy.cuda.Device().attributes["MultiProcessorCount"])


@cache
def _shared_memory() -> int:
    """Bytes of shared memory that a block may use: 64 KiB on the smallest devices."""
    import cupy

    return int(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])


def _blocks(count: int, size: int) -> int:
    return (count + size - 1) // size


def _long(value: int) -> np.int64:
    return np.int64(value)
