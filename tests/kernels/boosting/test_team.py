"""A team of threads in compiled code: every task once, whoever takes it, and no wait for a thread that is not there."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.kernels.boosting.boosting_inputs import Problem, make_dataset

from rankwell.kernels.boosting.cpu.booster import LevelBooster
from rankwell.kernels.boosting.cpu.documents import initial_weights
from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.team import (
    DONE,
    FAILED,
    add_to_place,
    new_team,
    publish,
    take_task,
    wait_for_tasks,
)
from rankwell.kernels.threads import available_cores, run_parts


@kernel
def share_out(control, kind, n_tasks):
    publish(control, kind, n_tasks)


@kernel
def work(control, worker, taken, pace):
    """Take tasks while there are any and note whose they are; returns the kind of the last."""
    kind = -1
    while True:
        found, task = take_task(control, worker)
        if found < 0:
            return kind
        kind = found
        for _ in range(pace):
            taken[task] += 1
        add_to_place(control, DONE, 1)


@kernel
def take_one(control, worker):
    return take_task(control, worker)[1]


@kernel
def wait_until_done(control):
    wait_for_tasks(control)


@pytest.mark.parametrize("n_tasks", [0, 1, 2, 63, 1000])
def test_every_task_is_taken_once(n_tasks):
    team = new_team()
    taken = np.zeros((4, n_tasks), dtype=np.int64)
    share_out(team.control, 7, n_tasks)
    threads = [threading.Thread(target=work, args=(team.control, worker, row, 3)) for worker, row in enumerate(taken)]
    for thread in threads:
        thread.start()
    wait_until_done(team.control)
    for thread in threads:
        thread.join()
    assert (taken.sum(axis=0) == 3).all()
    assert team.control[DONE] == n_tasks


def test_kinds_come_back_with_the_tasks():
    team = new_team()
    share_out(team.control, 12, 3)
    assert work(team.control, 0, np.zeros(3, dtype=np.int64), 1) == 12


@pytest.mark.parametrize(("worker", "first"), [(0, 0), (1, 4), (2, 0), (3, 4)])
def test_every_second_worker_takes_the_last_task(worker, first):
    team = new_team()
    share_out(team.control, 5, 5)
    assert take_one(team.control, worker) == first
    assert sorted(take_one(team.control, other) for other in (0, 1, 0, 1)) == sorted({0, 1, 2, 3, 4} - {first})
    assert take_one(team.control, worker) == -1


def test_a_failed_helper_is_an_error_and_not_a_wait_for_ever():
    team = new_team()
    share_out(team.control, 1, 2)
    team.control[FAILED] = 1
    with pytest.raises(RuntimeError, match="a helping thread failed"):
        wait_until_done(team.control)


@pytest.fixture(scope="module")
def problem():
    """Large enough for a team, by bounds or without."""
    return Problem(make_dataset(11, [60] * 150, 48, 3), n_bins=64)


def boost(problem, bounded, n_jobs):
    weights = initial_weights(problem.queries)
    booster = LevelBooster(
        problem.interleaved, 48, problem.n_bins, problem.queries, weights, bounded=bounded, n_jobs=n_jobs
    )
    return booster.boost(70)


@pytest.mark.parametrize("bounded", [False, True])
def test_a_team_gives_the_rounds_of_one_thread(problem, bounded):
    alone, together = boost(problem, bounded, 1), boost(problem, bounded, None)
    np.testing.assert_array_equal(alone.r, together.r)
    np.testing.assert_array_equal(alone.loss, together.loss)


def test_helpers_that_never_come_are_not_waited_for(problem):
    """Every thread of the pool is busy elsewhere: the leader does all tasks."""
    expected = boost(problem, True, 1)
    free = threading.Event()
    busy = threading.Thread(target=run_parts, args=(lambda part: free.wait(), available_cores()))
    busy.start()
    try:
        np.testing.assert_array_equal(boost(problem, True, None).loss, expected.loss)
    finally:
        free.set()
        busy.join()
