"""The threads that CPU kernels run on: how many, and a pool that distributes the parts of a task.

Kernels release the interpreter lock, so Python threads run them in parallel. Threads without work wait without using
the processor; a forked child gets its own pool; and results do not depend on which thread takes which part.
"""

from __future__ import annotations

import contextvars
import itertools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from rankwell.errors import ParameterError

_LIMITS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
_RANGES_PER_THREAD = 8
_n_threads: contextvars.ContextVar[int | None] = contextvars.ContextVar("rankwell_threads", default=None)


@cache
def available_cores() -> int:
    """The number of cores this process may use: those it may run on, limited by its control group's quota.

    OMP_NUM_THREADS and NUMBA_NUM_THREADS, if they are set, are limits too.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _control_group_quota()
    limits = [cores] if quota is None else [cores, math.ceil(quota)]
    limits += [int(value) for value in map(os.environ.get, _LIMITS) if value is not None and value.isdigit()]
    return max(1, min(limits))


def _control_group_quota(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """The CPU quota of a container's control group, in cores; None if there is no limit."""
    try:
        if (root / "cpu.max").exists():
            quota, period = (root / "cpu.max").read_text().split()[:2]
        else:
            quota = (root / "cpu" / "cpu.cfs_quota_us").read_text()
            period = (root / "cpu" / "cpu.cfs_period_us").read_text()
        return float(quota) / float(period) if float(quota) > 0 else None
    except (OSError, ValueError):  # no control groups, or "max"
        return None


@contextmanager
def kernel_threads(n_jobs: int | None = None) -> Iterator[int]:
    """Run kernels on `n_jobs` threads inside the block: None or -1 is every core, as in scikit-learn."""
    if n_jobs is not None and (n_jobs == 0 or n_jobs < -1):
        raise ParameterError(
            f"must be a number of threads, or -1 or None for every core, got {n_jobs}.", parameter="n_jobs"
        )
    wanted = available_cores() if n_jobs in (None, -1) else min(int(n_jobs), available_cores())
    token = _n_threads.set(wanted)
    try:
        yield wanted
    finally:
        _n_threads.reset(token)


def current_threads() -> int:
    """The number of threads that `kernel_threads` set, or that of the available cores."""
    return _n_threads.get() or available_cores()


def run_parts(task: Callable[[int], object], n_parts: int) -> None:
    """Call ``task(part)`` for every part below `n_parts`, on as many threads as `kernel_threads` set.

    The calling thread takes parts like the others. If a task raises an exception, no further parts are started, and
    the exception is raised here.
    """
    n_threads = min(current_threads(), n_parts)
    if n_threads <= 1:
        for part in range(n_parts):
            task(part)
        return
    parts = itertools.count()

    def work() -> None:
        nonlocal parts
        try:
            while (part := next(parts)) < n_parts:
                task(part)
        except BaseException:
            parts = itertools.count(n_parts)
            raise

    others: list[Future[None]] = [_pool().submit(work) for _ in range(n_threads - 1)]
    try:
        work()
    finally:
        # Calls that no thread has started are cancelled, so that a task may itself call `run_parts` without a deadlock.
        wait([future for future in others if not future.cancel()])
    for future in others:
        if not future.cancelled():
            future.result()


def run_ranges(
    task: Callable[[int, int], object],
    n_items: int,
    ranges_per_thread: int = _RANGES_PER_THREAD,
    least_items: int = 1,
) -> None:
    """Call ``task(first, last)`` for ranges first ≤ item < last that cover all items once, by `run_parts`.

    On one thread that is one call; else there are several ranges per thread, to balance ranges of unequal work. Each
    range takes the interpreter lock: a task of a few milliseconds is faster with one or two per thread. A range has at
    least `least_items` items, unless there are fewer: waking a thread takes about 30 µs, and much longer on a busy
    machine, so that a range should take a fifth of a millisecond or more.
    """
    n_threads = current_threads()
    most_ranges = min(n_items, max(1, n_items // max(1, least_items)))
    n_ranges = min(most_ranges, ranges_per_thread * n_threads if n_threads > 1 else 1)
    run_parts(lambda part: task(part * n_items // n_ranges, (part + 1) * n_items // n_ranges), n_ranges)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, available_cores() - 1), thread_name_prefix="rankwell")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
