"""The load generator sends what is due, whatever the answers are, and tells complete, partial and failed ones apart."""

import contextlib
import json
import socket
import subprocess
import sys
import threading

import pytest
from benchmarks.load_generator import FAILED, PARTIAL, LatencyHistogram, Load
from benchmarks.provenance import ROOT

ANSWERS = {
    b"/whole": b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"degraded":null}',
    b"/partial": b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"degraded":{}}',
    b"/refused": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
}


def answer(connection, held):
    """Answer by path, in two pieces; what has no answer ends the connection."""
    with connection:
        while data := connection.recv(4096):
            path = data.split(b" ")[1]
            held.wait()
            if path not in ANSWERS:
                return
            connection.sendall(ANSWERS[path][:20])
            connection.sendall(ANSWERS[path][20:])


@contextlib.contextmanager
def server():
    """A port, and an event until which nothing is answered."""
    held = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=answer, args=(listening.accept()[0], held), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1], held
        listening.shutdown(socket.SHUT_RDWR)


def load(port, path, **settings):
    asked = {"host": "127.0.0.1", "port": port, "paths": [path], "rate": 0, "seconds": 0.2, "clients": 3, "seed": 1}
    made = Load(asked | settings)
    made.run()
    return {status: histogram for status, histogram in made.latencies.items() if len(histogram)}


@pytest.mark.parametrize(
    ("path", "status"), [("/whole", 200), ("/partial", PARTIAL), ("/refused", 503), ("/none", FAILED)]
)
def test_answers_are_counted_by_what_they_are(path, status):
    with server() as (port, held):
        held.set()
        assert set(load(port, path)) == {status}


def test_a_connection_that_was_closed_meanwhile_is_no_failure(monkeypatch):
    # The server closes each connection after its second answer, when the next request may have been sent.
    own = threading.local()
    whole = ANSWERS[b"/whole"]

    class Fleeting(dict):
        def __contains__(self, path):
            own.answered = getattr(own, "answered", 0) + 1
            return own.answered <= 2

    monkeypatch.setitem(globals(), "ANSWERS", Fleeting({b"/whole": whole}))
    with server() as (port, held):
        held.set()
        latencies = load(port, "/whole")
    assert set(latencies) == {200}
    assert len(latencies[200]) > 10


def test_requests_are_sent_when_they_are_due_and_wait_from_then_on():
    with server() as (port, held):
        threading.Timer(0.5, held.set).start()
        latencies = load(port, "/whole", rate=100, seconds=0.3)[200]
    # Nothing was answered in the 0.3 s in which about 30 were due, and each waited for the rest of the 0.5 s.
    assert 10 <= len(latencies) <= 60
    assert latencies.within(0.15) == 0
    assert latencies.percentile(100) > 0.4


def test_the_process_says_how_much_of_a_core_it_took():
    command = [sys.executable, "-m", "benchmarks.load_generator"]
    with subprocess.Popen([*command, "--answer"], stdout=subprocess.PIPE, text=True, cwd=ROOT) as answering:
        try:
            port = int(answering.stdout.readline())
            asked = {"host": "127.0.0.1", "port": port, "paths": ["/"], "rate": 0, "seconds": 0.3}
            asked |= {"clients": 2, "seed": 1}
            done = subprocess.run(
                command, input=json.dumps(asked), capture_output=True, text=True, check=True, cwd=ROOT
            )
        finally:
            answering.terminate()
    told = json.loads(done.stdout)
    assert list(told["latencies"]) == ["200"]
    assert 0 < told["processor_seconds"] <= told["seconds"]


def test_percentiles_are_right_to_a_hundredth():
    latencies = LatencyHistogram()
    for milliseconds in range(1, 101):
        latencies.add(milliseconds / 1000)
    assert latencies.percentile(50) == pytest.approx(0.050, rel=0.01)
    assert latencies.percentile(99) == pytest.approx(0.099, rel=0.01)
    assert latencies.within(0.0305) == 30
