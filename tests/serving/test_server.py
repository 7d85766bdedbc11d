"""The server as a process, and the client: drain at SIGTERM, a commit while serving, overload, deadlines."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("uvicorn", reason="the server needs the extra 'serve'")

import uvicorn
from starlette.applications import Starlette
from tests.serving.served_index import N_CANDIDATES, QUERIES, add_document
from tests.serving.server_process import serving

from rankwell import Client, Index, RankedSearch, ServerError
from rankwell.errors import ParameterError
from rankwell.serving.http import server
from rankwell.serving.http.server import bind


@pytest.fixture
def own(served, tmp_path):
    """A copy of the index that a test may change; and options that name its rankers."""
    folder, rankers = served
    shutil.copytree(folder / "index", tmp_path / "index")
    options = ["--candidates", N_CANDIDATES, "--timeout", 30000]
    return tmp_path, rankers, [*options, *(part for path in rankers.values() for part in ("--ranker", path))]


def test_the_client_gets_what_ranked_search_finds(own):
    folder, rankers, options = own
    search = RankedSearch(Index.open(folder / "index"), rankers["boosted"], n_candidates=N_CANDIDATES)
    with serving(folder, *options, RANKWELL_TOKEN="secret") as (_, client):
        for query in QUERIES[:4]:
            answer = client.search(query, 7)
            found = search.search(query, 7)
            assert [(one["id"], one["score"]) for one in answer["results"]] == list(
                zip(found.ids, found.scores, strict=True)
            )
        first = answer["results"][0]["id"]
        assert client.explain(query, first)["score"] == answer["results"][0]["score"]
        assert client.rank(query, list(found.ids))
        assert list(client.features(query, first)) == list(search.feature_set.names)
        assert len(client.compare(query, ["bm25", "linear"])["rankings"]) == 2
        assert [ranker["name"] for ranker in client.rankers()] == ["bm25", *rankers]
        client.put_ranker("again", str(rankers["linear"]))
        assert client.search(query, ranker="again")["results"] == client.search(query, ranker="linear")["results"]
        client.remove_ranker("again")
        with pytest.raises(ServerError, match="ranker must be one of") as wrong:
            client.search(query, ranker="again")
        assert wrong.value.status == 422


def test_sigterm_answers_what_has_come_and_ends_with_success(own):
    folder, _, options = own
    # The window holds the request in the queue when the signal comes.
    with serving(folder, *options, "--batch-window", 500) as (process, client), ThreadPoolExecutor(1) as pool:
        client.search("w1")
        asked = pool.submit(client.search, "w1 w2")
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert len(asked.result(30)["results"]) == 10
        assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read()
        with pytest.raises(ServerError, match="does not answer"):
            client.search("w1")


def test_a_commit_is_served_without_a_failed_query(own):
    folder, _, options = own
    with serving(folder, *options) as (_, client):
        assert client.search("zebra")["results"] == []
        add_document(folder, "new", "zebra w1")
        end = time.monotonic() + 30
        while not (results := client.search("zebra")["results"]) and time.monotonic() < end:
            assert len(client.search("w1 w2")["results"]) == 10
        assert [result["id"] for result in results] == ["new"]
        assert client.index()["documents"] == 81


def test_more_than_the_queue_holds_is_refused(own):
    folder, _, options = own
    options = [*options, "--queue", 2, "--batch", 1, "--batch-window", 1000, "--cache", 0]

    def ask(client):
        try:
            return len(client.search("w1")["results"])
        except ServerError as error:
            return error.status, error.retry_after >= 1

    with serving(folder, *options) as (_, client), ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda _: ask(client), range(64)))
    assert set(outcomes) == {10, (503, True)}


def test_a_deadline_that_passes_in_the_queue_is_told(own):
    folder, _, options = own
    with serving(folder, *options, "--batch-window", 300) as (_, client):
        with pytest.raises(ServerError, match="the deadline passed while the request waited") as late:
            client.search("w1", timeout_ms=100)
        assert late.value.status == 503
        assert client.search("w1")["degraded"] is None


def run(*arguments, command="serve"):
    line = [sys.executable, "-m", "rankwell", command, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


def test_mistakes_on_the_command_line_are_one_line(own):
    folder, rankers, _ = own
    for arguments, code, words in (
        ((folder / "none",), 1, "none"),
        ((folder / "index", "--ranker", folder / "none.rank"), 1, "none.rank"),
        ((folder / "index", "--ranker", rankers["linear"], "--ranker", rankers["linear"]), 2, "names 'linear' twice"),
        ((folder / "index", "--ranker", "bm25=x"), 2, "--ranker bm25=x: its name must consist of letters, digits"),
        ((folder / "index", "--log-level", "loud"), 2, "--log-level must be debug, info, warning or error"),
        ((folder / "index", "--feature-log", folder / "log"), 2, "--feature-log needs a ranker"),
        ((folder / "index", "--judgments", folder / "none" / "votes"), 1, "cannot write"),
    ):
        done = run(*arguments)
        assert done.returncode == code
        assert done.stderr.startswith("error: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_told(own):
    folder, _, options = own
    with serving(folder, *options) as (_, client):
        port = client.address.rpartition(":")[2]
        told = [run(folder / "index", "--port", port, command=command) for command in ("serve", "node")]
    words = (
        f"cannot listen on 127.0.0.1 port {port}: another program uses it. Choose another with --port; 0 is any that"
    )
    for done in told:
        assert (done.returncode, done.stderr) == (2, f"error: {words} is free.\n")


def test_without_the_extra_its_name_is_told(own, monkeypatch):
    folder, _, _ = own
    code = (
        "import sys; sys.modules['starlette'] = sys.modules['msgspec'] = None\n"
        "import importlib.util; find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name in ('starlette', 'msgspec') else find(name)\n"
        f"sys.argv = ['rankwell', 'serve', {str(folder / 'index')!r}]\n"
        "from rankwell.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "error: rankwell serve needs msgspec, starlette, which the extra 'serve' contains: "
        "pip install 'rankwell[serve]'.\n"
    )


def test_importing_rankwell_and_its_client_imports_nothing_of_the_extra():
    code = (
        "import sys, rankwell; rankwell.Client\n"
        "assert not {'starlette', 'msgspec', 'uvicorn', 'prometheus_client', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_address_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="address must be like"):
        Client("localhost:8080")
    with pytest.raises(ServerError, match="does not answer"):
        Client("http://127.0.0.1:9").rankers()


def test_every_event_loop_sends_answers_at_once():
    # asyncio sets TCP_NODELAY only where the protocol is named; without it, answers wait 40 ms for acknowledgements.
    with bind("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not say where a process may run")
@pytest.mark.parametrize(("cores", "seconds"), [({3}, 0.0001), ({0, 1}, 0.0005)])
def test_the_interpreter_lock_changes_hands_less_often_on_several_cores(monkeypatch, cores, seconds):
    intervals = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: cores)
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: intervals.append(sys.getswitchinterval()))
    handler, before = signal.getsignal(signal.SIGTERM), sys.getswitchinterval()
    try:
        with bind("127.0.0.1", 0) as listening:
            server.run(Starlette(), listening)
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert intervals == [pytest.approx(seconds)]
    assert sys.getswitchinterval() == before


def test_sigterm_before_signals_are_listened_to_is_not_lost(monkeypatch):
    run = uvicorn.Server.run

    def run_late(server, sockets):
        signal.raise_signal(signal.SIGTERM)
        run(server, sockets)

    monkeypatch.setattr(uvicorn.Server, "run", run_late)
    handler, started = signal.getsignal(signal.SIGTERM), time.monotonic()
    late = threading.Timer(20, signal.raise_signal, [signal.SIGTERM])
    late.start()
    try:
        with bind("127.0.0.1", 0) as listening:
            server.run(Starlette(), listening)
    finally:
        late.cancel()
        signal.signal(signal.SIGTERM, handler)
    assert time.monotonic() - started < 15
