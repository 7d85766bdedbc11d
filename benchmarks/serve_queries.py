"""How many queries does one node answer in time, and what happens above that?

The documentation of Python's standard library (`serve_many_documents` is the same with more of them): 1,000 candidates,
a first pass, 100 documents to the second (RankBoost), ten results with captions; the result cache is off, unless it is
what is measured. `rankwell serve` has a process for each core; what one process alone does, which uses little more than
one core, is beside it. The load generator is another process, on the same cores; how much of a core it took is said,
and how many requests it can send at most, to a server that only answers.

Capacity is the rate of complete answers to 16 clients that each wait for their answer. The rival is tantivy's top
1,000, all of them scored by LightGBM (100 trees of 31 leaves) from Python, behind the same HTTP library, in the fastest
of several divisions of the cores, by clients of the same kind. It needs features: those that our second pass reads,
extracted by Rankwell; or, in its favour, given for nothing.

Latencies of open loads count from when a request was due. Overload: goodput is the rate of complete answers that came
within the deadline, at three times the capacity; the capacity is measured again for it, before and after, because the
speed of a machine may change in minutes of full load, and their mean is what goodput is a share of. The overhead of
HTTP and JSON is what the client sees less the node's own time, one request after the other. Memory is what the
processes have besides mapped files.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

from benchmarks.harness import Benchmark
from benchmarks.load_generator import PARTIAL, Connection, LatencyHistogram, request_of
from benchmarks.provenance import ROOT
from benchmarks.rivals import tantivy_lightgbm as rival
from benchmarks.served_cases import N_CANDIDATES, ServedCase, demo_case
from rankwell import Client, Index, RankedSearch
from rankwell.kernels.threads import available_cores

DEADLINE = 0.5
N_CLIENTS = 16
_MEGABYTE = 1 << 20
_STEADY_SECONDS = 300


@dataclass(frozen=True)
class Outcome:
    """What a load got: the latencies of each status, its duration, and how much of a core the generator took."""

    latencies: dict[int, LatencyHistogram]
    seconds: float
    generator_cores: float

    @property
    def answered(self) -> LatencyHistogram:
        return self.latencies.get(200, LatencyHistogram())

    @property
    def refused(self) -> LatencyHistogram:
        return self.latencies.get(503, LatencyHistogram())

    @property
    def n_partial(self) -> int:
        return len(self.latencies.get(PARTIAL, ()))

    @property
    def n_failed(self) -> int:
        known = (200, 503, PARTIAL)
        return sum(len(histogram) for status, histogram in self.latencies.items() if status not in known)

    @property
    def rate(self) -> float:
        """Complete answers per second."""
        return len(self.answered) / self.seconds


def run(bench: Benchmark) -> None:
    with tempfile.TemporaryDirectory(prefix="rankwell-serve-") as place:
        measure(bench, demo_case(Path(place), quick=bench.quick))


def measure(bench: Benchmark, case: ServedCase) -> None:
    """All rows of one collection."""
    n_processes = max(2, available_cores())
    with serving(case, "--cache", "0") as (_, client):
        check_answers(bench, case, client)
        record_overhead(bench, case, client)
        of_one = measure_capacity(bench, case, client)
        record_overload(bench, f"{case.name}, one process", case, client, has_targets=False)
    with serving(case) as (_, client):
        record_cache_hits(bench, case, client)
    with serving(case, "--cache", "0", "--processes", str(n_processes)) as (process, client):
        check_answers(bench, case, client)
        capacity = measure_capacity(bench, case, client)
        record_steady(bench, case, process, client, 0.8 * capacity)
        record_overload(bench, case.name, case, client, has_targets=not bench.quick)
    bench.record(
        f"{case.name}: capacity, {n_processes} processes beside one",
        value=capacity / of_one,
        unit="",
        better="higher",
        note=f"{capacity:.0f} queries/s, one process {of_one:.0f}",
    )
    # After ours has ended, so that neither takes memory or cores from the other.
    record_capacity(bench, case, capacity)


@contextmanager
def serving(
    case: ServedCase, *options: str, indexes: Sequence[str] = ("index",)
) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """A server of a case; indexes : folders of the case, several are shards"""
    folder = case.folder
    command = [sys.executable, "-m", "rankwell", "serve", *(str(folder / name) for name in indexes), "--port", "0"]
    command += ["--ranker", str(folder / "cascade.rank"), "--candidates", str(N_CANDIDATES), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        address = re.search(r"http://\S+", process.stderr.readline())
        if address is None:
            raise RuntimeError(f"the server did not start: {process.stderr.read()}")
        with Client(address[0]) as client:
            yield process, client
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


@contextmanager
def printing_port(*command: str) -> Iterator[int]:
    """A process that prints the port on which it answers."""
    with subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def load(port: int, texts: Sequence[str], *, rate: float, seconds: float) -> Outcome:
    """A load on a port of this machine, from another process: open with a rate, closed without one."""
    # Who waits for the answer before asking again waits as long as it takes: nothing is refused.
    patience = {} if rate else {"timeout_ms": 30_000}
    paths = ["/search?" + urlencode({"q": text, "plain": "true"} | patience) for text in texts]
    asked = {"host": "127.0.0.1", "port": port, "paths": paths, "rate": rate, "seconds": seconds}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load_generator"],
        input=json.dumps(asked | {"clients": N_CLIENTS, "seed": 1}),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    answer = json.loads(done.stdout)
    latencies = {int(status): LatencyHistogram(dict(counts)) for status, counts in answer["latencies"].items()}
    return Outcome(latencies, answer["seconds"], answer["processor_seconds"] / answer["seconds"])


def port_of(client: Client) -> int:
    return int(client.address.rpartition(":")[2])


def check_answers(bench: Benchmark, case: ServedCase, client: Client) -> None:
    index = Index.open(case.folder / "index")
    search = RankedSearch(index, case.folder / "cascade.rank", n_candidates=N_CANDIDATES)
    for text in case.texts[:20]:
        found = search.search(index.parse(text, plain=True))
        results = client.search(text, plain=True, timeout_ms=30_000)["results"]
        same = [(one["id"], one["score"]) for one in results] == list(zip(found.ids, found.scores, strict=True))
        if not same:
            bench.check(f"{case.name}: the same answers as ranked search", False, text)
    bench.check(f"{case.name}: the same answers as ranked search", True)


def timed_answers(client: Client, texts: Sequence[str]) -> Iterator[tuple[float, dict[str, Any]]]:
    """The seconds from a request to the last byte of its answer, one after the other, and the answer.

    Over a bare connection: what a library of the client's side takes is not the server's.
    """
    connection = Connection(socket.create_connection(("127.0.0.1", port_of(client)), 60))
    connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection.socket:
        for text in texts:
            path = "/search?" + urlencode({"q": text, "plain": "true", "timeout_ms": 30_000})
            started = time.perf_counter()
            connection.send(request_of("127.0.0.1", path), started)
            while (status := connection.answer_status()) is None:
                pass
            seconds = time.perf_counter() - started
            if status != 200:
                raise RuntimeError(f"a search was answered with the status {status}.")
            yield seconds, json.loads(connection.received.partition(b"\r\n\r\n")[2])


def record_overhead(bench: Benchmark, case: ServedCase, client: Client) -> None:
    over, whole = [], []
    for seconds, answer in timed_answers(client, case.texts[: 20 if bench.quick else 200]):
        stages = answer["stages_ms"]
        over.append(1000 * seconds - sum(stages.values()) + stages["wait"])
        whole.append(1000 * seconds)
    bench.record(
        f"{case.name}: HTTP, queue and JSON, p50",
        value=median(over),
        unit="ms",
        target=None if bench.quick else 1.5,
        note=f"a query takes {median(whole):.2f} ms at the client",
    )


def measure_capacity(bench: Benchmark, case: ServedCase, client: Client) -> float:
    # A first load, which is not counted, touches the index.
    load(port_of(client), case.texts, rate=0, seconds=1 if bench.quick else 3)
    outcome = load(port_of(client), case.texts, rate=0, seconds=2 if bench.quick else 10)
    bench.check(f"{case.name}, capacity: no request fails", outcome.n_failed == 0)
    with printing_port("benchmarks.load_generator", "--answer") as port:
        limit = load(port, case.texts, rate=0, seconds=1 if bench.quick else 2).rate
    # In its quick form the machine has other things to do, and nothing is concluded from the figures.
    bench.check(
        f"{case.name}: the generator can send {'' if bench.quick else 'twice '}what it is to send",
        limit >= (3 if bench.quick else 6) * outcome.rate,
        f"{limit:,.0f} requests/s at most",
    )
    return outcome.rate


def record_capacity(bench: Benchmark, case: ServedCase, capacity: float) -> None:
    """Our capacity beside the rival's, with both kinds of features. A rival that fails does not lose our figures."""
    best: dict[str, tuple[float | None, str]] = dict.fromkeys(rival.FEATURES, (None, "it is not installed"))
    if rival.IS_INSTALLED:
        try:
            rival.prepare(case)
            best = {features: best_rival(bench, case, features) for features in rival.FEATURES}
        except Exception as error:
            best = dict.fromkeys(rival.FEATURES, (None, f"it failed: {error}"))
    for features, words in (("extracted", "features extracted"), ("given", "features for nothing")):
        value, note = best[features]
        bench.record(
            f"{case.name}: capacity, the rival's {words}",
            value=capacity,
            unit="queries/s",
            better="higher",
            target=None if bench.quick or value is None else 3 * value,
            rival=rival.NAME,
            rival_value=value,
            note=f"{N_CLIENTS} clients; the rival: {note}",
        )


def best_rival(bench: Benchmark, case: ServedCase, features: str) -> tuple[float, str]:
    """The rival's capacity in the way that is the fastest, and which that is."""
    ways = rival.WAYS[:1] if bench.quick else rival.WAYS
    seconds = 1 if bench.quick else 5
    rate, (n_workers, n_threads) = max((rival_capacity(case, features, *way, seconds=seconds), way) for way in ways)
    return rate, f"{n_workers} workers, LightGBM on {n_threads} threads"


def rival_capacity(case: ServedCase, features: str, n_workers: int, n_threads: int, *, seconds: float) -> float:
    options = ["--features", features, "--workers", str(n_workers), "--threads", str(n_threads)]
    with printing_port("benchmarks.rivals.tantivy_lightgbm", str(case.folder), *options) as port:
        load(port, case.texts, rate=0, seconds=1)
        outcome = load(port, case.texts, rate=0, seconds=seconds)
    if outcome.n_failed:
        raise RuntimeError(f"{outcome.n_failed} requests to the rival failed.")
    return outcome.rate


def record_steady(
    bench: Benchmark, case: ServedCase, process: subprocess.Popen[str], client: Client, rate: float
) -> None:
    before = own_bytes(process.pid)
    outcome = load(port_of(client), case.texts, rate=rate, seconds=2 if bench.quick else _STEADY_SECONDS)
    grown = own_bytes(process.pid) - before
    answered = outcome.answered
    bench.check(f"{case.name}, 80 % of capacity: no request fails", outcome.n_failed == 0)
    percentiles = ", ".join(f"p{share:g} {1000 * answered.percentile(share):.1f}" for share in (50, 90, 99.9))
    bench.record(
        f"{case.name}: 80 % of capacity for {outcome.seconds:.0f} s, p99",
        value=1000 * answered.percentile(99),
        unit="ms",
        target=None if bench.quick else 1000 * DEADLINE,
        note=f"{len(answered):,} queries at {rate:.0f}/s; {percentiles} ms; the generator took "
        f"{outcome.generator_cores:.2f} of a core",
    )
    bench.record(
        f"{case.name}: 80 % of capacity, refused or partial",
        value=len(outcome.refused) + outcome.n_partial,
        unit="requests",
        target=None if bench.quick else 0,
        note=f"{len(outcome.refused)} refused, {outcome.n_partial} partial",
    )
    bench.record(
        f"{case.name}: 80 % of capacity, growth of memory",
        value=grown / _MEGABYTE,
        unit="MB",
        target=None if bench.quick else 16,
        note=f"from {before / _MEGABYTE:.0f} MB",
    )


def record_overload(bench: Benchmark, name: str, case: ServedCase, client: Client, *, has_targets: bool) -> None:
    seconds = 2 if bench.quick else 10
    before = load(port_of(client), case.texts, rate=0, seconds=seconds / 2).rate
    outcome = load(port_of(client), case.texts, rate=3 * before, seconds=seconds)
    after = load(port_of(client), case.texts, rate=0, seconds=seconds / 2).rate
    capacity = (before + after) / 2
    bench.check(f"{name}, 3 × capacity: no request fails", outcome.n_failed == 0)
    bench.record(
        f"{name}: 3 × capacity, goodput: share of capacity",
        value=outcome.answered.within(DEADLINE) / outcome.seconds / capacity,
        unit="",
        better="higher",
        target=0.9 if has_targets else None,
        note=f"capacity {before:.0f}/s before, {after:.0f}/s after; p99 of answers "
        f"{1000 * outcome.answered.percentile(99):.0f} ms; {outcome.n_partial} more were partial; "
        f"the generator took {outcome.generator_cores:.2f} of a core",
    )
    refused = outcome.refused
    bench.record(
        f"{name}: 3 × capacity, refusals, p99",
        value=1000 * refused.percentile(99) if len(refused) else 0.0,
        unit="ms",
        target=10 if has_targets else None,
        note=f"{len(refused):,} refused; p50 {1000 * refused.percentile(50):.1f} ms",
    )


def record_cache_hits(bench: Benchmark, case: ServedCase, client: Client) -> None:
    text = case.texts[0]
    client.search(text, timeout_ms=30_000)
    answers = [client.search(text) for _ in range(20 if bench.quick else 1000)]
    bench.check(f"{case.name}: answers come from the cache", all(answer["cached"] for answer in answers))
    took = median(answer["took_ms"] for answer in answers)
    bench.record(f"{case.name}: cache hit at the server, p50", value=took, unit="ms", target=None if bench.quick else 1)


def own_bytes(process: int) -> int:
    """Resident memory of a process and those that it has started, without mapped files."""
    status = Path(f"/proc/{process}/status").read_text()
    started = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    own = 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1])  # type: ignore[index]
    return own + sum(own_bytes(int(child)) for child in started)
