"""What do several processes on Ray cost beside the threads of one, and what does a killed worker change?

Two workers of one thread each against one process of two threads, on the same data and cores: RankBoost on a quarter of
the FPGA paper's documents, by documents and by features, and RankSVM at the size of MSLR-WEB10K. What is more than once
the time is Ray, the exchange between workers, and work that each of them does for itself. A round's time is the mean of
all rounds after the first 20, with everything that a user waits for; reading is not in it.

Then a worker is killed (SIGKILL) at a random moment of a training of 200 rounds, twenty times.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.rankboost_cases import paper_ranker
from rankwell import RankBoost, RankingDataset, RankSVM, make_ranking, write
from rankwell.cluster.session import cluster_session

TWO_WORKERS, ONE_WORKER, RANKSVM = 1.15, 1.05, 1.25  # times the time of one process
N_KILLS = 20
_SKIPPED_ROUNDS = 20
_SECONDS_TO_BEGIN = 60.0


def run(bench: Benchmark) -> None:
    with cluster_session("local", n_cpus=2), tempfile.TemporaryDirectory(prefix="rankwell-cluster-") as place:
        record_rankboost(bench, Path(place))
        record_ranksvm(bench, Path(place))
        record_kills(bench, Path(place))


def write_parts(dataset: RankingDataset, folder: Path, name: str, n_parts: int) -> list[str]:
    """Whole queries, about equally many documents in each part."""
    ends = [int(np.searchsorted(dataset.query_ptr, dataset.n_docs * part / n_parts)) for part in range(1, n_parts)]
    paths = []
    for number, queries in enumerate(np.split(np.arange(dataset.n_queries), ends)):
        path = folder / f"{name}-{number}.feather"
        write(dataset.subset(queries), path)
        paths.append(str(path))
    return paths


def record_rankboost(bench: Benchmark, folder: Path) -> None:
    dataset = make_ranking("far", scale=0.005 if bench.quick else 0.25)
    n_rounds, n_runs = (25, 1) if bench.quick else (200, 3)
    parts = write_parts(dataset, folder, "far", 2)

    def alone(n_jobs: int) -> RankBoost:
        return paper_ranker(n_rounds=n_rounds, device="cpu", n_jobs=n_jobs).fit(dataset)

    def together(workers: int, division: str) -> RankBoost:
        ranker = paper_ranker(n_rounds=n_rounds, n_jobs=1)
        return ranker.fit_cluster(parts, workers=workers, division=division)

    cases: dict[str, Callable[[], RankBoost]] = {
        "two threads": lambda: alone(2),
        "two workers, by documents": lambda: together(2, "documents"),
        "two workers, by features": lambda: together(2, "features"),
        "one thread": lambda: alone(1),
        "one worker": lambda: together(1, "documents"),
    }
    # One after another, several times: what else the machine does meets all of them.
    rankers: dict[str, list[RankBoost]] = {name: [] for name in cases}
    for _ in range(n_runs):
        for name, train in cases.items():
            rankers[name].append(train())
    states = {name: found[0].state_ for name, found in rankers.items()}
    for name, state in states.items():
        same = all(np.array_equal(state[key], states["two threads"][key]) for key in state)
        bench.check(f"the model of two threads: {name}", same)
    seconds = {name: min(map(seconds_a_round, found)) for name, found in rankers.items()}
    for name, against, target in (
        ("two workers, by documents", "two threads", TWO_WORKERS),
        ("two workers, by features", "two threads", None),
        ("one worker", "one thread", ONE_WORKER),
    ):
        report = rankers[name][0].cluster_  # type: ignore[attr-defined]
        sent = max(worker.bytes_sent for worker in report.workers) / n_rounds
        bench.record(
            f"RankBoost, a quarter of far, a round: {name}",
            value=seconds[name] / seconds[against],
            unit=f"times {against}",
            target=None if bench.quick else target,
            note=f"{seconds[name] * 1e3:.3g} ms, {against} {seconds[against] * 1e3:.3g} ms; a worker sends "
            f"{sent / 1024:.3g} KiB a round and waits {report.share_waiting:.0%} of the time",
        )


def seconds_a_round(ranker: Any) -> float:
    seconds = ranker.history_["seconds"]
    return float(seconds[-1] - seconds[_SKIPPED_ROUNDS - 1]) / (len(seconds) - _SKIPPED_ROUNDS)


def record_ranksvm(bench: Benchmark, folder: Path) -> None:
    dataset = make_ranking("mslr10k", scale=0.003 if bench.quick else 1.0, standardised=True)
    parts = write_parts(dataset, folder, "mslr10k", 2)
    settings: dict[str, Any] = {"C": 10.0 / dataset.n_docs, "normalize": "none", "device": "auto"}
    times: dict[str, list[float]] = {"alone": [], "together": []}
    objectives = {}
    for _ in range(1 if bench.quick else 3):
        alone = RankSVM(**{**settings, "device": "cpu"}, n_jobs=2).fit(dataset)
        together = RankSVM(**settings, n_jobs=1).fit_cluster(parts, workers=2)
        for name, ranker in (("alone", alone), ("together", together)):
            times[name].append(ranker.history_["seconds"][-1] / ranker.history_["products"][-1])
            objectives[name] = ranker.history_["objective"][-1]
    close = abs(objectives["together"] - objectives["alone"]) <= 1e-8 * objectives["alone"]
    bench.check("the objective of one process", close, f"{objectives}")
    seconds = {name: min(found) for name, found in times.items()}
    bench.record(
        "RankSVM, mslr10k, a product and its share of the rest: two workers",
        value=seconds["together"] / seconds["alone"],
        unit="times two threads",
        target=None if bench.quick else RANKSVM,
        note=f"{seconds['together'] * 1e3:.3g} ms, two threads {seconds['alone'] * 1e3:.3g} ms",
    )


def record_kills(bench: Benchmark, folder: Path) -> None:
    dataset = make_ranking("far", scale=0.005 if bench.quick else 0.02)
    parts = write_parts(dataset, folder, "kill", 4)
    n_kills = 1 if bench.quick else N_KILLS

    def train(kill: threading.Thread | None, ranker: RankBoost) -> RankBoost:
        if kill is not None:
            kill.start()
        return ranker.fit_cluster(parts, workers=2)

    expected = train(None, paper_ranker(n_rounds=200, n_jobs=1))
    seconds = expected.history_["seconds"][-1]
    draw = random.Random(0)
    n_same = n_restarts = 0
    for _ in range(n_kills):
        ranker = paper_ranker(n_rounds=200, n_jobs=1)
        killer = threading.Thread(target=kill_worker, args=(ranker, draw.randrange(2), draw.uniform(0.0, seconds)))
        train(killer, ranker)
        killer.join()
        n_restarts += sum(worker.n_restarts for worker in ranker.cluster_.workers)  # type: ignore[attr-defined]
        n_same += all(np.array_equal(ranker.state_[key], expected.state_[key]) for key in expected.state_)
    bench.check("every model is the undisturbed one", n_same == n_kills, f"{n_same} of {n_kills}")
    bench.record(
        "kill -9 of a worker in a run of 200 rounds: identical models",
        value=n_same,
        unit=f"of {n_kills}",
        target=None if bench.quick else n_kills,
        better="higher",
        note=f"{n_restarts} restarts; an undisturbed run takes {seconds:.2f} s",
    )


def kill_worker(ranker: RankBoost, number: int, delay: float) -> None:
    """Kill a worker's process `delay` seconds after all workers have begun."""
    end = time.monotonic() + _SECONDS_TO_BEGIN
    while time.monotonic() < end:
        report = getattr(ranker, "cluster_", None)
        if report is not None and all(worker.n_docs for worker in report.workers):
            break
        time.sleep(0.01)
    time.sleep(delay)
    try:
        os.kill(ranker.cluster_.workers[number].process, signal.SIGKILL)  # type: ignore[attr-defined]
    except ProcessLookupError:  # the run has ended
        return
