"""How many queries does one node answer in time, and what happens above that?

The documentation of Python's standard library; 1,000 candidates, a linear first pass, 100 documents to the second
(RankBoost), ten results with captions. `rankwell serve` is one process, the load generator another. Each request is one
of the collection's known-item queries; the result cache is off, unless it is what is measured.

Capacity is the rate of complete answers to 16 clients that each wait for their answer. Latencies of open loads count
from when a request was due. Overload: goodput is the rate of complete answers that came within the deadline, at three
times the capacity. The generator runs on the same cores as the server; how much of a core it took is said, and how many
requests it can send at most, to a server that only answers. The overhead of HTTP and JSON is what the client sees less
the node's own time, one request after the other.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from benchmarks.harness import Benchmark
from benchmarks.load_generator import PARTIAL, LatencyHistogram
from benchmarks.provenance import ROOT
from rankwell import Client, Index, LeastSquares, MadeRanker, RankBoost, RankedSearch
from rankwell.demo.candidates import build_index
from rankwell.demo.collection import make_collection
from rankwell.demo.collection_files import write_documents
from rankwell.demo.library import read_library
from rankwell.features.feature_set import make_feature_set
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features
from rankwell.scoring.composition import FirstPass, RankerPart

N_CANDIDATES, KEEP, DEADLINE = 1000, 100, 0.5
N_QUERIES, N_TRAINING, N_CLIENTS = 400, 100, 16
FIRST = ("bm25.whole", "covered_terms.whole")
_MEGABYTE = 1 << 20


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


def run(bench: Benchmark) -> None:
    with tempfile.TemporaryDirectory(prefix="rankwell-serve-") as place:
        folder = Path(place)
        texts = prepare(folder, quick=bench.quick)
        with serving(folder, "--cache", "0") as (process, client):
            check_answers(bench, folder, client, texts[:20])
            record_overhead(bench, client, texts[:200])
            capacity = record_capacity(bench, client, texts)
            record_steady(bench, process, client, texts, 0.8 * capacity)
            record_overload(bench, client, texts, capacity)
        with serving(folder) as (_, client):
            record_cache_hits(bench, client, texts[0])


def prepare(folder: Path, *, quick: bool) -> list[str]:
    """`folder/index` and `folder/cascade.rank`; returns queries."""
    collection = make_collection(read_library(), N_QUERIES, 0)
    index = build_index(write_documents(collection.documents, folder), folder / "index")
    known = collection.known_items[: 20 if quick else N_TRAINING]
    queries = [QueryText(str(number), item.query) for number, item in enumerate(known)]
    qrels = {str(number): dict(item.grades) for number, item in enumerate(known)}
    features = make_feature_set("full", tuple(index.schema.streams), tuple(index.schema.statics))
    train = judged_features(index, queries, qrels, features, source="top", n_candidates=N_CANDIDATES).dataset
    few = [features.names.index(name) for name in FIRST]
    first = LeastSquares().fit(train.features[:, few], train.labels, group=train.query_sizes)
    second = RankBoost(n_rounds=10 if quick else 100, n_jobs=1).fit(train)
    part = RankerPart("first", tuple(few), replace(first.description_, feature_names=FIRST))
    cascade = replace(second.description_, parts=(part,), first_pass=FirstPass(0, KEEP))
    MadeRanker.from_description(cascade).save(folder / "cascade.rank")
    return [item.query for item in collection.known_items]


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    command = [sys.executable, "-m", "rankwell", "serve", str(folder / "index"), "--port", "0"]
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


def load(client: Client, texts: Sequence[str], *, rate: float, seconds: float) -> Outcome:
    """A load from another process: open with a rate, closed without one."""
    port = int(client.address.rpartition(":")[2])
    return generate(port, texts, rate=rate, seconds=seconds)


def generate(port: int, texts: Sequence[str], *, rate: float, seconds: float) -> Outcome:
    """A load on a port of this machine."""
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


def generator_limit(texts: Sequence[str], *, seconds: float) -> float:
    """How many requests per second the generator sends to a server that only answers."""
    command = [sys.executable, "-m", "benchmarks.load_generator", "--answer"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            outcome = generate(int(process.stdout.readline()), texts, rate=0, seconds=seconds)
        finally:
            process.terminate()
    return len(outcome.answered) / outcome.seconds


def check_answers(bench: Benchmark, folder: Path, client: Client, texts: Sequence[str]) -> None:
    search = RankedSearch(Index.open(folder / "index"), folder / "cascade.rank", n_candidates=N_CANDIDATES)
    for text in texts:
        found = search.search(search.index.parse(text, plain=True))
        results = client.search(text, plain=True, timeout_ms=30_000)["results"]
        same = [(one["id"], one["score"]) for one in results] == list(zip(found.ids, found.scores, strict=True))
        if not same:
            bench.check("the same answers as ranked search", False, text)
    bench.check("the same answers as ranked search", True)


def record_overhead(bench: Benchmark, client: Client, texts: Sequence[str]) -> None:
    over, whole = [], []
    for text in texts[:20] if bench.quick else texts:
        started = time.perf_counter()
        answer = client.search(text, plain=True, timeout_ms=30_000)
        seconds = time.perf_counter() - started
        stages = answer["stages_ms"]
        over.append(1000 * seconds - sum(stages.values()) + stages["wait"])
        whole.append(1000 * seconds)
    note = f"a query takes {median(whole):.2f} ms at the client"
    bench.record(
        "HTTP, queue and JSON, p50", value=median(over), unit="ms", target=None if bench.quick else 1.5, note=note
    )


def record_capacity(bench: Benchmark, client: Client, texts: Sequence[str]) -> float:
    outcome = load(client, texts, rate=0, seconds=2 if bench.quick else 30)
    bench.check("no request fails", outcome.n_failed == 0)
    capacity = len(outcome.answered) / outcome.seconds
    note = f"{N_CLIENTS} clients; p50 {1000 * outcome.answered.percentile(50):.1f} ms"
    bench.record("capacity", value=capacity, unit="queries/s", better="higher", note=note)
    limit = generator_limit(texts, seconds=1 if bench.quick else 3)
    bench.check(
        "the generator can send twice what it is to send", limit >= 6 * capacity, f"{limit:.0f} requests/s at most"
    )
    return capacity


def record_steady(
    bench: Benchmark, process: subprocess.Popen[str], client: Client, texts: Sequence[str], rate: float
) -> None:
    before = resident_bytes(process.pid)
    outcome = load(client, texts, rate=rate, seconds=2 if bench.quick else 300)
    grown = resident_bytes(process.pid) - before
    answered = outcome.answered
    bench.check("80 % of capacity: no request fails", outcome.n_failed == 0)
    percentiles = ", ".join(f"p{share:g} {1000 * answered.percentile(share):.1f}" for share in (50, 90, 99.9))
    bench.record(
        "80 % of capacity, p99",
        value=1000 * answered.percentile(99),
        unit="ms",
        target=None if bench.quick else 1000 * DEADLINE,
        note=f"{len(answered):,} queries at {rate:.0f}/s, {len(outcome.refused)} refused; {percentiles} ms",
    )
    bench.record("80 % of capacity, growth of memory", value=grown / _MEGABYTE, unit="MB")


def record_overload(bench: Benchmark, client: Client, texts: Sequence[str], capacity: float) -> None:
    outcome = load(client, texts, rate=3 * capacity, seconds=2 if bench.quick else 30)
    bench.check("3 × capacity: no request fails", outcome.n_failed == 0)
    bench.record(
        "3 × capacity, goodput: share of capacity",
        value=outcome.answered.within(DEADLINE) / outcome.seconds / capacity,
        unit="",
        better="higher",
        target=None if bench.quick else 0.9,
        note=f"p99 of answers {1000 * outcome.answered.percentile(99):.0f} ms; {outcome.n_partial} more were partial; "
        f"the generator took {outcome.generator_cores:.2f} of a core",
    )
    refused = outcome.refused
    bench.record(
        "3 × capacity, refusals, p99",
        value=1000 * refused.percentile(99) if len(refused) else 0.0,
        unit="ms",
        target=None if bench.quick else 10,
        note=f"{len(refused):,} refused; p50 {1000 * refused.percentile(50):.1f} ms",
    )


def record_cache_hits(bench: Benchmark, client: Client, text: str) -> None:
    client.search(text, timeout_ms=30_000)
    answers = [client.search(text) for _ in range(20 if bench.quick else 1000)]
    bench.check("answers come from the cache", all(answer["cached"] for answer in answers))
    took = median(answer["took_ms"] for answer in answers)
    bench.record("cache hit at the server, p50", value=took, unit="ms", target=None if bench.quick else 1)


def resident_bytes(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]
