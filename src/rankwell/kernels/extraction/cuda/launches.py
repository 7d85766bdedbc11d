"""Packing of hits and launches of `extraction.cu`: from one block of bytes to columns of features.

A batch is copied as one block (`declarations.py`). It contains only relative offsets, so launches can be recorded and
replayed for other batches. `size` is the number of candidates that a launch has threads for; the block's header holds
their actual number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from rankwell.errors import DataError
from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.extraction.contract import MOST_CUDA_CANDIDATES, MOST_CUDA_HITS
from rankwell.kernels.extraction.declarations import HEADER_BYTES, HIT_ARRAYS
from rankwell.kernels.extraction.rules import FeatureColumns, HitArrays

_ALIGNMENT = 16
_THREADS = 128


def pack(hits: HitArrays, weights: Sequence[np.ndarray], room: Callable[[int], np.ndarray]) -> np.ndarray:
    """The hits and the weights of their terms as one block.

    Parameters
    ----------
    weights : the arrays of `rankwell.kernels.extraction.cpu.features.TermWeights`, float64
    room : callable
        Returns an array of the given number of bytes, uint8, to write to.

    Returns
    -------
    uint8 (n_bytes,), the array from `room`
    """
    n_candidates, n_hits = int(hits.query_ptr[-1]), len(hits.positions)
    if n_candidates > MOST_CUDA_CANDIDATES or n_hits > MOST_CUDA_HITS:
        raise DataError(
            f"a batch for a CUDA device may have {MOST_CUDA_CANDIDATES} candidates and {MOST_CUDA_HITS} hits, got "
            f"{n_candidates} and {n_hits}: pass fewer queries at a time."
        )
    parts = [(getattr(hits, name), np.dtype(dtype)) for name, dtype in HIT_ARRAYS.items()]
    parts += [(array, np.dtype(np.float64)) for array in weights]
    starts, end = [], HEADER_BYTES
    for array, dtype in parts:
        starts.append(end)
        end += -(-len(array) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    packed = room(end)
    header = (n_candidates, len(hits.query_ptr) - 1, *starts)
    packed[: 8 * len(header)].view(np.int64)[:] = header
    for (array, dtype), start in zip(parts, starts, strict=True):
        np.copyto(packed[start : start + len(array) * dtype.itemsize].view(dtype), array, casting="unsafe")
    return packed


def extract_features(
    packed: Any, size: int, columns: FeatureColumns, scratch: tuple[Any, Any] | None, features: Any
) -> None:
    """Fill the wanted columns of `features`, float32 (n_features, stride), for up to `size` candidates.

    packed : the result of `pack`, on the device; columns : on the device too
    scratch : uint32 (3 · cells,) and float64 (cells,) if a query has more than `FEW_TERMS` terms
    """
    n_streams, n_statics = len(columns.column_of) - 1, len(columns.static_column)
    places, gathered = scratch if scratch is not None else (np.intp(0), np.intp(0))
    arguments = (
        packed,
        np.int32(n_streams),
        np.int32(n_statics),
        *columns,
        places,
        gathered,
        np.int64(features.shape[1]),
        features,
    )
    _kernel("extract_features")((-(-size // _THREADS), n_streams + 2), (_THREADS,), arguments)


def store_expressions(values: Any, n_docs: int, columns: Any, features: Any) -> None:
    """Values of expressions, float64 (n_expressions, stride), to the columns int64 (n_expressions,) of `features`."""
    arguments = (values, columns, np.int64(n_docs), np.int64(features.shape[1]), features)
    _kernel("store_expressions")((-(-n_docs // _THREADS), len(columns)), (_THREADS,), arguments)


@cache
def _kernel(name: str) -> Any:
    return cuda_module("extraction/extraction", fuse=False).get_function(name)
