"""How large should a node's batches be on a CPU, and how long should a query wait for others?

The demo's node (`served_cases`: the documentation of Python's library, 1,000 candidates, two passes, captions), in one
process and without HTTP. *Full batches*: processor time of a query in batches of one size, the least of several rounds
over all queries. *Loads*: a thread submits requests to a `Batcher` when they are due, at 50 % and at 90 % of the
capacity, as a Poisson process, the same one for every setting. The capacity is that of 32 clients that ask again as
soon as they have their answer, with the batches and the window that a node has by default. A setting is the size of the
largest batch and the window; a batch of one waits for nobody.

Latencies count from when a request was due, however late it was submitted. Processor time is that of the process less
the submitting thread's, by the answers. Each setting is measured several times, the others in between, and its
latencies are taken together. Nothing is refused: a setting that does not keep up has the latencies of its queue, which
grows for as long as the load lasts. Documents were all shown before, and there is no cache of results. The best of many
settings is partly so by chance: the default beside it is a bound of what another default could bring.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.closed_load import closed_load
from benchmarks.harness import Benchmark
from benchmarks.served_cases import N_CANDIDATES, demo_case
from rankwell.serving.answer import Answer, SearchRequest
from rankwell.serving.batching import Batcher
from rankwell.serving.deadline import Deadline
from rankwell.serving.node import Node
from rankwell.serving.ranking.placement import CPU_BATCH
from rankwell.serving.short_pauses import short_pauses

SIZES = (1, 2, 4, 8, 16, 32, 64)
WINDOWS_MS = (0.0, 0.5, 1.0, 2.0, 5.0)
LOADS = (0.5, 0.9)
N_CLIENTS = 32
_FOREVER = 3600.0
_QUEUE = 1_000_000
# As a server's.
_SWITCH_SECONDS = 0.0005


class Setting(NamedTuple):
    """The largest batch, and how many milliseconds its first query waits for others."""

    most: int
    window_ms: float

    def __str__(self) -> str:
        return f"batches of {self.most}" + (f", window {self.window_ms:g} ms" if self.window_ms else "")


DEFAULT = Setting(CPU_BATCH, 0.0)


@dataclass
class Measured:
    """What a setting got under one load, in all its turns."""

    latencies: list[float] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    processor_seconds: float = 0.0

    @property
    def processor_us(self) -> float:
        """Microseconds a query."""
        return 1e6 * self.processor_seconds / len(self.latencies)

    def percentile_ms(self, share: float) -> float:
        return 1e3 * float(np.percentile(self.latencies, share))


def run(bench: Benchmark) -> None:
    sizes, windows = ((1, 16), (0.0, 1.0)) if bench.quick else (SIZES, WINDOWS_MS)
    n_turns, seconds = (1, 0.2) if bench.quick else (2, 1.2)
    settings = [Setting(most, window) for most in sizes for window in windows if most > 1 or window == 0]
    with tempfile.TemporaryDirectory(prefix="rankwell-batches-") as place:
        case = demo_case(Path(place), quick=bench.quick)
        node = Node(case.folder / "index", {"ranker": case.folder / "cascade.rank"}, n_candidates=N_CANDIDATES)
        requests = [SearchRequest(text, Deadline.after(_FOREVER), plain=True) for text in case.texts]
        check_answers(bench, node, requests)
        with short_pauses(_SWITCH_SECONDS):
            record_full_batches(bench, node, requests, sizes)
            capacity = measure_capacity(node, requests, seconds=0.5 if bench.quick else 4.0)
            for load in LOADS:
                measured: dict[Setting, Measured] = {setting: Measured() for setting in settings}
                for turn in range(n_turns):
                    for setting, outcome in measured.items():
                        open_load(node, requests, setting, load * capacity, seconds, turn, outcome)
                record(bench, load, capacity, measured)
        node.close()


def check_answers(bench: Benchmark, node: Node, requests: Sequence[SearchRequest]) -> None:
    """Answers do not depend on the batch; and all documents have been shown afterwards."""
    alone = [found(node.answer([request])[0]) for request in requests]
    for size in (16, 64):
        starts = range(0, len(requests), size)
        together = [found(answer) for start in starts for answer in node.answer(requests[start : start + size])]
        bench.check(f"the same answers in batches of {size}", together == alone)


def found(answer: Answer | Exception) -> list[tuple[str, float]]:
    if isinstance(answer, Exception):
        raise answer
    return [(result.id, result.score) for result in answer.results]


def record_full_batches(bench: Benchmark, node: Node, requests: Sequence[SearchRequest], sizes: Sequence[int]) -> None:
    """The processor time of a query by the size of its batch, in turns."""
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(1 if bench.quick else 5):
        for size, rounds in seconds.items():
            started = time.process_time()
            for start in range(0, len(requests), size):
                node.answer(requests[start : start + size])
            rounds.append(time.process_time() - started)
    for size, rounds in seconds.items():
        bench.record(
            f"full batches of {size}: processor time of a query", value=1e6 * min(rounds) / len(requests), unit="µs"
        )


def measure_capacity(node: Node, requests: Sequence[SearchRequest], *, seconds: float) -> float:
    """Answers per second with the default setting."""
    batcher: Batcher[Any, Any] = Batcher(node.answers, most=DEFAULT.most, window=DEFAULT.window_ms / 1e3)
    asked = drawn(requests, 0)
    outcome = closed_load(batcher, lambda: next(asked), n_clients=N_CLIENTS, seconds=seconds)
    batcher.close()
    return outcome.rate


def drawn(requests: Sequence[SearchRequest], seed: int) -> Iterator[SearchRequest]:
    generator = random.Random(seed)
    while True:
        yield generator.choice(requests)


def open_load(
    node: Node,
    requests: Sequence[SearchRequest],
    setting: Setting,
    rate: float,
    seconds: float,
    seed: int,
    outcome: Measured,
) -> None:
    """Add to `outcome` what a setting gets at `rate` requests a second."""
    batcher: Batcher[Any, Any] = Batcher(
        node.answers,
        most=setting.most,
        window=setting.window_ms / 1e3,
        capacity=_QUEUE,
        on_batch=outcome.batches.append,
    )
    sender = threading.Thread(target=send, args=(batcher, requests, rate, seconds, seed, outcome))
    started = time.process_time()
    sender.start()
    sender.join()
    batcher.close()
    outcome.processor_seconds += time.process_time() - started


def send(
    batcher: Batcher[Any, Any],
    requests: Sequence[SearchRequest],
    rate: float,
    seconds: float,
    seed: int,
    outcome: Measured,
) -> None:
    """Submit requests when they are due; the thread's own processor time is taken off."""
    generator, asked = random.Random(seed), drawn(requests, seed)
    due = time.perf_counter()
    end = due + seconds
    while (due := due + generator.expovariate(rate)) < end:
        wait = due - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        note_when_done(batcher.submit(next(asked)), due, outcome)
    outcome.processor_seconds -= time.thread_time()


def note_when_done(future: Future[Any], due: float, outcome: Measured) -> None:
    future.add_done_callback(lambda answered: outcome.latencies.append(time.perf_counter() - due))


def record(bench: Benchmark, load: float, capacity: float, measured: dict[Setting, Measured]) -> None:
    """The rows of one load, and what the default costs beside the best."""
    name = f"{load:.0%} of capacity"
    for setting, outcome in measured.items():
        rate = f"{len(outcome.latencies):,} queries at {load * capacity:,.0f}/s"
        bench.record(
            f"{name}, {setting}: processor time of a query",
            value=outcome.processor_us,
            unit="µs",
            note=f"{rate}; {np.mean(outcome.batches):.1f} in a batch",
        )
        bench.record(
            f"{name}, {setting}: p99",
            value=outcome.percentile_ms(99),
            unit="ms",
            note=f"p50 {outcome.percentile_ms(50):.2f} ms, p90 {outcome.percentile_ms(90):.2f} ms",
        )
    for figure, values in {
        "processor time of a query": {setting: outcome.processor_us for setting, outcome in measured.items()},
        "p50": {setting: outcome.percentile_ms(50) for setting, outcome in measured.items()},
        "p99": {setting: outcome.percentile_ms(99) for setting, outcome in measured.items()},
    }.items():
        best = min(values, key=lambda setting: values[setting])
        bench.record(
            f"{name}: {figure}, the default beside the best",
            value=values[DEFAULT] / values[best],
            unit="x",
            note=f"the default is {DEFAULT}, the best {best}; the capacity {capacity:,.0f} queries/s",
        )
