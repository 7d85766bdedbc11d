"""Searches that are refused early get what they would get the usual way, and nothing else is refused."""

import contextlib
import logging
import socket
import threading
import time

import pytest

pytest.importorskip("uvicorn", reason="the server needs the extra 'serve'")

import uvicorn
from starlette.testclient import TestClient
from tests.serving.served_index import N_CANDIDATES

from rankwell.serving.http.app import make_app
from rankwell.serving.http.early_refusal import EarlyRefusals, _search_of, refusing_protocol
from rankwell.serving.http.messages import SearchParameters
from rankwell.serving.http.server import bind
from rankwell.serving.http.service import SearchService
from rankwell.serving.node import Node

HEADERS = [(b"date", b"today")]


def request_of(target="/search?q=w1+w2", *headers, version="1.1", method="GET"):
    lines = [f"{method} {target} HTTP/{version}", "Host: 127.0.0.1", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.fixture
def service(served, caplog):
    """With the server's own level of the log: requests that are logged are not refused early."""
    caplog.set_level(logging.WARNING, logger="rankwell.serving")
    folder, rankers = served
    service = SearchService(Node(folder / "index", rankers, n_candidates=N_CANDIDATES))
    yield service
    service.close()


def overload(service):
    """As if a request were ranked that takes 100 s; after the thread that ranks has counted what it did."""
    end = time.monotonic() + 10
    while not service._batcher._changed._waiters and time.monotonic() < end:
        time.sleep(0.001)
    service._batcher._cost, service._batcher._n_running = 100.0, 1


def end_overload(service):
    service._batcher._cost, service._batcher._n_running = 0.0, 0


def test_a_whole_search_is_read():
    asked = _search_of(request_of("/search?q=w1+%C3%A9&k=3&plain=true&timeout_ms=50", "Accept: */*"))
    assert asked == SearchParameters(q="w1 é", k=3, plain=True, timeout_ms=50.0)


@pytest.mark.parametrize(
    "data",
    [
        request_of()[:-1],
        request_of()[:-4] + b"\r\n",
        request_of() * 2,
        request_of() + b"x",
        request_of("/search?q=w1", "Connection: close"),
        request_of("/search?q=w1", "CONTENT-LENGTH: 3"),
        request_of("/search?q=w1", "Transfer-Encoding: chunked"),
        request_of("/search?q=w1", version="1.0"),
        request_of("/search?q=w1&k=0"),
        request_of("/search?k=1"),
        request_of("/search?q=w1&other=1"),
    ],
)
def test_what_is_not_certain_goes_the_usual_way(data, service):
    overload(service)
    assert _search_of(data) is None
    assert EarlyRefusals(service).response(data, HEADERS) is None


def test_the_refusal_is_the_usual_one(service):
    refusals = EarlyRefusals(service)
    assert refusals.response(request_of(), HEADERS) is None
    with TestClient(make_app(service)) as client:
        known = client.get("/search?q=w1").json()
        overload(service)
        usual = client.get("/search?q=w1+w2")
        head, _, body = refusals.response(request_of(), HEADERS).partition(b"\r\n\r\n")
        metrics = client.get("/metrics").text
        # Answered from the cache; not a search; a search with more time; one that cannot be right.
        assert client.get("/search?q=w1").json()["results"] == known["results"]
        for target in ("/search?q=w1", "/index?q=w1", "/search?q=w1+w2&timeout_ms=60000", "/search?q=w1&ranker=none"):
            service._batcher._cost = 1.0
            assert refusals.response(request_of(target), HEADERS) is None
        end_overload(service)
    assert (usual.status_code, usual.content) == (503, body)
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 503 Service Unavailable",
        b"date: today",
        b"retry-after: " + usual.headers["retry-after"].encode(),
        b"content-length: " + usual.headers["content-length"].encode(),
        b"content-type: application/json",
    ]
    # Both were counted.
    assert 'rankwell_requests_total{path="/search",status="503"} 2.0' in metrics
    assert "rankwell_refused_total 2.0" in metrics


def test_requests_that_are_logged_go_the_usual_way(service, caplog):
    overload(service)
    with caplog.at_level(logging.INFO, logger="rankwell.serving"):
        assert EarlyRefusals(service).response(request_of(), HEADERS) is None


@contextlib.contextmanager
def server_of(service):
    """A connection to a server that refuses early."""
    config = uvicorn.Config(make_app(service), http=refusing_protocol(EarlyRefusals(service)), log_config=None)
    server, listening = uvicorn.Server(config), bind("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        with socket.create_connection(listening.getsockname(), 20) as connection:
            yield connection
    finally:
        server.should_exit = True
        thread.join()


def answer(connection):
    """The status of the next answer, which is read whole."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(1)
    length = int(received.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while length:
        length -= len(connection.recv(length))
    return int(received[9:12])


def test_a_connection_goes_on_after_a_refusal(served):
    folder, rankers = served
    service = SearchService(Node(folder / "index", rankers, n_candidates=N_CANDIDATES), timeout=20.0)
    with server_of(service) as connection:

        def ask(*pieces):
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.05)
            return answer(connection)

        assert ask(request_of()) == 200
        overload(service)
        assert ask(request_of("/search?q=w3")) == 503
        # In two pieces; two at once; and what is not a search.
        assert ask(request_of("/search?q=w3")[:20], request_of("/search?q=w3")[20:]) == 503
        assert [ask(request_of("/search?q=w3") * 2), answer(connection)] == [503, 503]
        assert ask(request_of("/healthz")) == 200
        assert ask(request_of()) == 200  # from the cache
        end_overload(service)
        assert ask(request_of("/search?q=w3")) == 200
