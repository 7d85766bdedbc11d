"""Calls that need the kernels of training on a cluster: two workers as threads of this process, without Ray."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.warming.learning_calls import LARGE, made_up_data

_N_WORKERS = 2
_NONE = (np.zeros(0, np.int32),) * 4
_QUANTILES = {"binning": "quantile"}


def train_together(folder: Path) -> None:
    for sizes in ({"n_features": 40}, LARGE):
        for division, parameters in (("documents", {}), ("features", _QUANTILES)):
            _learn("rankboost", parameters, sizes, lambda learner, d=division: _boost(learner, d))  # type: ignore[misc]
    for loss in ("lambdarank", "xendcg"):
        _learn("lambdamart", {"n_leaves": 4, "loss": loss}, LARGE, lambda learner, name=loss: _grow(learner, name))  # type: ignore[misc]


def _boost(learner: Any, division: str) -> None:
    learner.begin(division, *_NONE)
    learner.boost(20)


def _grow(learner: Any, loss: str) -> None:
    learner.begin(loss, None, [[]])
    learner.boost(0, 0, 1)


def _learn(ranker: str, parameters: Mapping[str, Any], sizes: Mapping[str, int], work: Callable[[Any], None]) -> None:
    """Two workers with half of the queries each, in step."""
    from rankwell.cluster.agreement import WorkersAgreement
    from rankwell.cluster.exchange import Exchange
    from rankwell.cluster.learner import LearnerPlan
    from rankwell.cluster.worker import learner_class

    dataset = made_up_data(**sizes)
    halves = np.array_split(np.arange(dataset.n_queries), _N_WORKERS)
    exchanges = [Exchange(number, _N_WORKERS, b"warm", "127.0.0.1") for number in range(_N_WORKERS)]

    def run(exchange: Exchange) -> None:
        exchange.connect([other.address for other in exchanges], 1)
        try:
            own = dataset.subset(halves[exchange.number])
            plan = LearnerPlan(ranker, dict(parameters))
            work(learner_class(ranker)(plan, own, WorkersAgreement(exchange), exchange, 1))
        finally:
            exchange.close()

    try:
        with ThreadPoolExecutor(_N_WORKERS) as pool:
            list(pool.map(run, exchanges))
    finally:
        for exchange in exchanges:
            exchange.end()
