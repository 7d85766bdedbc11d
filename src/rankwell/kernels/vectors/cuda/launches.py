"""Launches of `products.cu`. The vectors of a segment are copied to the device once, and stay with the segment."""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import finalize

import numpy as np

from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.vectors.rules import LANES, N_PRODUCTS, VectorPlace

_THREADS = 128
# By the address of an array on the host: its copy on the device.
_copies: dict[int, Any] = {}


def vector_products(rows: np.ndarray, docs: np.ndarray, place: VectorPlace, query: np.ndarray) -> np.ndarray:
    """See `rankwell.kernels.vectors.cpu.products.vector_products`; the same bits."""
    import cupy

    values = cupy.empty((len(docs), N_PRODUCTS), np.float32)
    if len(docs):
        arguments = (
            _on_device(rows), np.int64(rows.shape[1]), cupy.asarray(docs), np.int32(len(docs)), np.int32(place.start),
            np.int32(place.dimension), np.int32(place.is_int8), cupy.asarray(query), values,
        )  # fmt: skip
        n_blocks = -(-len(docs) * LANES // _THREADS)
        _module().get_function("vector_products")((n_blocks,), (_THREADS,), arguments)
    on_host: np.ndarray = cupy.asnumpy(values)
    return on_host


def _on_device(rows: np.ndarray) -> Any:
    """The copy of rows on the device, which is freed when they are."""
    import cupy

    key = id(rows)
    if key not in _copies:
        _copies[key] = cupy.asarray(rows.view(np.float32))
        finalize(rows, _copies.pop, key, None)
    return _copies[key]


@cache
def _module() -> Any:
    return cuda_module("vectors/products", fuse=False)
