"""How far two cores are from each other: the time of a cache line from one to the other and back.

Threads that work on one tree hand it to each other some hundred times. Cores that share a third-level cache take about
0.1 µs for there and back, others several times as long; a virtual machine may move between the two in seconds.
"""

from __future__ import annotations

import time

import numpy as np
from numba import njit

from rankwell.kernels.cpu.cache_lines import LINE_BYTES, zeros_in_lines
from rankwell.kernels.cpu.team import read_place, write_place
from rankwell.kernels.threads import kernel_threads, run_parts

_N_TIMES = 10_000
_OTHER_LINE = LINE_BYTES // 8


@njit(nogil=True)
def _hand_over(worker: int, places: np.ndarray, n_times: int) -> None:
    """Worker 0 writes each number to its line after it has read the one before from the line of worker 1."""
    for number in range(1, n_times + 1):
        if worker == 0:
            write_place(places, 0, number)
            while read_place(places, _OTHER_LINE) < number:
                pass
        else:
            while read_place(places, 0) < number:
                pass
            write_place(places, _OTHER_LINE, number)


def round_trip_seconds() -> float:
    """The seconds of a cache line there and back between two threads."""
    places = zeros_in_lines((2 * _OTHER_LINE,), np.int64)
    places[_OTHER_LINE] = 1
    _hand_over(0, places, 1)
    places[:] = 0
    with kernel_threads(2) as n_threads:
        if n_threads < 2:
            return float("nan")
        started = time.perf_counter()
        run_parts(lambda worker: _hand_over(worker, places, _N_TIMES), 2)
        return (time.perf_counter() - started) / _N_TIMES
