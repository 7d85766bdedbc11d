"""Launches of `extraction.cu`: from one block of bytes (`packing.py`) to columns of features.

The block contains only relative offsets, so launches can be recorded and replayed for other batches. `size` is the
number of candidates that a launch has threads for; the block's header holds their actual number.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.extraction.rules import FeatureColumns

_THREADS = 128


def extract_features(
    packed: Any, size: int, columns: FeatureColumns, scratch: tuple[Any, Any] | None, features: Any
) -> None:
    """Fill the wanted columns of `features`, float32 (n_features, stride), for up to `size` candidates.

    packed : the result of `packing.pack`, on the device; columns : on the device too
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
