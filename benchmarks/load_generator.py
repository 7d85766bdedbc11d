"""`python -m benchmarks.load_generator`: an open-loop load, from a process of its own.

Requests are sent when they are due, however slow the answers are, and a latency counts from when its request was due:
a server that stalls is charged for the requests that it made wait (no coordinated omission). With a rate of 0 the load
is closed: each of `clients` connections asks again as soon as it has its answer, which finds the capacity.

Reads JSON from stdin: host, port, paths, rate (a second), seconds, clients, seed. Writes JSON: for each status, a
`LatencyHistogram` as pairs of bucket and count; and how long the load took.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

# Buckets grow by 1 %, so that a percentile is right to 1 %.
_GROWTH = math.log(1.01)
_LEAST_SECONDS = 1e-6
FAILED = 0
"""The status of a request without an answer."""


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


class Load:
    """One run of the generator."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self.host, self.port, self.paths = asked["host"], asked["port"], asked["paths"]
        self.rate, self.seconds, self.clients = asked["rate"], asked["seconds"], asked["clients"]
        self.random = random.Random(asked["seed"])
        self.latencies: defaultdict[int, LatencyHistogram] = defaultdict(LatencyHistogram)
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def run(self) -> None:
        if self.rate == 0:
            end = time.monotonic() + self.seconds
            await asyncio.gather(*(self.ask_until(end) for _ in range(self.clients)))
            return
        running = set()
        for due in self.times():
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            task = asyncio.create_task(self.ask(due))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)

    def times(self) -> Iterator[float]:
        """When requests are due: a Poisson process."""
        due = time.monotonic()
        end = due + self.seconds
        while (due := due + self.random.expovariate(self.rate)) < end:
            yield due

    async def ask_until(self, end: float) -> None:
        while time.monotonic() < end:
            await self.ask(time.monotonic())

    async def ask(self, due: float) -> None:
        path = self.random.choice(self.paths)
        try:
            status = await asyncio.wait_for(self.send(path), 30)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
            status = FAILED
        self.latencies[status].add(time.monotonic() - due)

    async def send(self, path: str) -> int:
        streams = self.idle.pop() if self.idle else await asyncio.open_connection(self.host, self.port)
        reader, writer = streams
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        self.idle.append(streams)
        return int(head.split(b" ", 2)[1])


def main() -> None:
    load = Load(json.load(sys.stdin))
    started = time.monotonic()
    asyncio.run(load.run())
    latencies = {status: sorted(histogram.counts.items()) for status, histogram in load.latencies.items()}
    json.dump({"latencies": latencies, "seconds": time.monotonic() - started}, sys.stdout)


if __name__ == "__main__":
    main()
