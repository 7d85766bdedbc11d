"""How close does RankSVM on a GPU come to only reading X, and how long does a training take, transfer included?

A Hessian-vector product at the size of MSLR-WEB30K's training part, compared with reading X once from the device's
memory and with the same product in three launches, which read X twice; then whole trainings from arrays in the host's
memory, on the GPU and on all cores of the same machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.device_reading import reader
from benchmarks.harness import Benchmark
from benchmarks.paper_numbers import RANKSVM_TABLE_2
from benchmarks.ranksvm_cases import check_small, collection, kernel_data, ranker
from rankwell import RankingDataset

PRODUCTS = 20
SECONDS = {"mslr30k": 0.5, "mslr10k": None, "mq2007-list": None, "mq2008-list": None}


def run(bench: Benchmark) -> None:
    from rankwell.kernels.pair_loss.cuda.loss import CudaPairLoss

    check_small(bench, CudaPairLoss)
    for shape, seconds in SECONDS.items():
        dataset = collection(bench, shape, standardised=True)
        if shape == "mslr30k":
            time_product(bench, dataset)
        compare_sorts(bench, shape, dataset)
        time_training(bench, shape, dataset, seconds)


def time_product(bench: Benchmark, dataset: RankingDataset) -> None:
    import cupy

    from rankwell.kernels.pair_loss.cuda.loss import CudaPairLoss

    data = kernel_data(dataset)
    rng = np.random.default_rng(0)
    w, v = rng.normal(scale=0.1, size=(2, dataset.n_features))
    rows = cupy.asarray(dataset.features)
    reading = bench.time(f"read X {PRODUCTS} times", reader(rows, PRODUCTS), repeat=7).minimum / PRODUCTS
    del rows
    results = {}
    for name, fused in (("fused", True), ("three launches", False)):
        loss = CudaPairLoss(data, fused=fused)
        vector = loss.to_device(v)
        loss.loss_and_gradient(loss.to_device(w))
        loss.accept()
        results[name] = loss.to_host(loss.hessian_vector(vector))
        timing = bench.time(f"{PRODUCTS} products, {name}", lambda made=loss, x=vector: multiply(made, x), repeat=7)
        seconds = timing.minimum / PRODUCTS
        bench.record(
            f"Hessian-vector product, {dataset.n_docs:,} x {dataset.n_features}, {name}",
            value=seconds * 1e3,
            unit="ms",
            target=1.5 * reading * 1e3 if fused else None,
            rival="only reading X",
            rival_value=reading * 1e3,
            note=f"{seconds / reading:.2f} times reading",
        )
    difference = np.abs(results["fused"] - results["three launches"]).max() / np.abs(results["fused"]).max()
    bench.check("the fused product is the one in three launches", difference < 1e-6, f"{difference:.1e}")


def multiply(loss: Any, vector: Any) -> None:
    import cupy

    for _ in range(PRODUCTS):
        loss.hessian_vector(vector)
    cupy.cuda.Device().synchronize()


def compare_sorts(bench: Benchmark, shape: str, dataset: RankingDataset) -> None:
    """The segmented sort of all queries in one launch, and CuPy's sort of the whole array by query and score."""
    import cupy

    from rankwell.kernels.pair_loss.cuda.loss import CudaPairLoss

    queries = CudaPairLoss(kernel_data(dataset))._queries
    scores = cupy.random.default_rng(0).standard_normal(dataset.n_docs)
    order = cupy.zeros(dataset.n_docs, dtype=np.int32)
    query_of_rows = cupy.asarray(dataset.query_of_rows())
    segmented = bench.time(f"segmented sort, `{shape}`", lambda: finished(queries.sort, scores, order), repeat=7)
    whole = bench.time(
        f"sort of the whole array, `{shape}`",
        lambda: finished(lambda: cupy.lexsort(cupy.stack([scores, query_of_rows]))),
        repeat=7,
    )
    bench.record(
        f"sort of all queries, `{shape}` shape",
        value=segmented.minimum * 1e3,
        unit="ms",
        rival="cupy.lexsort",
        rival_value=whole.minimum * 1e3,
    )


def finished(function: Any, *arguments: Any) -> None:
    import cupy

    function(*arguments)
    cupy.cuda.Device().synchronize()


def time_training(bench: Benchmark, shape: str, dataset: RankingDataset, seconds: float | None) -> None:
    on_cpu = ranker("cpu").fit(dataset)
    on_gpu = ranker("cuda").fit(dataset)
    objectives = [trained.history_["objective"][-1] for trained in (on_cpu, on_gpu)]
    apart = abs(objectives[0] - objectives[1]) / objectives[0]
    bench.check(f"`{shape}`: the CPU's objective", apart < 1e-6, f"relative difference {apart:.1e}")
    gpu = bench.time(f"`{shape}` on the GPU", lambda: ranker("cuda").fit(dataset), repeat=5)
    cpu = bench.time(f"`{shape}` on all cores", lambda: ranker("cpu").fit(dataset), repeat=2, warmup=0)
    bench.record(
        f"to tolerance, `{shape}` shape, transfer included",
        value=gpu.minimum,
        unit="s",
        target=seconds,
        rival="this machine's CPU, all cores",
        rival_value=cpu.minimum,
        paper=RANKSVM_TABLE_2[shape],
        note=f"{on_gpu.history_['products'][-1]} products, {on_gpu.method_}",
    )
