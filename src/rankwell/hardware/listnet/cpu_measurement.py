"""What an epoch takes on this machine's CPU, measured on a sample and scaled."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.kernels.lists.contract import SGD, NetworkProblem, NetworkState, OptimizerSettings
from rankwell.kernels.lists.cpu.list_gradient import list_truth
from rankwell.kernels.lists.cpu.lists_gradient import lists_gradient
from rankwell.kernels.lists.cpu.trainer import CpuNetworkTrainer
from rankwell.kernels.lists.fixed_point_format import ADAPTIVE, BATCH, FixedPointFormat
from rankwell.kernels.lists.losses import EXACT, list_loss
from rankwell.kernels.lists.network_shape import network_shape
from rankwell.kernels.threads import kernel_threads

_SAMPLE_DOCS, _TRIES = 8_192, 3


@dataclass(frozen=True)
class CpuTimes:
    """Seconds per document: an epoch in float32 and in emulated fixed point, and its forward pass and loss alone."""

    float_epoch: float
    fixed_epoch: float
    forward_and_loss: float


def measure_cpu(configuration: ListNetConfiguration, query_docs: int) -> CpuTimes:
    """Time epochs of exact Top-1 over random lists of `query_docs` documents, on one thread: one step per query."""
    query_docs = int(np.clip(query_docs, 2, _SAMPLE_DOCS))
    n_queries = max(1, _SAMPLE_DOCS // query_docs)
    n_docs = n_queries * query_docs
    rng = np.random.default_rng(0)
    output = "sigmoid" if configuration.sigmoid_output else "identity"
    shape = network_shape(configuration.features, (configuration.hidden,), "sigmoid", output)
    problem = NetworkProblem(
        features=rng.random((n_docs, configuration.features), dtype=np.float32),
        labels=rng.integers(0, 3, n_docs).astype(np.float64),
        query_ptr=np.arange(0, n_docs + 1, query_docs, dtype=np.int64),
        query_weights=np.ones(n_queries),
        shape=shape,
        loss=list_loss(EXACT, 1),
        optimizer=OptimizerSettings(SGD, 0.0, 0.0, 0.0, 0.0, 0.0),
        batch_queries=1,
        dropout=0.0,
    )
    parameters = (0.1 * rng.standard_normal(shape.n_parameters)).astype(np.float32)
    state = NetworkState(parameters, np.zeros_like(parameters), np.zeros_like(parameters))
    trainer = CpuNetworkTrainer(problem)
    order = np.arange(n_queries)
    bits, wide, batches = configuration.bits, configuration.accumulator_bits, configuration.batches
    fmt = FixedPointFormat(bits, wide, BATCH if batches > 1 else ADAPTIVE, batches, 0)

    truth = list_truth(problem.loss, problem.labels, problem.query_ptr)

    def forward_and_loss() -> None:
        scores = trainer.scores(state, problem.features)
        lists_gradient(problem.loss, scores, truth, problem.query_ptr)

    with kernel_threads(1):
        return CpuTimes(
            float_epoch=_shortest(lambda: trainer.run_epoch(state, order, 0.1, 1, None)) / n_docs,
            fixed_epoch=_shortest(lambda: trainer.run_epoch(state, order, 0.1, 1, fmt)) / n_docs,
            forward_and_loss=_shortest(forward_and_loss) / n_docs,
        )


def _shortest(work: Callable[[], object]) -> float:
    """Seconds of the shortest of some calls, after one that is not counted."""
    times = []
    for _ in range(_TRIES + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])
