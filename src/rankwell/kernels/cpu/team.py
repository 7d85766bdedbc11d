"""A team of threads inside compiled code: one leads, the others help with its tasks.

A stage of the work is a number of tasks of one kind. The leader publishes it as a *ticket*, one int64: the kind, and
the first and the last + 1 of the tasks that are left. A thread that raises the first, or lowers the last, has taken
that task: every second thread takes the last one. So where stages have tasks in the same order, a thread mostly has
the ones whose data is in its own cache from the stage before. The leader takes tasks too and continues when all of them
are done, so it never waits for a helper that the operating system does not run, except in the middle of a task. A
helper without work spins for a few microseconds, then yields its processor, then sleeps.

Numba's own parallel loops take several times as long to compile, and their threads spin at every barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from rankwell.kernels.cpu.cache_lines import zeros_in_lines
from rankwell.kernels.cpu.lean_compilation import inner_kernel

# Places in `control`; places that several threads write have their own cache lines.
TICKET, DONE, STOP, FAILED, N_TASKS = 0, 8, 16, 24, 32
_PLACES = 64  # those from 33 on are for the tasks
N_NUMBERS = 8

# The bits of a ticket: the first task that is left, then the last + 1, then the kind.
_TASK_BITS = 24
_TASKS = (1 << _TASK_BITS) - 1
_SPINS = 2000  # a few microseconds
_OFFERS = 100  # a few tens of microseconds, if no other thread needs the processor
_NAP = 50  # microseconds

_sched_yield = types.ExternalFunction("sched_yield", types.int32())
_usleep = types.ExternalFunction("usleep", types.int32(types.uint32))


class Team(NamedTuple):
    """Memory that the threads of a team share.

    control : int64 (64,), the places above, and integers that tasks read
    numbers : float64 (8,), other numbers that tasks read
    """

    control: np.ndarray
    numbers: np.ndarray


def new_team() -> Team:
    return Team(zeros_in_lines((_PLACES,), np.int64), np.zeros(N_NUMBERS))


def _atomic(emit: Callable[..., Any], result: Any) -> Any:
    """An operation on one place of an int64 array that other threads see whole and in order."""

    def operation(typing_context: Any, array: Any, place: Any, *values: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return emit(builder, builder.gep(data, [arguments[1]]), *arguments[2:])

        return result(array, types.int64, *(types.int64 for _ in values)), generate

    return operation


@intrinsic
def read_place(typing_context: Any, array: Any, place: Any) -> Any:
    """array[place], and everything that its writer wrote before it."""
    return _atomic(lambda builder, at: builder.load_atomic(at, "acquire", 8), types.int64)(typing_context, array, place)


@intrinsic
def write_place(typing_context: Any, array: Any, place: Any, value: Any) -> Any:
    """array[place] = value, after everything written before it; returns `value`."""

    def emit(builder: ir.IRBuilder, at: Any, value: Any) -> Any:
        builder.store_atomic(value, at, "release", 8)
        return value

    return _atomic(emit, types.int64)(typing_context, array, place, value)


@intrinsic
def add_to_place(typing_context: Any, array: Any, place: Any, value: Any) -> Any:
    """array[place] += value, atomically; returns the previous value."""
    return _atomic(lambda builder, at, value: builder.atomic_rmw("add", at, value, "acq_rel"), types.int64)(
        typing_context, array, place, value
    )


@intrinsic
def replace_in_place(typing_context: Any, array: Any, place: Any, expected: Any, value: Any) -> Any:
    """Replace `expected` by `value`, atomically; returns whether `expected` was still there."""

    def emit(builder: ir.IRBuilder, at: Any, expected: Any, value: Any) -> Any:
        return builder.extract_value(builder.cmpxchg(at, expected, value, "acq_rel", "acquire"), 1)

    return _atomic(emit, types.boolean)(typing_context, array, place, expected, value)


@inner_kernel
def publish(control, kind, n_tasks):
    """Publish a stage of up to 2^24 − 1 tasks. The previous one must be done."""
    control[N_TASKS] = n_tasks
    write_place(control, DONE, 0)
    write_place(control, TICKET, (kind << 2 * _TASK_BITS) | (n_tasks << _TASK_BITS))


@inner_kernel
def take_task(control, worker):
    """The kind and the number of a task that is now the caller's; (−1, −1) if none is left."""
    while True:
        ticket = read_place(control, TICKET)
        first, last = ticket & _TASKS, (ticket >> _TASK_BITS) & _TASKS
        if first == last:
            return -1, -1
        takes_last = worker % 2 == 1
        step = -(1 << _TASK_BITS) if takes_last else 1
        if replace_in_place(control, TICKET, ticket, ticket + step):
            return ticket >> 2 * _TASK_BITS, last - 1 if takes_last else first


@inner_kernel
def wait_a_little(times):
    """Wait, after having waited `times` times already."""
    if times > _SPINS + _OFFERS:
        _usleep(_NAP)
    elif times > _SPINS:
        _sched_yield()


@inner_kernel
def wait_for_tasks(control):
    """Wait until every task of the stage is done."""
    times = 0
    while read_place(control, DONE) < control[N_TASKS]:
        if read_place(control, FAILED) != 0:
            raise RuntimeError("a helping thread failed.")
        wait_a_little(times)
        times += 1
