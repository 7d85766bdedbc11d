"""Several processes answer on one port: killed ones come back, and all end with the server."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the server needs the extra 'serve'")

from tests.serving.served_index import N_CANDIDATES, QUERIES
from tests.serving.server_process import serving_from

from rankwell import Client, ServerError
from rankwell.kernels.threads import available_cores
from rankwell.serving.http.server import bind, bind_for_processes
from rankwell.serving.http.server_processes import cores_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")


def children_of(process):
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def search(address, query):
    """With a connection of its own, which any of the processes may get."""
    with Client(address) as client:
        return client.search(query, timeout_ms=30_000)


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    assert condition()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_processes_answer_come_back_and_end_with_the_server(served, end):
    folder, rankers = served
    options = ["--candidates", N_CANDIDATES, "--ranker", rankers["cascade"], "--cache", 0, "--processes", 2]
    with serving_from(folder / "index", *options) as (process, client):
        first = children_of(process)
        assert len(first) == 2
        expected = {query: client.search(query, timeout_ms=30_000)["results"] for query in QUERIES[:4]}
        counts = set()
        for _ in range(24):
            with Client(client.address) as one:
                assert one.search(QUERIES[0], timeout_ms=30_000)["results"] == expected[QUERIES[0]]
                counts.add(one.index()["documents"])
        assert counts == {80}
        os.kill(first[0], signal.SIGKILL)
        until(lambda: len(children_of(process)) == 2 and first[0] not in children_of(process))
        for query, results in expected.items():
            assert search(client.address, query)["results"] == results
        last = children_of(process)
        process.send_signal(end)
        process.wait(60)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in last))
        with pytest.raises(ServerError):
            search(client.address, "w1")


@pytest.mark.parametrize("threads", [1, 2])
def test_processes_of_one_thread_that_fill_the_machine_have_a_core_each(served, threads):
    folder, rankers = served
    cores = os.sched_getaffinity(0)
    if len(cores) < 2 or available_cores() != len(cores):
        pytest.skip("this process may not use several whole cores")
    two = sorted(cores)[:2]
    os.sched_setaffinity(0, two)
    try:
        options = ["--ranker", rankers["cascade"], "--processes", 2, "--threads", threads]
        with serving_from(folder / "index", *options) as (process, client):
            first = children_of(process)
            kept = [os.sched_getaffinity(int(thread)) for pid in first for thread in os.listdir(f"/proc/{pid}/task")]
            # Threads of a kernel are for all cores.
            assert all(len(own) == 1 for own in kept) if threads == 1 else all(own == set(two) for own in kept)
            assert set().union(*kept) == set(two)
            os.kill(first[1], signal.SIGKILL)
            until(lambda: len(children_of(process)) == 2 and first[1] not in children_of(process))
            expected = [[core] for core in two] if threads == 1 else [two, two]
            until(lambda: sorted(sorted(os.sched_getaffinity(pid)) for pid in children_of(process)) == expected)
            assert search(client.address, QUERIES[0])["results"]
    finally:
        os.sched_setaffinity(0, cores)


def test_a_port_that_another_server_of_several_processes_has_is_refused(served):
    folder, _ = served
    with closing(bind_for_processes("127.0.0.1", 0)) as other:
        other.listen()
        port = other.getsockname()[1]
        command = [sys.executable, "-m", "rankwell", "serve", "--port", str(port), "--processes", "2", folder / "index"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1 port {port}: another program uses it." in " ".join(done.stderr.split())
    with closing(bind_for_processes("127.0.0.1", port)) as again:
        # Those of one server share it.
        bind("127.0.0.1", again.getsockname()[1], shared=True).close()


def test_processes_that_do_not_fill_the_machine_run_anywhere():
    assert cores_of(available_cores() + 1, 1) == []
    assert cores_of(available_cores(), 2) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a", "b"], "--processes is for one index"),
        (["a", "--replicas", "2"], "--processes is for one index"),
        (["a", "--use-log", "log", "--judgments", "votes"], "--processes cannot be used with --use-log, --judgments"),
        (["none"], "there is no index"),
    ],
)
def test_mistakes_are_told(tmp_path, arguments, words):
    command = [sys.executable, "-m", "rankwell", "serve", "--port", "0", "--processes", "2", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert words in " ".join(done.stderr.split())
