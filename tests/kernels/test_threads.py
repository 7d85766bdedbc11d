"""The number of threads holds for one block and is restored."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rankwell
from rankwell import ParameterError
from rankwell.kernels.threads import (
    _control_group_quota,
    available_cores,
    current_threads,
    kernel_threads,
    run_parts,
    run_ranges,
)


def test_threads_are_set_and_restored_even_after_an_error():
    with kernel_threads(1) as number:
        assert number == current_threads() == 1
    assert current_threads() == available_cores()
    with pytest.raises(RuntimeError, match="on purpose"), kernel_threads(1):
        raise RuntimeError("on purpose")
    assert current_threads() == available_cores()


@pytest.mark.parametrize("n_jobs", [None, -1, 10_000])
def test_every_core_and_no_more(n_jobs):
    with kernel_threads(n_jobs) as number:
        assert number == available_cores()


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_nonsense_is_refused(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs must be"), kernel_threads(n_jobs):
        pass


def test_available_cores():
    assert available_cores() >= 1


@pytest.mark.parametrize(("text", "cores"), [("150000 100000", 1.5), ("max 100000", None), ("nonsense", None)])
def test_the_share_of_a_control_group(tmp_path, text, cores):
    (tmp_path / "cpu.max").write_text(text)
    assert _control_group_quota(tmp_path) == cores
    assert _control_group_quota(tmp_path / "absent") is None


@pytest.mark.parametrize("n_jobs", [1, None])
def test_every_part_is_done_once(n_jobs):
    done = []
    with kernel_threads(n_jobs):
        run_parts(done.append, 100)
    assert sorted(done) == list(range(100))


@pytest.mark.parametrize("n_items", [0, 1, 99, 100, 101, 199, 200, 1000, 10_000])
def test_ranges_cover_all_items_and_are_long_enough(monkeypatch, n_items):
    monkeypatch.setattr("rankwell.kernels.threads.available_cores", lambda: 4)
    ranges = []
    run_ranges(lambda first, last: ranges.append((first, last)), n_items, least_items=100)
    assert [item for first, last in sorted(ranges) for item in range(first, last)] == list(range(n_items))
    assert len(ranges) <= 8 * 4
    assert n_items < 100 or all(last - first >= 100 for first, last in ranges)
    assert len(ranges) == 1 or n_items == 0 or n_items >= 200


def test_parts_may_have_parts():
    done = []
    run_parts(lambda outer: run_parts(lambda inner: done.append((outer, inner)), 5), 20)
    assert sorted(done) == [(outer, inner) for outer in range(20) for inner in range(5)]


def test_an_exception_comes_out_and_ends_the_work():
    def task(part):
        if part == 3:
            raise ValueError("part three")

    with pytest.raises(ValueError, match="part three"):
        run_parts(task, 1000)


def test_a_forked_child_has_threads_of_its_own():
    run_parts(lambda part: None, 100)
    child = os.fork()
    if child == 0:
        done = []
        run_parts(done.append, 100)
        os._exit(0 if sorted(done) == list(range(100)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_limits_that_users_know_are_kept(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    available_cores.cache_clear()
    try:
        assert available_cores() == 1
    finally:
        monkeypatch.undo()
        available_cores.cache_clear()


WITHOUT_OPENMP = """
import sys
from threading import Thread

# As on a machine without libgomp and TBB: what is left of Numba's threads aborts the process if two threads use it.
for pool in ("omppool", "tbbpool"):
    sys.modules[f"numba.np.ufunc.{pool}"] = None

import numpy as np
import rankwell
from rankwell.kernels.lists.cpu.pair_sums import PARALLEL_DOCS
from rankwell.rankers.listnet import ListNet

features = np.random.default_rng(0).normal(size=(PARALLEL_DOCS + 5, 3))
data = rankwell.RankingDataset(features, np.arange(len(features)) % 3, qid=[1] * PARALLEL_DOCS + [2] * 5)
scores = [None, None, None]

def work(number):
    ranker = ListNet(3, n_epochs=1, device="cpu").fit(data)
    scores[number] = [ranker.predict(data) for _ in range(5)][-1]

threads = [Thread(target=work, args=(number,)) for number in (1, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
work(0)
assert all(np.array_equal(scores[0], other) for other in scores[1:])
from numba.np.ufunc import parallel
assert not parallel._is_initialized
print("done")
"""


def test_two_threads_work_without_openmp():
    source = Path(rankwell.__file__).parents[1]
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_OPENMP],
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "done\n", ended.stderr


def test_no_kernel_uses_threads_that_are_not_ours():
    kernels = Path(rankwell.__file__).parent / "kernels"
    assert [path.name for path in kernels.rglob("*.py") if "parallel=True" in path.read_text(encoding="utf-8")] == []
