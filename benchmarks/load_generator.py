"""`python -m benchmarks.load_generator`: an open-loop load, from a process of its own.

Requests are sent when they are due, however slow the answers are, and a latency counts from when its request was due:
a server that stalls is charged for the requests that it made wait (no coordinated omission). The generator looks once a
millisecond what is due and what has come, so that it takes less of the processor from the server; what is late by that
counts too. With a rate of 0 the load is closed: each of `clients` connections asks again as soon as it has its answer,
which finds the capacity.

One thread with sockets and `epoll`, and nothing else: on a small machine the generator takes its processor time from
the server that it measures, and says how much that was. `python -m benchmarks.load_generator --answer` is the server
that only answers, by which its own limit is measured.

Reads JSON from stdin: host, port, paths, rate (a second), seconds, clients, seed. Writes JSON: for each status, a
`LatencyHistogram` as pairs of bucket and count; how long the load took, and the generator's processor time.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import select
import socket
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Buckets grow by 1 %, so that a percentile is right to 1 %.
_GROWTH = math.log(1.01)
_LEAST_SECONDS = 1e-6
# How long the last answers may take.
_PATIENCE_SECONDS = 30.0
_MOST_BYTES = 1 << 18
# How often an open load looks for what is due and what has come.
_EVERY_SECONDS = 0.001
FAILED = 0
"""The status of a request without an answer."""
PARTIAL = 299
"""The status of an answer that says that it is degraded."""
_DEGRADED = b'"degraded":{'


class LatencyHistogram:
    """Counts of latencies in buckets of equal relative width."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts = Counter(counts or {})

    def add(self, seconds: float) -> None:
        self.counts[max(0, math.ceil(math.log(max(seconds, _LEAST_SECONDS) / _LEAST_SECONDS) / _GROWTH))] += 1

    def __len__(self) -> int:
        return sum(self.counts.values())

    def percentile(self, share: float) -> float:
        """The latency in seconds that so many percent of the requests did not exceed; NaN without any."""
        wanted, seen = math.ceil(len(self) * share / 100), 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return _LEAST_SECONDS * math.exp(bucket * _GROWTH)
        return math.nan

    def within(self, seconds: float) -> int:
        """How many latencies are at most so long, to the width of a bucket."""
        return sum(
            count for bucket, count in self.counts.items() if _LEAST_SECONDS * math.exp(bucket * _GROWTH) <= seconds
        )


def request_of(host: str, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


@dataclass(eq=False)
class Connection:
    """A connection; while it waits for an answer, `due` is when its `request` was, and `received` what has come."""

    socket: socket.socket
    request: bytes = b""
    due: float = 0.0
    received: bytes = b""
    is_used: bool = False

    def send(self, request: bytes, due: float) -> None:
        self.request, self.due, self.received = request, due, b""
        self.socket.sendall(request)

    def answer_status(self) -> int | None:
        """Read what has come; the status of the answer once it is complete, FAILED if it never will be."""
        try:
            part = self.socket.recv(_MOST_BYTES)
        except OSError:
            return FAILED
        if not part:
            return FAILED
        self.received += part
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self.received[:end].lower()
        length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
        if len(self.received) < end + 4 + int(length or 0):
            return None
        status = int(head[9:12])
        return PARTIAL if status == 200 and _DEGRADED in self.received else status


class Load:
    """One run of the generator."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self.address = (asked["host"], asked["port"])
        self.requests = [request_of(asked["host"], path) for path in asked["paths"]]
        self.rate, self.seconds, self.clients = asked["rate"], asked["seconds"], asked["clients"]
        self.random = random.Random(asked["seed"])
        self.latencies: defaultdict[int, LatencyHistogram] = defaultdict(LatencyHistogram)
        self._poll = select.epoll()
        self._idle: list[Connection] = []
        self._waiting: dict[int, Connection] = {}

    def run(self) -> None:
        end = time.monotonic() + self.seconds
        if self.rate == 0:
            for _ in range(self.clients):
                self._ask(time.monotonic())
        due = self._next_due(time.monotonic(), end)
        while self._waiting or due < end:
            now = time.monotonic()
            if now > end + _PATIENCE_SECONDS:
                break
            while due <= now:
                self._ask(due)
                due = self._next_due(due, end)
            self._receive(min(due, end + _PATIENCE_SECONDS) - now, end)
        self.latencies[FAILED].counts[0] += len(self._waiting)
        for connection in (*self._idle, *self._waiting.values()):
            connection.socket.close()
        self._poll.close()

    def _next_due(self, before: float, end: float) -> float:
        """When the next request is due, of a Poisson process; a closed load has none."""
        due = before + self.random.expovariate(self.rate) if self.rate else math.inf
        return due if due < end else math.inf

    def _ask(self, due: float) -> None:
        self._send(self.random.choice(self.requests), due)

    def _send(self, request: bytes, due: float) -> None:
        connection = self._idle.pop() if self._idle else None
        try:
            connection = connection or self._connect()
            connection.send(request, due)
            self._waiting[connection.socket.fileno()] = connection
        except OSError:
            self._fail(connection, request, due)

    def _fail(self, connection: Connection | None, request: bytes, due: float) -> None:
        """Count a failure; but a server may close a connection that was not used for a while, just when it is: then the
        request is sent on another, as every client does."""
        if connection is not None:
            connection.socket.close()
        if connection is not None and connection.is_used and not connection.received:
            self._send(request, due)
        else:
            self.latencies[FAILED].add(time.monotonic() - due)

    def _connect(self) -> Connection:
        connected = socket.create_connection(self.address, _PATIENCE_SECONDS)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll.register(connected.fileno(), select.EPOLLIN)
        return Connection(connected)

    def _receive(self, seconds: float, end: float) -> None:
        """Wait until something comes, for so long at most, and count the answers that are complete."""
        if self.rate:
            time.sleep(_EVERY_SECONDS)
            seconds = 0.0
        for number, _ in self._poll.poll(max(0.0, seconds)):
            connection = self._waiting.get(number)
            if connection is None:
                self._drop_idle(number)
                continue
            status = connection.answer_status()
            if status is None:
                continue
            del self._waiting[number]
            if status == FAILED:
                self._fail(connection, connection.request, connection.due)
            else:
                self.latencies[status].add(time.monotonic() - connection.due)
                connection.is_used = True
                self._idle.append(connection)
            # A request that was sent again is the client's next one.
            if self.rate == 0 and len(self._waiting) < self.clients and time.monotonic() < end:
                self._ask(time.monotonic())

    def _drop_idle(self, number: int) -> None:
        """Forget a connection that the server has closed; closed here too, it is polled no more."""
        for connection in [one for one in self._idle if one.socket.fileno() == number]:
            self._idle.remove(connection)
            connection.socket.close()


class OnlyAnswers(asyncio.Protocol):
    """A server that answers every request at once, with a page of a search answer's size."""

    _answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12000\r\n\r\n" + 12000 * b"1"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._answer)


async def answer_only() -> None:
    """Print the port, and answer until the end."""
    server = await asyncio.get_running_loop().create_server(OnlyAnswers, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    if sys.argv[1:] == ["--answer"]:
        asyncio.run(answer_only())
        return
    load = Load(json.load(sys.stdin))
    started, used = time.monotonic(), time.process_time()
    load.run()
    latencies = {status: sorted(histogram.counts.items()) for status, histogram in load.latencies.items() if histogram}
    answer = {"latencies": latencies, "seconds": time.monotonic() - started}
    json.dump(answer | {"processor_seconds": time.process_time() - used}, sys.stdout)


if __name__ == "__main__":
    main()
