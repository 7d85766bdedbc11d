"""Copies large arrays to the device at the speed of the bus.

A copy from ordinary memory goes through one small pinned buffer of the driver, on one thread. Here several threads copy
pieces into their own pinned buffers while earlier pieces are being transferred.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from rankwell.kernels.threads import available_cores

_PIECE_BYTES = 2**22
_MOST_WORKERS = 8
_HOST_TO_DEVICE = 1  # cudaMemcpyHostToDevice


def upload_rows(features: np.ndarray, n_columns: int) -> Any:
    """Features on the device, each row padded with zeros to `n_columns`.

    Parameters
    ----------
    features : float32 (n_docs, n_features), C order

    Returns
    -------
    cupy float32 (n_docs, n_columns)
    """
    import cupy

    n_docs, n_features = features.shape
    rows = (cupy.empty if n_columns == n_features else cupy.zeros)((n_docs, n_columns), dtype=np.float32)
    rows_per_piece = max(1, _PIECE_BYTES // (4 * max(n_features, 1)))
    n_pieces = -(-n_docs // rows_per_piece)
    n_workers = min(_MOST_WORKERS, available_cores(), n_pieces)
    if n_workers < 2:
        rows[:, :n_features] = cupy.asarray(features)
        return rows
    # Memory that other streams write must be allocated before they begin.
    cupy.cuda.get_current_stream().synchronize()
    device = cupy.cuda.Device()

    def work(worker: int) -> None:
        with device:
            buffer = cupy.cuda.alloc_pinned_memory(4 * rows_per_piece * n_features)
            pinned = np.frombuffer(buffer, np.float32, rows_per_piece * n_features).reshape(rows_per_piece, n_features)
            stream = cupy.cuda.Stream(non_blocking=True)
            for piece in range(worker, n_pieces, n_workers):
                start = piece * rows_per_piece
                part = features[start : start + rows_per_piece]
                np.copyto(pinned[: len(part)], part)
                cupy.cuda.runtime.memcpy2DAsync(
                    rows.data.ptr + 4 * n_columns * start,
                    4 * n_columns,
                    buffer.ptr,
                    4 * n_features,
                    4 * n_features,
                    len(part),
                    _HOST_TO_DEVICE,
                    stream.ptr,
                )
                stream.synchronize()

    with ThreadPoolExecutor(n_workers) as pool:
        for finished in [pool.submit(work, worker) for worker in range(n_workers)]:
            finished.result()
    return rows
