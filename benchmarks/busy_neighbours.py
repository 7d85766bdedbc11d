"""How much slower than one thread are the default threads, if two other processes keep the processors busy?

Threads that wait for each other at every step lose most on a busy machine: one that is not running holds up the others.
Training RankBoost, ranked search of 100 candidates, and predictions, each on the default number of threads and on one,
in turn, while two processes do nothing but use the processor. The figure is the default's median time divided by that
of one thread; the target is that a user who sets nothing never waits more than 20 % longer.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.extract_features import STREAMS, choose_queries, documents
from benchmarks.harness import Benchmark
from benchmarks.tree_cases import forest_ranker, grow_forest, rows_like_a_feature_set
from rankwell import Index, IndexWriter, RankBoost, make_ranking
from rankwell.features.feature_set import make_feature_set
from rankwell.scoring.scorer import RankerScorer
from rankwell.serving.ranking.ranked_search import RankedSearch

N_NEIGHBOURS = 2
MOST_TIMES_SLOWER = 1.2
N_CANDIDATES = 100

Call = Callable[[int | None], object]


def run(bench: Benchmark) -> None:
    with tempfile.TemporaryDirectory(prefix="rankwell-busy-") as folder:
        calls = {
            "train RankBoost, 100 rounds": (_training(bench), 5),
            f"ranked search of {N_CANDIDATES} candidates": (_search(bench, Path(folder)), 60),
            "predict, 1,000 trees, 1,000 documents": (_prediction(bench, 1000), 30),
            "predict, 1,000 trees, 20 documents": (_prediction(bench, 20), 60),
        }
        for name, (call, repeat) in calls.items():
            bench.check(f"{name}: the same result on any number of threads", _same(call(None), call(1)))
            quiet = _medians(call, 3 if bench.quick else repeat)
            with _neighbours():
                busy = _medians(call, 3 if bench.quick else repeat)
            bench.record(
                name,
                value=busy["default"] / busy["one"],
                unit="x one thread's time",
                target=None if bench.quick else MOST_TIMES_SLOWER,
                note=f"busy: default {busy['default'] * 1e3:.3g} ms, one thread {busy['one'] * 1e3:.3g} ms; without "
                f"neighbours: {quiet['default'] * 1e3:.3g} ms, {quiet['one'] * 1e3:.3g} ms",
            )


@contextmanager
def _neighbours() -> Iterator[None]:
    """Processes that use the processor until the end of the block."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(N_NEIGHBOURS)]
    try:
        time.sleep(0.2)
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _medians(call: Call, repeat: int) -> dict[str, float]:
    """The median seconds with the default threads and with one, called in turn."""
    seconds: dict[str, list[float]] = {"default": [], "one": []}
    for number in range(repeat):
        in_turn = (("default", None), ("one", 1))
        for name, n_jobs in in_turn if number % 2 else reversed(in_turn):
            start = time.perf_counter()
            call(n_jobs)
            seconds[name].append(time.perf_counter() - start)
    return {name: median(times) for name, times in seconds.items()}


def _same(one: object, other: object) -> bool:
    return bool(np.array_equal(np.asarray(one), np.asarray(other)))


def _training(bench: Benchmark) -> Call:
    """About as large as the demo's data."""
    n_queries = 10 if bench.quick else 120
    data = make_ranking(n_queries=n_queries, n_docs=100 * n_queries, n_features=136)
    n_rounds = 5 if bench.quick else 100

    def train(n_jobs: int | None) -> object:
        return RankBoost(n_rounds=n_rounds, device="cpu", n_jobs=n_jobs).fit(data).predict(data)

    return train


def _search(bench: Benchmark, folder: Path) -> Call:
    with IndexWriter(folder / "index") as writer:
        writer.add(islice(documents(bench), 600 if bench.quick else None))
        writer.commit()
    index = Index.open(folder / "index")
    query = choose_queries(index, 1)[0]
    features = make_feature_set("mslr", STREAMS)
    ranker = forest_ranker(grow_forest(100, 16, len(features)), len(features))
    searches = {
        n_jobs: RankedSearch(index, ranker, n_candidates=N_CANDIDATES, feature_set=features, n_jobs=n_jobs)
        for n_jobs in (None, 1)
    }
    return lambda n_jobs: searches[n_jobs].search(query, k=10).scores


def _prediction(bench: Benchmark, n_docs: int) -> Call:
    scorer = RankerScorer(forest_ranker(grow_forest(50 if bench.quick else 1000, 64, 136), 136))
    rows = rows_like_a_feature_set(n_docs, 136, seed=2)
    return lambda n_jobs: scorer.score(rows, n_jobs=n_jobs)
