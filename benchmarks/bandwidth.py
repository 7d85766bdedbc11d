"""How fast this machine's cores read memory: the sum of a large array, the upper bound of every kernel."""

from __future__ import annotations

import time

import numpy as np
from numba import get_num_threads, njit, prange


@njit(cache=True, nogil=True)
def _sum(values: np.ndarray) -> np.uint64:
    # Integers, because their sum may be reordered: the compiler vectorises it, and only reading remains. A loop
    # over the elements, because one over index arithmetic is not vectorised and takes several times as long.
    total = np.uint64(0)
    for value in values:
        total += value
    return total


@njit(cache=True, nogil=True, parallel=True)
def _sum_parts(values: np.ndarray, n_parts: int) -> np.uint64:
    sums = np.zeros(n_parts, dtype=np.uint64)
    for part in prange(n_parts):
        sums[part] = _sum(values[part * values.size // n_parts : (part + 1) * values.size // n_parts])
    return _sum(sums)


def read_bandwidth(n_bytes: int = 2**30, repeat: int = 7) -> float:
    """Gigabytes (1e9) per second that all cores together read from memory: the best of `repeat` sums.

    `n_bytes` must be far above the last-level cache for the figure to measure memory.
    """
    values = np.ones(n_bytes // 8, dtype=np.uint64)
    n_parts = 8 * get_num_threads()
    best = float("inf")
    for _ in range(1 + repeat):
        start = time.perf_counter()
        total = _sum_parts(values, n_parts)
        elapsed = time.perf_counter() - start
        if total != values.size:
            raise RuntimeError(f"the sum of {values.size} ones came out as {total}.")
        best = min(best, elapsed)
    return values.nbytes / best / 1e9
