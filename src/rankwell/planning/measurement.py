"""This machine's coefficients of the model: rounds over random bins of several sizes, and a least-squares fit.

Every time is the shortest of several runs, and counts relative to itself, so that small sizes count as large ones do.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rankwell.data.binning import Binner
from rankwell.data.dataset import RankingDataset
from rankwell.hardware.rankboost.cpu_measurement import sample_queries
from rankwell.kernels.boosting.contract import BIN_LAYOUTS, LEVEL_BOOSTING, Booster, BoostingSizes
from rankwell.kernels.boosting.cpu.booster import LevelBooster
from rankwell.kernels.boosting.cpu.documents import initial_weights
from rankwell.kernels.device import load
from rankwell.kernels.threads import available_cores
from rankwell.planning.round_model import Coefficients, Network, RoundModel, TrainingSizes

# Documents and features that are measured: few and many of each.
FITTED = ((6_000, 32), (6_000, 320), (24_000, 96), (48_000, 32), (48_000, 320), (160_000, 64), (320_000, 192))
_QUICK = FITTED[:4]
# Sizes between and around those, to see how far predictions are off.
UNSEEN = ((9_000, 48), (15_000, 208), (30_000, 64), (36_000, 144), (90_000, 112), (200_000, 160))
_TRIES, _LEAST_SECONDS, _MOST_ROUNDS = 5, 0.02, 64
_PINGS, _STREAM_BYTES = 200, 2**24


@dataclass(frozen=True)
class MeasuredRound:
    """Seconds of a round, all features searched."""

    n_docs: int
    n_features: int
    n_threads: int
    seconds: float


def measure_machine(
    *,
    device: str = "cpu",
    threads: Sequence[int] | None = None,
    quick: bool = False,
    clock: Callable[[], float] = time.perf_counter,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RoundModel:
    """Fit the model on this machine.

    threads : numbers of threads, by default 1 and every core; clock : what is measured, in seconds
    """
    counts = sorted({1, available_cores()}) if threads is None else list(threads)
    counts = counts if device == "cpu" else [1]
    settings = _QUICK if quick else FITTED
    coefficients, done = {}, 0
    for n_threads in counts:
        measured = []
        for n_docs, n_features in settings:
            measured.append(measure_round(n_docs, n_features, n_threads, device=device, clock=clock))
            done += 1
            progress(done, len(counts) * len(settings))
        coefficients[n_threads] = fit_coefficients(measured)
    return RoundModel(device, coefficients, per_value_once=_binning_seconds(clock))


def check_model(
    model: RoundModel, *, clock: Callable[[], float] = time.perf_counter, settings: Sequence[tuple[int, int]] = UNSEEN
) -> list[tuple[MeasuredRound, float]]:
    """Rounds of sizes that were not used for fitting, for each number of threads, and what the model predicts."""
    whole = RoundModel(model.name, model.coefficients)
    found = []
    for n_threads in model.coefficients:
        for n_docs, n_features in settings:
            measured = measure_round(n_docs, n_features, n_threads, clock=clock)
            sizes = TrainingSizes(measured.n_docs, n_features)
            found.append((measured, whole.round_time(sizes, threads=n_threads).total))
    return found


def fit_coefficients(measured: Sequence[MeasuredRound]) -> Coefficients:
    """The coefficients, none below 0, with the least squares of relative errors."""
    from scipy.optimize import nnls

    terms = np.array([[one.n_docs, one.n_docs * _padded(one.n_features), one.n_features, 1.0] for one in measured])
    seconds = np.array([one.seconds for one in measured])
    scale = terms.max(axis=0)
    found, _ = nnls(terms / scale / seconds[:, None], np.ones(len(seconds)))
    return Coefficients(*(found / scale).tolist())


def measure_round(
    n_docs: int,
    n_features: int,
    n_threads: int,
    *,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> MeasuredRound:
    """The shortest time of a round, every feature searched, over random bins."""
    queries = sample_queries(n_docs)
    bins = _random_bins(queries.n_docs, n_features, BIN_LAYOUTS[device])
    arguments = (bins, n_features, 256, queries, initial_weights(queries))
    booster: Booster
    if device == "cpu":
        booster = LevelBooster(*arguments, bounded=False, n_jobs=n_threads)
    else:
        sizes = BoostingSizes(queries.n_docs, queries.n_segments, queries.n_queries, n_features)
        booster = load(LEVEL_BOOSTING, device, sizes, *arguments)
    booster.boost(2)
    n_rounds, best = 1, float("inf")
    for _ in range(_TRIES):
        start = clock()
        booster.boost(n_rounds)
        seconds = clock() - start
        best = min(best, seconds / n_rounds)
        if seconds < _LEAST_SECONDS:
            n_rounds = min(_MOST_ROUNDS, 2 * n_rounds)
    return MeasuredRound(queries.n_docs, n_features, n_threads, best)


def measure_share(dataset: RankingDataset, n_rounds: int = 64) -> float:
    """s: how much of the search bounds leave to be done, on data like this; 1 for little data."""
    from rankwell.rankers.pair_weights import levelled_queries

    queries = levelled_queries(dataset, "queries")
    bins = Binner().fit(dataset).transform(dataset, BIN_LAYOUTS["cpu"], rows=queries.rows)
    seconds = []
    for bounded in (None, False):
        weights = initial_weights(queries)
        booster = LevelBooster(bins, dataset.n_features, 256, queries, weights, n_halvings=2, bounded=bounded, n_jobs=1)
        booster.boost(1)
        start = time.perf_counter()
        done = len(booster.boost(n_rounds if bounded is None else 8))
        seconds.append((time.perf_counter() - start) / max(1, done))
    return min(1.0, seconds[0] / seconds[1])


def measure_loopback() -> Network:
    """Bandwidth and latency of messages between processes of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_echo, args=(listener,), daemon=True).start()
        with socket.create_connection(listener.getsockname()) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pings = []
            for _ in range(_PINGS):
                start = time.perf_counter()
                connection.sendall(b"!")
                connection.recv(1)
                pings.append((time.perf_counter() - start) / 2)
            start = time.perf_counter()
            connection.sendall(b"." + bytes(_STREAM_BYTES - 1))
            connection.recv(1)
            return Network(_STREAM_BYTES / (time.perf_counter() - start), min(pings))


def _echo(listener: socket.socket) -> None:
    """Answer pings, then the end of a stream."""
    connection, _ = listener.accept()
    with connection:
        left = 0
        while content := connection.recv(2**18):
            if content == b"!" and left == 0:
                connection.sendall(content)
                continue
            left = (left or _STREAM_BYTES) - len(content)
            if left == 0:
                connection.sendall(b"!")
                return


def _random_bins(n_docs: int, n_features: int, layout: str) -> np.ndarray:
    generator = np.random.default_rng(0)
    if layout == "interleaved16":
        return generator.integers(0, 256, (-(-n_features // 16), n_docs, 16), dtype=np.uint8)
    return generator.integers(0, 256, (n_features, -(-n_docs // 16) * 16), dtype=np.uint8)


def _binning_seconds(clock: Callable[[], float]) -> float:
    """Seconds per value of finding bins and writing them, on one thread."""
    features = np.random.default_rng(0).random((16_384, 64), dtype=np.float32)
    times = []
    for _ in range(3):
        start = clock()
        Binner().fit(features, n_jobs=1).transform(features, BIN_LAYOUTS["cpu"], n_jobs=1)
        times.append(clock() - start)
    return min(times) / features.size


def _padded(n_features: int) -> int:
    return -(-n_features // 16) * 16
