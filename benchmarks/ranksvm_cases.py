"""Collections and settings that the benchmarks of RankSVM share."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from rankwell import RankingDataset, RankSVM, make_ranking
from rankwell.kernels.pair_loss.contract import PairData
from rankwell.kernels.pair_loss.reference import ReferencePairLoss
from rankwell.rankers.ranksvm_data import pair_data
from rankwell.scoring.normaliser import fit_normaliser

TOLERANCE = 1e-5
# The paper's names of the ways of counting pairs, and ours.
COUNTING = {"DCM": "direct", "OST": "order-statistic"}
QUICK_SCALE = 0.003


def collection(bench: Benchmark, shape: str, *, standardised: bool) -> RankingDataset:
    return make_ranking(shape, scale=QUICK_SCALE if bench.quick else 1.0, standardised=standardised)


def kernel_data(dataset: RankingDataset) -> PairData:
    return pair_data(dataset, fit_normaliser("none", dataset))


def ranker(device: str, **settings: Any) -> RankSVM:
    return RankSVM(**{"C": 1.0, "tol": TOLERANCE, "normalize": "none", "device": device, **settings})


def check_small(bench: Benchmark, make_loss: Any) -> None:
    """Gradient and product of a small collection against the sum over all pairs."""
    data = kernel_data(make_ranking("mslr10k", scale=QUICK_SCALE / 10, standardised=True))
    fast, slow = make_loss(data), ReferencePairLoss(data)
    rng = np.random.default_rng(0)
    w, v = rng.normal(scale=0.1, size=(2, data.features.shape[1]))
    value, gradient = fast.loss_and_gradient(fast.to_device(w))
    expected_value, expected_gradient = slow.loss_and_gradient(w)
    fast.accept()
    slow.accept()
    product = fast.to_host(fast.hessian_vector(fast.to_device(v)))
    bench.check("loss", abs(value - expected_value) <= 1e-5 * expected_value)
    bench.check("gradient", _distance(fast.to_host(gradient), expected_gradient) < 1e-5)
    bench.check("Hessian-vector product", _distance(product, slow.hessian_vector(v)) < 1e-5)


def _distance(vector: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(vector - expected) / np.linalg.norm(expected))
