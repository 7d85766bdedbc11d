"""How many threads the CPU kernels use: set for one call, always restored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rankwell.errors import ParameterError


def available_cores() -> int:
    """The cores this process may run on (not all that the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def kernel_threads(n_jobs: int | None = None) -> Iterator[int]:
    """Run Numba kernels on `n_jobs` threads inside the block: None or -1 is every core, as in scikit-learn."""
    import numba

    if n_jobs is not None and (n_jobs == 0 or n_jobs < -1):
        raise ParameterError(f"n_jobs must be a number of threads, or -1 or None for every core, got {n_jobs}.")
    most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    wanted = most if n_jobs in (None, -1) else min(int(n_jobs), most)
    before = numba.get_num_threads()
    numba.set_num_threads(wanted)
    try:
        yield wanted
    finally:
        numba.set_num_threads(before)
