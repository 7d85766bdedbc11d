"""This machine's coefficients of the model: rounds over random bins of several sizes, and a least-squares fit.

Every time is the shortest of several runs, and counts relative to itself, so that small sizes count as large ones do.
"""

from __future__ import annotations

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
_TRIES, _LEAST_SECONDS, _MOST_ROUNDS, _FIXED_ROUNDS = 7, 0.02, 64, 4


@dataclass(frozen=True)
class MeasuredRound:
    """Seconds of a round, all features searched."""

    n_docs: int
    n_features: int
    n_threads: int
    seconds: float
    n_workers: int = 1


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
    model: RoundModel,
    network: Network,
    *,
    settings: Sequence[tuple[int, int]] = UNSEEN,
    workers: Sequence[int] = (1, 2),
) -> list[tuple[MeasuredRound, float]]:
    """Rounds of sizes that were not used for fitting, and what the model predicts; workers have one thread each."""
    from rankwell.planning.worker_measurement import measure_workers

    whole = RoundModel(model.name, model.coefficients)
    found = []
    for n_workers in workers:
        for n_docs, n_features in settings:
            sizes = TrainingSizes(n_docs, n_features)
            if n_workers == 1:
                predicted = whole.round_time(sizes, threads=1)
                measured = measure_round(n_docs, n_features, 1)
            else:
                predicted = whole.best_division(sizes, n_workers, network, threads=1)
                measured = measure_workers(n_docs, n_features, n_workers, predicted.division)
            found.append((measured, predicted.total))
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
    bins = random_bins(queries.n_docs, n_features, BIN_LAYOUTS[device])
    arguments = (bins, n_features, 256, queries, initial_weights(queries))
    booster: Booster
    if device == "cpu":
        booster = LevelBooster(*arguments, bounded=False, n_jobs=n_threads)
    else:
        sizes = BoostingSizes(queries.n_docs, queries.n_segments, queries.n_queries, n_features)
        booster = load(LEVEL_BOOSTING, device, sizes, *arguments)
    return MeasuredRound(queries.n_docs, n_features, n_threads, shortest_round(booster, clock))


def shortest_round(booster: Booster, clock: Callable[[], float] = time.perf_counter, *, fixed: bool = False) -> float:
    """Seconds of a round, the shortest of several batches.

    fixed : whether a batch has always as many rounds: workers must not choose it by their own clocks
    """
    booster.boost(2)
    n_rounds, best = _FIXED_ROUNDS if fixed else 1, float("inf")
    for _ in range(_TRIES):
        start = clock()
        booster.boost(n_rounds)
        seconds = clock() - start
        best = min(best, seconds / n_rounds)
        if seconds < _LEAST_SECONDS and not fixed:
            n_rounds = min(_MOST_ROUNDS, 2 * n_rounds)
    return best


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


def random_bins(n_docs: int, n_features: int, layout: str) -> np.ndarray:
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
