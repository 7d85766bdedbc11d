"""What do the sampled Top-3 losses cost, and what NDCG do they reach, compared with the exact loss?

The thesis samples because the exact loss would take it "5 days" per epoch, so it could not compare. Cost is an epoch at
MQ2008-list's size; NDCG@10 (letor4) is the mean over MQ2008's five test folds, the epoch chosen on validation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_folds, synthetic_fold
from benchmarks.listnet_cases import graded, list_collection, network_problem
from rankwell.kernels.device import load
from rankwell.kernels.lists.contract import NETWORK_TRAINING
from rankwell.kernels.lists.losses import list_loss
from rankwell.metrics.evaluation import evaluate
from rankwell.rankers.listnet import SAMPLINGS, ListNet

LOSSES: dict[str, dict[str, Any]] = {
    "exact Top-3": {"k": 3},
    "stochastic, uniform, 100 permutations": {"k": 3, "sampling": "stochastic", "sample_distribution": "uniform"},
    "stochastic, fixed, 100 permutations": {"k": 3, "sampling": "stochastic", "sample_distribution": "fixed"},
    "stochastic, adaptive, 100 permutations": {"k": 3, "sampling": "stochastic", "sample_distribution": "adaptive"},
    "position-aware (1, 0.1, 0.02)": {"k": 3, "sampling": "position-aware", "sample_factors": (1.0, 0.1, 0.02)},
    "position-aware (1, 0.01, 0.005)": {"k": 3, "sampling": "position-aware", "sample_factors": (1.0, 0.01, 0.005)},
    "stochastic, fixed, Top-5": {"k": 5, "sampling": "stochastic", "sample_distribution": "fixed"},
    "stochastic, fixed, Top-10": {"k": 10, "sampling": "stochastic", "sample_distribution": "fixed"},
}


def run(bench: Benchmark) -> None:
    found = letor_folds(bench, "MQ2008")
    source = "MQ2008" if found else "synthetic"
    collection = graded(list_collection(bench.quick))
    if not bench.quick:
        # A tenth of the queries, all of their documents: an epoch of the collection is ten times that.
        collection = collection.subset(np.arange(0, collection.n_queries, 10))
    exact_seconds = None
    for name, parameters in LOSSES.items():
        figures = []
        for fold in found or [synthetic_fold(0.1)]:
            ranker = ListNet(
                **parameters,
                learning_rate=0.3,
                lr_decay=0.0,
                normalize="none",
                n_epochs=2 if bench.quick else 60,
                n_seeds=1,
                eval_convention="letor4",
                device="cpu",
            ).fit(fold.train, eval_set=fold.validation)
            scores = ranker.predict(fold.test)
            figures.append(evaluate(fold.test, scores, metrics=("ndcg@10",), convention="letor4").mean["ndcg@10"])
        bench.check(f"{name}: better than chance", bench.quick or float(np.mean(figures)) > 0.15)
        seconds = epoch_seconds(bench, collection, name, parameters)
        exact_seconds = seconds if exact_seconds is None else exact_seconds
        bench.record(
            f"{name}: NDCG@10, {source}", value=float(np.mean(figures)), unit="", better="higher",
            note=f"epoch {seconds / exact_seconds:.2f} x the exact Top-3 loss's",
        )  # fmt: skip
        bench.record(f"{name}: epoch, {collection.n_queries} queries of MQ2008-list's size", value=seconds, unit="s")


def epoch_seconds(bench: Benchmark, collection: Any, name: str, parameters: dict[str, Any]) -> float:
    loss = list_loss(
        SAMPLINGS[parameters.get("sampling", "exact")],
        parameters["k"],
        n_samples=100,
        distribution=parameters.get("sample_distribution", "uniform"),
        factors=parameters.get("sample_factors", ()),
    )
    problem, state = network_problem(collection, k=parameters["k"], loss=loss)
    trainer = load(NETWORK_TRAINING, "cpu", problem)
    order = np.arange(collection.n_queries)
    return bench.time(f"epoch, {name}", lambda: trainer.run_epoch(state, order, 0.01, 1, None), repeat=3).minimum
