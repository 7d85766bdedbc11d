"""What does it cost to train RankBoost on data that is four times larger than the memory it may use?

At three quarters of the FPGA paper's documents (2.3 GB of features), with a quarter of that as the limit for the whole
process: the peak of a training from the file to the model; a round over bins on disk that are in the page cache, beside
the same bins in memory, one run after the other; and a round whose bins have to come from the disk. The models must be
the same.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, measure
from benchmarks.rankboost_cases import paper_ranker, queries_of, scaled_shape
from benchmarks.rankboost_cpu import random_bins
from rankwell import RankingDataset, RankSVM, make_ranking, read, write
from rankwell.kernels.boosting.contract import LevelledQueries
from rankwell.kernels.boosting.cpu.booster import LevelBooster
from rankwell.kernels.boosting.cpu.documents import initial_weights
from rankwell.kernels.disk_arrays import file_number, give_back, new_disk_array

MOST_TIMES_IN_MEMORY = 2.0
DATA_OVER_MEMORY = 4
_ROUNDS = 40


def run(bench: Benchmark) -> None:
    check_models(bench)
    shape = scaled_shape("far", docs=0.01 if bench.quick else 0.75)
    queries = queries_of(shape)
    in_memory = random_bins(shape, queries)
    on_disk = new_disk_array(in_memory.shape, np.uint8)
    on_disk[:] = in_memory
    give_back(on_disk)
    record_rounds(bench, shape.n_features, queries, in_memory, on_disk)
    del in_memory
    record_cold_round(bench, shape.n_features, queries, on_disk)
    del on_disk
    record_peak(bench)


def check_models(bench: Benchmark) -> None:
    """The same model from memory and from disk, of each ranker that streams."""
    dataset = make_ranking(n_docs=9000, n_queries=90, n_features=48)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.feather"
        write(dataset, path)
        for ranker in (paper_ranker(n_rounds=60, device="cpu"), RankSVM(device="cpu", tol=1e-3)):
            models = []
            for options in ({}, {"memory": "8GiB"}):
                ranker.fit(read(path, **options)).save(Path(folder) / "model.rank")
                models.append((Path(folder) / "model.rank").read_bytes())
            bench.check(f"{ranker.name}: the same model from memory and from disk", models[0] == models[1])


def record_rounds(
    bench: Benchmark, n_features: int, queries: LevelledQueries, in_memory: np.ndarray, on_disk: np.ndarray
) -> None:
    n_rounds, seconds = 10 if bench.quick else _ROUNDS, {}
    for name, bins in (("in memory", in_memory), ("on disk", on_disk)):
        timing = bench.time(
            f"{n_rounds} rounds {name}",
            lambda: LevelBooster(bins, n_features, 256, queries, initial_weights(queries)).boost(n_rounds),  # noqa: B023
            repeat=3,
        )
        seconds[name] = timing.minimum / n_rounds
    bench.record(
        "a round, bins in the page cache",
        value=seconds["on disk"] / seconds["in memory"],
        unit="of a round in memory",
        target=None if bench.quick else MOST_TIMES_IN_MEMORY,
        note=f"{seconds['on disk'] * 1e3:.3g} ms, in memory {seconds['in memory'] * 1e3:.3g} ms; mean of {n_rounds} "
        "rounds from the first on",
    )


def record_cold_round(bench: Benchmark, n_features: int, queries: LevelledQueries, on_disk: np.ndarray) -> None:
    """A round that searches every feature after the page cache was emptied of the bins."""
    booster = LevelBooster(on_disk, n_features, 256, queries, initial_weights(queries), bounded=False)
    booster.boost(1)
    seconds = {}
    for name in ("warm", "cold"):
        if name == "cold":
            drop_from_cache(on_disk)
        start = time.perf_counter()
        booster.boost(1)
        seconds[name] = time.perf_counter() - start
    speed = on_disk.nbytes / seconds["cold"] / 1e9
    note = f"{on_disk.nbytes / 1e6:.0f} MB at {speed:.2f} GB/s; from the page cache {seconds['warm']:.3g} s"
    bench.record("a whole search, bins from the disk", value=seconds["cold"], unit="s", note=note)


def drop_from_cache(array: np.ndarray) -> None:
    """Have the system forget what it has of a disk array's file."""
    give_back(array)
    os.fsync(file_number(array))
    os.posix_fadvise(file_number(array), 0, 0, os.POSIX_FADV_DONTNEED)


def record_peak(bench: Benchmark) -> None:
    shape = scaled_shape("far", docs=0.1 if bench.quick else 0.75)
    n_bytes = 4 * shape.n_docs * shape.n_features
    limit = max(320 * 2**20, n_bytes // DATA_OVER_MEMORY) if bench.quick else n_bytes // DATA_OVER_MEMORY
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "data.feather")
        write_data(path, shape.n_docs, shape.n_features, shape.n_queries)
        train_from(path, 2, 64 * 2**30)  # kernels are compiled here, not in the process that is measured
        peak = measure.peak_memory("benchmarks.train_streaming:train_from", path, 10, limit, whole=True)
    bench.record(
        f"peak of training on {n_bytes / 1e9:.1f} GB within {limit / 1e6:.0f} MB",
        value=peak / limit,
        unit="of the limit",
        target=1.0,
        note=f"{peak / 1e6:.0f} MB, of which about 250 are Python and its packages",
    )


def write_data(path: str, n_docs: int, n_features: int, n_queries: int) -> None:
    generator = np.random.default_rng(0)
    features = np.empty((n_docs, n_features), dtype=np.float32)
    for start in range(0, n_docs, 16384):
        generator.standard_exponential(dtype=np.float32, out=features[start : start + 16384])
    labels = generator.choice(3, n_docs, p=(0.8, 0.15, 0.05))
    write(RankingDataset(features, labels, qid=np.arange(n_docs) * n_queries // n_docs), path)


def train_from(path: str, n_rounds: int, limit: int) -> Any:
    return paper_ranker(n_rounds=n_rounds, device="cpu").fit(read(path, memory=limit))
