"""What do four nodes cost beside one, and what do users notice when one of them is killed?

The documentation of Python's standard library in four shards: 1,000 candidates of all shards, a first pass, 100
documents to RankBoost, ten results with captions. `rankwell serve` starts a process for each shard; the load generator
is another process.

The overhead is the time to an answer less that of the slowest node in each round and of scoring that needs all
documents, one request after the other: HTTP, JSON, merging, and the connections between the processes. Four nodes on
fewer cores wait for a core before they see a request, which is not their own time either; so it is also measured with
a node for each core. How much of a core the server itself takes for a query, scoring included, is beside it.

Then, under an open load of half the capacity, a node is killed (SIGKILL). Its shard is missing until the server has
started it again: answers are partial, and come within the deadline.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from benchmarks.harness import Benchmark
from benchmarks.load_generator import PARTIAL, LatencyHistogram
from benchmarks.serve_queries import DEADLINE, load, port_of, serving, timed_answers
from benchmarks.served_cases import N_CANDIDATES, ServedCase, demo_case
from rankwell import Client, Index, RankedSearch
from rankwell.demo.candidates import build_index
from rankwell.kernels.threads import available_cores

N_SHARDS = 4
SHARDS = [f"shard-{number}-of-{N_SHARDS}" for number in range(N_SHARDS)]
_NODE_STAGES = ("parse", "select", "rank", "captions")
_RETURNS_WITHIN = 60.0


def run(bench: Benchmark) -> None:
    with tempfile.TemporaryDirectory(prefix="rankwell-shards-") as place:
        case = demo_case(Path(place), quick=bench.quick)
        split(case.folder)
        n_cores = available_cores()
        if 1 < n_cores < N_SHARDS:
            folders = write_shards(case.folder, n_cores)
            with serving(case, "--cache", "0", indexes=folders) as (process, client):
                record_overhead(bench, case, process, client, f"{n_cores} nodes", has_target=not bench.quick)
        with serving(case, "--cache", "0", indexes=SHARDS) as (process, client):
            check_answers(bench, case, client)
            has_target = n_cores >= N_SHARDS and not bench.quick
            record_overhead(bench, case, process, client, "four nodes", has_target=has_target)
            capacity = record_capacity(bench, case, client)
            record_kill(bench, case, process, client, capacity / 2)


def split(folder: Path) -> None:
    """Every fourth document to each shard; and all of them in the order of shards."""
    names = write_shards(folder, N_SHARDS)
    in_order = "".join((folder / f"{name}.jsonl").read_text("utf-8") for name in names)
    (folder / "in-order.jsonl").write_text(in_order, "utf-8")
    build_index(folder / "in-order.jsonl", folder / "in-order")


def write_shards(folder: Path, n_shards: int) -> list[str]:
    """The folders of so many shards of the documents."""
    lines = (folder / "documents.jsonl").read_text("utf-8").splitlines(keepends=True)
    names = [f"shard-{number}-of-{n_shards}" for number in range(n_shards)]
    for number, name in enumerate(names):
        path = folder / f"{name}.jsonl"
        path.write_text("".join(lines[number::n_shards]), "utf-8")
        build_index(path, folder / name)
    return names


def check_answers(bench: Benchmark, case: ServedCase, client: Client) -> None:
    index = Index.open(case.folder / "in-order")
    search = RankedSearch(index, case.folder / "cascade.rank", n_candidates=N_CANDIDATES)
    different = []
    for text in case.texts[:20]:
        found = search.search(index.parse(text, plain=True))
        results = client.search(text, plain=True, timeout_ms=30_000)["results"]
        if [(one["id"], one["score"]) for one in results] != list(zip(found.ids, found.scores, strict=True)):
            different.append(text)
    bench.check("four shards answer as one index, to the last bit", not different, ", ".join(different))


def record_overhead(
    bench: Benchmark,
    case: ServedCase,
    process: subprocess.Popen[str],
    client: Client,
    name: str,
    *,
    has_target: bool,
) -> None:
    over, whole = [], []
    texts = case.texts[: 20 if bench.quick else 200]
    for text in texts:
        # What is counted once for a word is not what a query costs.
        client.search(text, plain=True, timeout_ms=30_000)
    before = processor_seconds(process.pid)
    for seconds, answer in timed_answers(client, texts):
        over.append(1000 * seconds - sum(answer["stages_ms"].get(stage, 0.0) for stage in _NODE_STAGES))
        whole.append(1000 * seconds)
    used = 1000 * (processor_seconds(process.pid) - before) / len(texts)
    bench.record(
        f"{name}: HTTP, merging and JSON, p50",
        value=median(over),
        unit="ms",
        target=1.5 if has_target else None,
        note=f"a query takes {median(whole):.2f} ms, on {available_cores()} cores",
    )
    bench.record(f"{name}: processor time of the server for a query", value=used, unit="ms")


def processor_seconds(process: int) -> float:
    """What all threads of a process have run."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def record_capacity(bench: Benchmark, case: ServedCase, client: Client) -> float:
    outcome = load(port_of(client), case.texts, rate=0, seconds=2 if bench.quick else 20)
    bench.check("no request fails", outcome.n_failed == 0)
    note = f"p50 {1000 * outcome.answered.percentile(50):.1f} ms, on {os.cpu_count()} cores"
    bench.record("four nodes: capacity", value=outcome.rate, unit="queries/s", better="higher", note=note)
    return outcome.rate


def record_kill(
    bench: Benchmark, case: ServedCase, process: subprocess.Popen[str], client: Client, rate: float
) -> None:
    seconds = 8.0 if bench.quick else 30.0
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load, port_of(client), case.texts, rate=rate, seconds=seconds)
        time.sleep(2.0)
        killed = time.monotonic()
        os.kill(nodes_of(process)[SHARDS[1]], signal.SIGKILL)
        up, whole = wait_for_return(client, case.texts[0])
        outcome = loading.result()
    partial = outcome.latencies.get(PARTIAL, LatencyHistogram())
    in_time = max(_slowest(partial), _slowest(outcome.answered))
    bench.check("kill -9 of a node: no answer is an error", outcome.n_failed == 0 and len(outcome.refused) == 0)
    bench.check("kill -9 of a node: answers are marked partial meanwhile", len(partial) > 0)
    bench.record(
        "kill -9 of one of four nodes: the slowest answer",
        value=1000 * in_time,
        unit="ms",
        target=None if bench.quick else 1000 * DEADLINE,
        note=f"{len(partial)} of {len(partial) + len(outcome.answered)} answers were partial, at {rate:.0f}/s",
    )
    bench.record(
        "kill -9 of one of four nodes: whole again after it is back",
        value=whole - up,
        unit="s",
        target=None if bench.quick else 5.0,
        note=f"{whole - killed:.1f} s after it was killed",
    )


def wait_for_return(client: Client, text: str) -> tuple[float, float]:
    """When the node that was killed was up again, and when an answer was whole."""
    until = time.monotonic() + _RETURNS_WITHIN
    asking = Client(client.address)
    was_down, up = False, None
    while time.monotonic() < until:
        state = asking.index()["shards"][1]["nodes"][0]["state"]
        was_down = was_down or state != "up"
        if was_down and up is None and state == "up":
            up = time.monotonic()
        if up is not None and asking.search(text, plain=True)["degraded"] is None:
            return up, time.monotonic()
        time.sleep(0.02)
    raise RuntimeError("the node was not started again")


def nodes_of(process: subprocess.Popen[str]) -> dict[str, int]:
    """The processes of nodes by the name of their index."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    commands = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in children}
    return {Path(words[4].decode()).name: pid for pid, words in commands.items() if b"node" in words}


def _slowest(histogram: LatencyHistogram) -> float:
    return histogram.percentile(100) if len(histogram) else 0.0
