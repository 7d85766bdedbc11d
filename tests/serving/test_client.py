"""The client: what it refuses before it sends anything, and the connections of its threads."""

import http.server
import json
import os
import threading
from pathlib import Path

import pytest

from rankwell import Client
from rankwell.errors import ParameterError


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers every GET, on a connection that stays."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = json.dumps({"results": [], "path": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Nothing on stderr."""


@pytest.fixture
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")
def test_connections_of_threads_that_have_ended_are_closed(address):
    def n_sockets():
        # Those that end at the client: the other ends are in this process, too.
        return len(os.listdir("/proc/self/fd"))

    with Client(address) as client:
        client.search("w1")
        in_thread(lambda: client.search("w1"))
        before = n_sockets()
        for _ in range(40):
            in_thread(lambda: client.search("w1"))
        # The threads of the server close theirs a little later.
        assert n_sockets() <= before + 20
        assert len(client._opened) == 1


def test_close_closes_the_connections_of_all_threads_and_a_call_opens_one_again(address):
    client, is_closed, answers = Client(address), threading.Event(), []
    has_called = threading.Event()

    def twice():
        answers.append(client.search("w1"))
        has_called.set()
        is_closed.wait(10)
        answers.append(client.search("w2"))

    thread = threading.Thread(target=twice)
    thread.start()
    assert has_called.wait(10)
    client.close()
    is_closed.set()
    thread.join()
    assert [answer["path"][:13] for answer in answers] == ["/search?q=w1&", "/search?q=w2&"]
    client.close()


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:8080",
        "ftp://127.0.0.1",
        "http://",
        "http://[::1",
        "http://h:99999",
        "http://h:0",
        "http://h:port",
        "http://h/a b",
        "http://h/\u00e9",
        "http://h\n:80/",
        "http://" + "a" * 64 + ".example",
    ],
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ParameterError, match=r"address must be like http://127\.0\.0\.1:8080, got ") as refused:
        Client(address)
    assert refused.value.parameter == "address"


@pytest.mark.parametrize("address", ["http://[::1]:8080", "https://h/under/a/path", "http://b\u00fccher.example"])
def test_an_address_that_is_one_is_taken(address):
    assert Client(address).address == address


@pytest.mark.parametrize("token", ["", "\u00e9", "a\n", "a\r\nX: y"])
def test_a_token_that_no_header_can_have_is_refused(token):
    with pytest.raises(ParameterError, match="token must be printable ASCII characters"):
        Client("http://127.0.0.1:8080", token=token)


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda client: client.search("\ud800"), "query"),
        (lambda client: client.search("w1", filter="\udfff"), "filter"),
        (lambda client: client.search("w1", facets=["a\ud800"]), "facets"),
        (lambda client: client.similar("\ud800"), "document"),
        (lambda client: client.explain("w1", "\ud800"), "document"),
        (lambda client: client.put_ranker("\ud800", "path"), "name"),
        (lambda client: client.remove_ranker("\ud800"), "name"),
    ],
)
def test_text_that_utf8_cannot_have_is_refused(call, parameter):
    client = Client("http://127.0.0.1:1")
    with pytest.raises(ParameterError, match=f"{parameter} must be text that UTF-8 can have, got '") as refused:
        call(client)
    assert refused.value.parameter == parameter
