"""What does batching bring on a GPU: answers per second and joules a query, of 64 clients at once?

Two loads, each with batching and without it (batches of one). *Whole queries*: a node over 50,000 generated documents
parses, selects 1,000 candidates, extracts 125 features and evaluates a ranker like the thesis's R-M-BGD, without
captions. *Ranking alone*: extraction, transforms and evaluation, with the hits of 1,000 candidates (or of 100, what a
first pass leaves) in memory. 64 clients ask again as soon as they have their answer, in the same process.

Joules: the mean of the GPU's power.draw, sampled every 25 ms, by the answers per second, with the power of the idle GPU
and without it. The thesis measured whole systems, and prints no joules: its figures are printed beside for comparison.
Batches of n are those of n clients. `python -m benchmarks.serve_batches_cuda RESULTS.json` draws them, on a machine
with Matplotlib.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.closed_load import ClosedOutcome, closed_load
from benchmarks.harness import Benchmark
from benchmarks.hit_cases import STREAMS, web_hits
from benchmarks.paper_numbers import SEARCH_WATTS
from benchmarks.power import Watts, gpu_meter, sampled
from benchmarks.thesis_rankers import N_FEATURES, thesis_ranker
from benchmarks.tree_cases import rows_like_a_feature_set
from rankwell import IndexWriter, MadeRanker
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.features.hits import Hits
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.scorer import make_scorer
from rankwell.serving.answer import SearchRequest
from rankwell.serving.batching import Batcher
from rankwell.serving.deadline import Deadline
from rankwell.serving.node import Node

_FOREVER = 3600.0
_NO_DEADLINE = Deadline(float("inf"))
# Threads by which hits are read on the host: many threads wait for each other in the little that each has to do.
_HOST_THREADS = (None, 4, 1)
# Words of each stream of a generated document; word n occurs about 1 / (n + 10) as often as the most frequent one.
_LENGTHS = {"body": 60, "anchor": 6, "title": 5, "url": 4}
_N_WORDS = 20_000
_ASKED_WORDS = (20, 2000)
THESIS = (
    "10,000 documents a query, R-M-BGD: the GPU 2 x as efficient as the CPU, idle subtracted; idle: Kepler 19.35 W, "
    "Maxwell 1.44 W, system 67 W"
)


@dataclass(frozen=True)
class Sizes:
    """How large the benchmark is."""

    n_docs: int = 50_000
    n_candidates: int = 1000
    n_kept: int = 100
    n_clients: int = 64
    shrink: int = 1
    seconds: float = 2.0
    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    n_ranked: int = 10_000


QUICK = Sizes(300, 40, 10, 8, 20, 0.3, (1, 8), 100)


@dataclass(frozen=True)
class HitsRequest:
    """The hits of one query: what ranking alone is asked for."""

    hits: Hits
    deadline: Deadline = _NO_DEADLINE


def run(bench: Benchmark) -> None:
    measure(bench, "cuda", QUICK if bench.quick else Sizes(), gpu_meter())


def measure(bench: Benchmark, device: str, sizes: Sizes, meter: Watts) -> None:
    """The whole benchmark on a device. A part that fails is printed, and the others are measured all the same."""
    features = make_feature_set("mslr", STREAMS)
    ranker = replace(thesis_ranker("R-M-BGD", shrink=sizes.shrink), feature_names=features.names)
    ranking = Ranking(ranker, features, device)
    with sampled(meter) as idle_samples:
        time.sleep(sizes.seconds)
    idle = idle_samples.mean_watts()
    joules: list[Joules] = []
    for name, call in {
        "ranking alone": lambda: record_ranking(bench, ranking, sizes),
        "joules": lambda: joules.extend(record_joules(bench, ranking, sizes, meter, idle)),
        "the thesis's load": lambda: record_thesis_load(bench, ranker, device, sizes, meter, idle),
        "whole queries": lambda: record_whole(bench, ranker, device, sizes),
    }.items():
        try:
            call()
        except Exception:
            print(f"{name} failed:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
    bench.check("batching was measured", any("against off" in row.case for row in bench.rows))
    if joules:
        draw(joules, idle, bench.figure("joules"))


class Ranking:
    """Extraction, transforms and evaluation on one device, of the hits of several queries at once."""

    def __init__(self, ranker: RankerDescription, features: FeatureSet, device: str) -> None:
        self._features, self._scorer, self._expected = features, make_scorer(ranker, device), make_scorer(ranker)
        self._extractor: Any = None
        if device == "cuda":
            from rankwell.features.cuda_extraction import CudaFeatureExtractor

            self._extractor = CudaFeatureExtractor(features)

    def expected(self, hits: Hits) -> np.ndarray:
        """The CPU's scores."""
        return self._expected.score(extract(hits, self._features))

    def answer(self, requests: Sequence[HitsRequest]) -> list[np.ndarray]:
        """The scores of a batch, by request."""
        parts = [request.hits for request in requests]
        if self._extractor is None:
            return [self._scorer.score(extract(part, self._features)) for part in parts]
        ends = itertools.accumulate(part.n_candidates for part in parts[:-1])
        return np.split(self._extractor.score(parts, self._scorer), list(ends))


def record_ranking(bench: Benchmark, ranking: Ranking, sizes: Sizes) -> None:
    for n_candidates in (sizes.n_candidates, sizes.n_kept):
        requests = hit_requests(sizes.n_clients, n_candidates)
        together = ranking.answer(requests)
        same = all(
            np.allclose(scores, ranking.expected(request.hits), rtol=1e-6, atol=1e-6)
            for scores, request in list(zip(together, requests, strict=True))[:8]
        )
        bench.check(f"ranking {n_candidates:,} candidates: a batch gets the CPU's scores", same)
        compare(
            bench, f"ranking alone, {n_candidates:,} candidates a query", ranking.answer, cycled(requests), sizes, ""
        )


def record_whole(bench: Benchmark, ranker: RankerDescription, device: str, sizes: Sizes) -> None:
    with tempfile.TemporaryDirectory(prefix="rankwell-batches-") as place:
        folder = Path(place)
        started = time.perf_counter()
        write_documents(folder / "index", sizes.n_docs)
        MadeRanker.from_description(ranker).save(folder / "ranker.rank")
        rankers = {"ranker": folder / "ranker.rank"}
        requests = [SearchRequest(text, Deadline.after(_FOREVER), captions=False) for text in queries(500)]
        nodes = {
            n_jobs: Node(folder / "index", rankers, n_candidates=sizes.n_candidates, device=device, n_jobs=n_jobs)
            for n_jobs in _HOST_THREADS
        }
        seconds = time.perf_counter() - started
        n_jobs = quickest(nodes, requests[: sizes.n_clients])
        node = nodes[n_jobs]
        check_answers(bench, node, Node(folder / "index", rankers, n_candidates=sizes.n_candidates), requests[:16])
        answers = node.answer(requests[: sizes.n_clients])
        stages = answers[0].seconds
        each = ", ".join(f"{name} {1000 * stages[name] / len(answers):.3f}" for name in ("parse", "select", "rank"))
        note = f"{sizes.n_docs:,} documents, indexed and opened in {seconds:.0f} s; of a batch, ms a query: {each}; "
        note += f"the host used {n_jobs or 'all'} threads, the quickest of {_HOST_THREADS}"
        compare(bench, "whole queries, without captions", node.answers, cycled(requests), sizes, note)
        for one in nodes.values():
            one.close()


def quickest(nodes: dict[int | None, Node], requests: Sequence[SearchRequest]) -> int | None:
    """The number of threads of the host with which a batch is answered soonest."""
    seconds = {n_jobs: [] for n_jobs in nodes}
    for _ in range(4):
        for n_jobs, node in nodes.items():
            started = time.perf_counter()
            node.answer(requests)
            seconds[n_jobs].append(time.perf_counter() - started)
    return min(nodes, key=lambda n_jobs: min(seconds[n_jobs]))


def compare(
    bench: Benchmark,
    name: str,
    answer: Callable[[Sequence[Any]], Any],
    requests: Iterator[Any],
    sizes: Sizes,
    note: str,
) -> None:
    """Throughput and latency of all clients, in batches of any size and in batches of one."""
    together, alone = (
        load(answer, requests, most=most, n_clients=sizes.n_clients, seconds=sizes.seconds)
        for most in (sizes.n_clients, 1)
    )
    is_target = not bench.quick
    bench.record(
        f"{name}: batching on against off, answers per second",
        value=together.rate / alone.rate,
        unit="x",
        better="higher",
        target=4.0 if is_target else None,
        note=f"{sizes.n_clients} clients: {together.rate:,.0f}/s, {alone.rate:,.0f}/s one by one"
        + (note and "; ")
        + note,
    )
    bench.record(
        f"{name}: p99 with batching",
        value=1000 * together.percentile(99),
        unit="ms",
        target=5.0 if is_target else None,
        note=f"p50 {1000 * together.percentile(50):.2f} ms; one by one p99 {1000 * alone.percentile(99):.2f} ms",
    )


def load(
    answer: Callable[[Sequence[Any]], Any], requests: Iterator[Any], *, most: int, n_clients: int, seconds: float
) -> ClosedOutcome:
    batcher: Batcher[Any, Any] = Batcher(answer, most=most, capacity=2 * n_clients)
    try:
        # Buffers and graphs of this size are made before it counts.
        closed_load(batcher, lambda: next(requests), n_clients=n_clients, seconds=seconds / 6)
        return closed_load(batcher, lambda: next(requests), n_clients=n_clients, seconds=seconds)
    finally:
        batcher.close()


@dataclass(frozen=True)
class Joules:
    """The energy of a query in batches of one size."""

    size: int
    rate: float
    watts: float
    idle: float

    @property
    def each(self) -> float:
        return self.watts / self.rate

    @property
    def above_idle(self) -> float:
        return max(0.0, self.watts - self.idle) / self.rate


def record_joules(bench: Benchmark, ranking: Ranking, sizes: Sizes, meter: Watts, idle: float) -> Iterator[Joules]:
    requests = cycled(hit_requests(max(sizes.batches), sizes.n_candidates))
    for size in sizes.batches:
        with sampled(meter) as samples:
            outcome = load(ranking.answer, requests, most=size, n_clients=size, seconds=sizes.seconds)
        found = Joules(size, outcome.rate, samples.mean_watts(), idle)
        record_energy(bench, f"ranking alone, batches of {size}, {sizes.n_candidates:,} candidates a query", found)
        yield found


def record_thesis_load(
    bench: Benchmark, ranker: RankerDescription, device: str, sizes: Sizes, meter: Watts, idle: float
) -> None:
    """The thesis's power experiment: a constant load of queries of 10,000 documents, whose features are known."""
    scorer = make_scorer(ranker, device)
    rows = rows_like_a_feature_set(sizes.n_ranked, N_FEATURES, seed=3)
    scorer.score(rows)
    started, n_queries = time.perf_counter(), 0
    with sampled(meter) as samples:
        while time.perf_counter() < started + sizes.seconds:
            scorer.score(rows)
            n_queries += 1
        rate = n_queries / (time.perf_counter() - started)
    found = Joules(1, rate, samples.mean_watts(), idle)
    record_energy(bench, f"evaluation alone, {sizes.n_ranked:,} documents a query", found, paper=THESIS)


def record_energy(bench: Benchmark, name: str, found: Joules, paper: str | None = None) -> None:
    bench.record(
        f"{name}: energy of a query, idle included",
        value=1000 * found.each,
        unit="mJ",
        paper=paper,
        note=f"idle subtracted {1000 * found.above_idle:.3f} mJ; {found.watts:.1f} W at {found.rate:,.0f} queries/s, "
        f"idle {found.idle:.1f} W",
    )


def check_answers(bench: Benchmark, node: Node, on_cpu: Node, requests: Sequence[SearchRequest]) -> None:
    for found, expected in zip(node.answer(requests), on_cpu.answer(requests), strict=True):
        if isinstance(found, Exception) or isinstance(expected, Exception):
            raise RuntimeError(f"a query failed: {found!r}, {expected!r}")
        scores, wanted = ([result.score for result in answer.results] for answer in (found, expected))
        if found.fallback is not None or not np.allclose(scores, wanted, rtol=1e-6, atol=1e-6):
            bench.check("whole queries: the device's scores are the CPU's", False, found.fallback or "")
    bench.check("whole queries: the device's scores are the CPU's", True)


def hit_requests(n_queries: int, n_candidates: int) -> list[HitsRequest]:
    return [HitsRequest(web_hits(1, n_candidates=n_candidates, seed=seed)) for seed in range(n_queries)]


def cycled(requests: Sequence[Any]) -> Iterator[Any]:
    return itertools.cycle(requests)


def write_documents(folder: Path, n_docs: int) -> None:
    """An index of generated documents with the streams of the feature set."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(_N_WORDS)])
    share = np.cumsum(1 / (np.arange(_N_WORDS) + 10))
    share /= share[-1]
    with IndexWriter(folder) as writer:
        for start in range(0, n_docs, 5000):
            n_own = min(5000, n_docs - start)
            texts = {
                stream: words[np.searchsorted(share, rng.random((n_own, length)))]
                for stream, length in _LENGTHS.items()
            }
            writer.add(
                {"id": f"d{start + number}", **{stream: " ".join(own[number]) for stream, own in texts.items()}}
                for number in range(n_own)
            )
        writer.commit()


def queries(n_queries: int) -> list[str]:
    rng = np.random.default_rng(1)
    return [" ".join(f"w{word}" for word in rng.integers(*_ASKED_WORDS, 3)) for _ in range(n_queries)]


def draw(joules: Sequence[Joules], idle: float, path: Path) -> None:
    """Energy by the size of batches, beside the powers that the thesis prints; without Matplotlib nothing is drawn."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("the figure needs Matplotlib: python -m benchmarks.serve_batches_cuda RESULTS.json", file=sys.stderr)
        return
    drawing = Figure(figsize=(10, 4), layout="constrained")
    energy, power = drawing.subplots(1, 2)
    sizes = [one.size for one in joules]
    energy.plot(sizes, [1000 * one.each for one in joules], marker="o", label="idle included")
    energy.plot(sizes, [1000 * one.above_idle for one in joules], marker="o", label="idle subtracted")
    energy.set(xscale="log", yscale="log", xlabel="queries in a batch", title="energy of a query, mJ")
    energy.set_xticks(sizes, [str(size) for size in sizes])
    energy.legend()
    ours = {"this GPU, idle": idle} | {f"this GPU, batches of {one.size}": one.watts for one in joules}
    bars = {f"thesis: {name}": watts for name, watts in SEARCH_WATTS.items()} | ours
    power.barh(list(bars), list(bars.values()), color=["0.7"] * len(SEARCH_WATTS) + ["C0"] * len(ours))
    power.set(title="power, W")
    power.tick_params(axis="y", labelsize=7)
    drawing.savefig(path, dpi=120)


def main() -> None:
    """Draw the figure of a results file, beside it."""
    path = Path(sys.argv[1])
    joules = []
    for row in json.loads(path.read_text())["rows"]:
        case, note = row["case"], row["note"]
        if case.startswith("ranking alone, batches of"):
            watts, _, rest = note.partition("; ")[2].partition(" W at ")
            rate, idle = rest.partition(" queries/s, idle ")[::2]
            size = case.removeprefix("ranking alone, batches of ").partition(",")[0]
            joules.append(Joules(int(size), float(rate.replace(",", "")), float(watts), float(idle.split()[0])))
    draw(joules, joules[0].idle, path.with_suffix(".joules.png"))


if __name__ == "__main__":
    main()
