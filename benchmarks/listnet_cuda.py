"""How fast does one H200 train ListNet at MQ2008-list's size: loss and gradient, and an epoch of per-query steps?

The thesis trains 471 queries of 1,148 documents on an FPGA, sampled: 10.4 s per epoch of Top-3; its GPU takes 45.8 s.
Labels of the collection are places (every document has its own); with five labels no weight of Top-3 vanishes, so both
are timed. Features are stored as float32, float16 and int8: what that saves in time and costs in the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.listnet_cases import graded, list_collection, network_problem
from rankwell.kernels.device import load
from rankwell.kernels.lists.contract import NETWORK_TRAINING


def run(bench: Benchmark) -> None:
    import cupy

    from rankwell.kernels.lists.cuda.trainer import CudaNetworkTrainer

    places = list_collection(bench.quick)
    for name, dataset in (("places as labels", places), ("five labels", graded(places))):
        for k in (1, 2, 3):
            problem, state = network_problem(dataset, k=k)
            trainer = CudaNetworkTrainer(problem)
            order = np.arange(dataset.n_queries)
            check_against_cpu(bench, f"Top-{k}, {name}", trainer, problem, state)
            memory = [cupy.asarray(array) for array in (state.parameters, state.first, state.second)]
            arguments = (memory, cupy.asarray(order), 1e-3, 0, cupy.zeros(1))
            epoch = bench.time(f"Top-{k} epoch, {name}", lambda t=trainer, a=arguments: device_time(t.steps, *a))
            bench.record(
                f"per-query SGD epoch, Top-{k}, {name}",
                value=epoch.minimum,
                unit="s",
                target=0.060 if k == 3 else None,
                paper="FPGA 10.4 s, GPU 45.8 s (sampled)" if k == 3 else None,
            )
            time_collection(bench, f"Top-{k}, {name}", dataset, k, "float32", target=0.003 if k == 3 else None)
    for feature_format in ("float16", "int8"):
        for k in (1, 3):
            time_collection(bench, f"Top-{k}, five labels", graded(places), k, feature_format, target=None)
    time_products(bench, places)


def time_collection(
    bench: Benchmark, name: str, dataset: Any, k: int, feature_format: str, target: float | None
) -> None:
    """Loss and gradient of every query at once, a block each."""
    import cupy

    from rankwell.kernels.lists.cuda.trainer import CudaNetworkTrainer

    problem, state = network_problem(dataset, k=k, batch_queries=dataset.n_queries)
    trainer = CudaNetworkTrainer(problem, feature_format)
    parameters = cupy.asarray(state.parameters)
    order = cupy.arange(dataset.n_queries)
    losses = cupy.zeros(dataset.n_queries, dtype=cupy.float64)
    gradients = trainer.gradients(order, parameters, losses).get().sum(axis=0)
    exact = CudaNetworkTrainer(problem).gradients(order, parameters, losses).get().sum(axis=0)
    error = float(np.linalg.norm(gradients - exact) / np.linalg.norm(exact))
    bench.check(f"gradient with {feature_format} features, {name}", error < 0.05, f"relative difference {error:.1e}")
    timing = bench.time(
        f"{name}, {feature_format} features",
        lambda: device_time(trainer.gradients, order, parameters, losses),
        repeat=20,
    )
    bench.record(
        f"loss and gradient of the collection, {name}, {feature_format} features",
        value=timing.minimum,
        unit="s",
        target=target,
        note="" if feature_format == "float32" else f"gradient differs by {error:.1e}",
    )


def time_products(bench: Benchmark, dataset: Any) -> None:
    """The network's matrix products alone, by cuBLAS: an upper bound of what tensor cores (float16) could save.

    Forward X·W, backward Xᵀ·G, at the width of a 46-15-1 network rounded up to what tensor cores take.
    """
    import cupy

    rng = cupy.random.default_rng(0)
    n_docs = dataset.n_docs
    for kind in (cupy.float32, cupy.float16):
        features = rng.random((n_docs, 48), dtype=cupy.float32).astype(kind)
        weights = rng.random((48, 16), dtype=cupy.float32).astype(kind)
        errors = (rng.random((n_docs, 16), dtype=cupy.float32) / n_docs**0.5).astype(kind)
        forward = cupy.empty((n_docs, 16), dtype=kind)
        backward = cupy.empty((48, 16), dtype=kind)

        def products(x: Any = features, w: Any = weights, g: Any = errors, y: Any = forward, d: Any = backward) -> None:
            cupy.matmul(x, w, out=y)
            cupy.matmul(x.T, g, out=d)

        products()
        exact = features[:100].astype(cupy.float64) @ weights.astype(cupy.float64)
        error = float(abs(forward[:100] - exact).max() / abs(exact).max())
        name = cupy.dtype(kind).name
        bench.check(f"products in {name}", error < 2e-3, f"relative difference {error:.1e}")
        timing = bench.time(f"products alone, {name}", lambda run=products: device_time(run), repeat=20)
        bench.record(
            f"the network's products alone, cuBLAS in {name}",
            value=timing.minimum,
            unit="s",
            note="tensor cores" if kind is cupy.float16 else "",
        )


def device_time(function: Any, *arguments: Any) -> None:
    """Run and wait for the device."""
    import cupy

    function(*arguments)
    cupy.cuda.Device().synchronize()


def check_against_cpu(bench: Benchmark, name: str, trainer: Any, problem: Any, state: Any) -> None:
    """A few steps on the device and on the CPU, whose kernels the tests compare with float64."""
    order = np.arange(min(8, len(problem.query_ptr) - 1))
    on_gpu, on_cpu = state.copy(), state.copy()
    loss = trainer.run_epoch(on_gpu, order, 0.1, 1, None)
    expected = load(NETWORK_TRAINING, "cpu", problem).run_epoch(on_cpu, order, 0.1, 1, None)
    difference = float(np.abs(on_gpu.parameters - on_cpu.parameters).max())
    bench.check(f"{name}: the CPU's steps", difference < 1e-3, f"largest difference {difference:.1e}")
    bench.check(f"{name}: the CPU's loss", abs(loss - expected) <= 1e-4 * abs(expected), f"{loss} and {expected}")
