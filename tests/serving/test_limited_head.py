"""Request lines and headers that are too long are refused while they come; others are not touched."""

import contextlib
import http.client
import json
import socket

import pytest

pytest.importorskip("httptools", reason="Uvicorn's other parser has a limit of its own")

from tests.serving.node_network import make_shards
from tests.serving.server_process import serving, serving_from

from rankwell.serving.http.limited_head import MOST_HEAD_BYTES

HUGE = 32 << 20


@pytest.fixture(scope="module", params=["one index", "shards"])
def place(request, served, tmp_path_factory):
    """The address of a server of one index, which refuses early, and of one of shards."""
    folder, _ = served
    shards = make_shards(tmp_path_factory.mktemp("shards"), 2) if request.param == "shards" else []
    server = serving_from(*shards) if shards else serving(folder)
    with server as (_, client):
        host, _, port = client.address.removeprefix("http://").partition(":")
        yield host, int(port)


def ask(place, *pieces):
    """The status and body of the answer, and how many bytes of the pieces were taken."""
    with socket.create_connection(place, 30) as connection:
        n_sent = 0
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                n_sent += connection.send(piece)
        received = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(1 << 16):
                received += piece
        head, _, body = received.partition(b"\r\n\r\n")
        return int(head[9:12] or 0), json.loads(body or b"null"), n_sent


END = b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    "start", [b"GET /search?q=", b"GET /search?q=w1" + END + b"X-Long: "], ids=["request line", "header"]
)
def test_a_head_without_an_end_is_not_kept(place, start):
    chunk = b"a" * (1 << 16)
    _, _, n_sent = ask(place, start, *[chunk] * (HUGE // len(chunk)))
    # What the kernel's buffers hold was sent; nothing more was read.
    assert n_sent < HUGE


def test_many_headers_are_refused_with_the_limit(place):
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 100) for number in range(700))
    status, body, _ = ask(place, b"GET /healthz" + END + lines + b"\r\n")
    assert status == 431
    assert (
        body["error"]
        == f"a request line and headers may have at most {MOST_HEAD_BYTES:,} bytes. Send less, or use a body."
    )


def test_a_long_request_line_is_refused_with_the_limit(place):
    status, body, _ = ask(place, b"GET /search?q=" + b"a" * (MOST_HEAD_BYTES + 1) + END + b"\r\n")
    assert (status, body["error"][:33]) == (431, "a request line and headers may ha")


def test_what_is_within_the_limit_is_answered(place):
    header = b"X-Long: " + b"a" * (MOST_HEAD_BYTES - 1000) + b"\r\n"
    assert ask(place, b"GET /healthz" + END + header + b"\r\n")[0] == 200
    # In pieces, and one request after the other on a connection.
    pieces = [header[start : start + 10_000] for start in range(0, len(header), 10_000)]
    assert ask(place, b"GET /healthz" + END, *pieces, b"\r\n")[0] == 200
    with contextlib.closing(http.client.HTTPConnection(*place, timeout=30)) as connection:
        for _ in range(3):
            connection.request("GET", "/healthz", headers={"X-Long": "a" * (MOST_HEAD_BYTES - 1000)})
            response = connection.getresponse()
            assert (response.status, response.read()) == (200, b'{"status":"ok"}')


def test_bodies_have_a_limit_of_their_own(place):
    body = json.dumps({"features": [[0.0] * 50] * 4000}).encode()
    assert len(body) > 8 * MOST_HEAD_BYTES
    head = b"POST /rank" + END + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    status, answer, _ = ask(place, head, body)
    assert status == 422  # there is no ranker
    assert "ranker" in answer["error"]
