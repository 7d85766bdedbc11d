"""How large are ListNet's gradients over the epochs of a training (figure 4.7 of the thesis)?

The network's gradient of each query on its own, before the epoch: the largest component of all, and the mean of their
absolute values. MQ2008 Fold1, or synthetic queries of its shape.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_fold
from benchmarks.listnet_cases import network_problem, reference_step
from rankwell.data.synthetic import make_ranking
from rankwell.kernels.device import load
from rankwell.kernels.lists.contract import NETWORK_TRAINING, NetworkState

SHOWN = (1, 2, 5, 10, 20, 50, 100, 200, 300)
RATE = 0.3


def run(bench: Benchmark) -> None:
    fold = None if bench.quick else letor_fold(bench, "MQ2008", 1)
    dataset = make_ranking("mq2008", scale=0.1) if fold is None else fold.train
    for k in (1, 2, 3):
        problem, state = network_problem(dataset, k=k)
        trainer = load(NETWORK_TRAINING, "cpu", problem)
        gradients = query_gradients(trainer, state, dataset.n_queries)
        short = int(np.argmin(np.where(dataset.query_sizes >= 2, dataset.query_sizes, dataset.n_docs)))
        _, expected = reference_step(problem, state, short, dataset.n_docs)
        error = float(np.abs(gradients[short] - expected).max())
        bench.check(f"Top-{k}: the reference's gradient", error < 1e-5, f"largest difference {error:.1e}")
        for epoch in range(1, 1 + max(SHOWN[:4] if bench.quick else SHOWN)):
            if epoch in SHOWN:
                gradients = np.abs(query_gradients(trainer, state, dataset.n_queries))
                bench.record(
                    f"Top-{k}, epoch {epoch}",
                    value=float(gradients.max()),
                    unit="",
                    note=f"mean of the absolute values {gradients.mean():.3g}",
                )
            trainer.run_epoch(state, np.arange(dataset.n_queries), RATE, 1, None)


def query_gradients(trainer, state: NetworkState, n_queries: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Of each query alone, (n_queries, n_parameters): a step of size 1 from the same network subtracts it."""
    found = []
    for query in range(n_queries):
        moved = state.copy()
        trainer.run_epoch(moved, np.array([query]), 1.0, 1, None)
        found.append(state.parameters - moved.parameters)
    return np.array(found)
