"""Workers on this machine, measured: what they exchange with each other, and rounds that they do together.

They are processes that exchange arrays as the workers of a cluster do (`cluster/exchange.py`), without Ray, which only
starts processes and has no part in a round.
"""

from __future__ import annotations

import multiprocessing
import secrets
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.companions import WorkerCompanions
from rankwell.cluster.exchange import Exchange
from rankwell.errors import RankwellError
from rankwell.hardware.rankboost.cpu_measurement import sample_queries
from rankwell.kernels.boosting.cpu.documents import initial_weights
from rankwell.kernels.boosting.cpu.shared_booster import DocumentsBooster, FeaturesBooster, SharedBooster
from rankwell.planning.measurement import MeasuredRound, random_bins, shortest_round
from rankwell.planning.round_model import FEATURES_IN_GROUP, Network

_TIMES, _LARGE_BYTES, _FEW_DOCS = 50, 2**21, 1000


def measure_exchange() -> Network:
    """What an exchange between two workers of this machine costs: an empty one, and a byte that is summed."""
    seconds_small, seconds_large = together(_time_exchanges, 2)[0]
    # Half of the array goes to the other worker, and half of the sums comes back: 2·(N − 1) / N of it is sent.
    bandwidth = _LARGE_BYTES / max(1e-9, seconds_large - 2 * seconds_small)
    # Hardly any work, and two exchanges.
    round_seconds = together(_time_rounds, 2, _FEW_DOCS, 2 * FEATURES_IN_GROUP, "features")[0]
    return Network(bandwidth, seconds_small, max(0.0, round_seconds - 2 * seconds_small))


def measure_workers(n_docs: int, n_features: int, n_workers: int, division: str) -> MeasuredRound:
    """The shortest time of a round that workers of one thread do together, every feature searched."""
    seconds = together(_time_rounds, n_workers, n_docs, n_features, division)[0]
    return MeasuredRound(n_docs, n_features, 1, seconds, n_workers)


def together(function: Callable[..., Any], n_workers: int, *arguments: Any) -> list[Any]:
    """The results of ``function(exchange, *arguments)`` in as many processes, which are connected with each other."""
    context, secret = multiprocessing.get_context("spawn"), secrets.token_bytes(32)
    pipes, processes = [], []
    try:
        for number in range(n_workers):
            own, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, number, n_workers, secret, function, arguments))
            process.start()
            theirs.close()
            pipes.append(own)
            processes.append(process)
        addresses = [pipe.recv() for pipe in pipes]
        for pipe in pipes:
            pipe.send(addresses)
        return [pipe.recv() for pipe in pipes]
    except EOFError as cause:
        raise RankwellError("a worker that was to be measured has died.") from cause
    finally:
        for process in processes:
            process.join(1.0)
            if process.is_alive():
                process.kill()
                process.join()


def _work(
    pipe: Any, number: int, n_workers: int, secret: bytes, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    exchange = Exchange(number, n_workers, secret, "127.0.0.1")
    pipe.send(exchange.address)
    exchange.connect(pipe.recv(), 1)
    pipe.send(function(exchange, *arguments))


def _time_exchanges(exchange: Exchange) -> tuple[float, float]:
    """Seconds of an exchange of eight bytes, and of a sum of two mebibytes."""
    small, large = np.zeros(1), np.zeros(_LARGE_BYTES // 4, dtype=np.int32)
    return _shortest(lambda: exchange.gather(small)), _shortest(lambda: exchange.sum(large))


def _shortest(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_TIMES):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _time_rounds(exchange: Exchange, n_docs: int, n_features: int, division: str) -> float:
    own_docs = n_docs // exchange.n_workers if division == "documents" else n_docs
    queries = sample_queries(own_docs)
    agreement = WorkersAgreement(exchange)
    companions = WorkerCompanions(exchange, queries.n_docs, queries.n_queries, agreement)
    weights = initial_weights(queries)
    booster: SharedBooster
    if division == "documents":
        bins = random_bins(queries.n_docs, n_features, "interleaved16")
        booster = DocumentsBooster(companions, bins, n_features, 256, queries, weights, bounded=False, n_jobs=1)
    else:
        n_groups = -(-n_features // FEATURES_IN_GROUP)
        first, last = (
            min(n_features, n_groups * number // exchange.n_workers * FEATURES_IN_GROUP)
            for number in (exchange.number, exchange.number + 1)
        )
        bins = random_bins(queries.n_docs, last - first, "interleaved16")
        booster = FeaturesBooster(companions, first, bins, last - first, 256, queries, weights, bounded=False, n_jobs=1)
    return shortest_round(booster, fixed=True)
