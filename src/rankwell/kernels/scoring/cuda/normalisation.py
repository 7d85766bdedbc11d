"""Launches of `normalisation.cu`: columns of features, float32 (n_features, stride), are normalised in place."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rankwell.kernels.cuda.module import cuda_module

_THREADS = 256
_WARP = 32


def standardise(columns: Any, n_docs: int, mean: Any, scale: Any) -> None:
    """(x − mean) / scale; mean, scale : float64 (n_features,)."""
    arguments = (np.int64(n_docs), np.int64(columns.shape[1]), mean, scale, columns)
    _kernel("standardise")((-(-n_docs // _THREADS), len(columns)), (_THREADS,), arguments)


def scale_queries(columns: Any, query_ptr: Any, n_queries: Any, most_queries: int, *, fill_missing: bool) -> None:
    """(x − min) / (max − min) over each query's documents.

    query_ptr : int64, on the device; n_queries : int64 (1,), on the device, at most `most_queries`
    """
    arguments = (query_ptr, n_queries, np.int64(columns.shape[1]), np.int32(fill_missing), columns)
    _kernel("scale_queries")((most_queries, len(columns)), (_WARP,), arguments)


@cache
def _kernel(name: str) -> Any:
    return cuda_module("scoring/normalisation", fuse=False).get_function(name)
