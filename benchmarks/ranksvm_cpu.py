"""How fast is RankSVM on the CPU: one Hessian-vector product, and whole trainings to a tolerance of 1e-5?

The product is compared with two BLAS passes over the same X and with this machine's read bandwidth: X is read
once. Synthetic collections have standardised features; one is trained on raw, badly scaled features as well,
with and without the diagonal preconditioner.
"""

from __future__ import annotations

import numpy as np

from benchmarks import measure
from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_fold
from benchmarks.paper_numbers import RANKSVM_TABLE_2
from benchmarks.ranksvm_cases import TOLERANCE, check_small, collection, kernel_data, ranker
from benchmarks.rivals.blas_two_pass import two_passes
from rankwell import RankingDataset, make_ranking
from rankwell.kernels.pair_loss.contract import PairData
from rankwell.kernels.pair_loss.cpu.loss import CpuPairLoss
from rankwell.rankers.newton_iterations import RankSVMObjective
from rankwell.solvers.trust_region_newton import NewtonResult, NewtonStep, minimise

SECONDS = {"mslr10k": 5.0, "mslr30k": 15.0, "mq2007-list": None, "mq2008-list": None}
MOST_PRODUCTS = 2000  # of the run without a preconditioner, which may need many times that


def run(bench: Benchmark) -> None:
    check_small(bench, CpuPairLoss)
    for shape, seconds in SECONDS.items():
        dataset = collection(bench, shape, standardised=True)
        if shape == "mslr10k":
            time_product(bench, dataset)
            compare_methods(bench, dataset, "five levels")
        if shape == "mq2007-list":
            compare_methods(bench, dataset, "every document with its own level")
        time_training(bench, f"`{shape}` shape, standardised", dataset, 1.0, seconds, RANKSVM_TABLE_2[shape])
        del dataset
    show_preconditioner(bench)
    fold = letor_fold(bench, "MQ2007", 1)
    if fold is not None:
        time_training(bench, "MQ2007 Fold1, C = 2^-5", fold.train, 2.0**-5, 0.25, "OST 10.2 s, GPU 5.90 s")
    record_memory(bench)


def time_product(bench: Benchmark, dataset: RankingDataset) -> None:
    loss = CpuPairLoss(kernel_data(dataset))
    rng = np.random.default_rng(0)
    w, v, u = rng.normal(scale=0.1, size=(3, dataset.n_features))
    loss.loss_and_gradient(w)
    loss.accept()
    forth, back = u @ loss.hessian_vector(v), v @ loss.hessian_vector(u)
    bench.check("the Hessian is symmetric", abs(forth - back) <= 1e-6 * abs(forth), f"{forth} and {back}")
    timing = bench.time("Hessian-vector product", lambda: loss.hessian_vector(v), repeat=15)
    curvatures = rng.random(dataset.n_docs, dtype=np.float32)
    narrow = v.astype(np.float32)
    blas = bench.time("two BLAS passes", lambda: two_passes(dataset.features, curvatures, narrow), repeat=15)
    bandwidth = bench.read_bandwidth()
    reached = dataset.features.nbytes / timing.minimum / 1e9
    bench.record(
        f"Hessian-vector product, {dataset.n_docs:,} x {dataset.n_features}",
        value=timing.minimum,
        unit="s",
        rival="two BLAS passes",
        rival_value=blas.minimum,
    )
    bench.record(
        "times as fast as two BLAS passes", value=blas.minimum / timing.minimum, unit="x", target=1.5, better="higher"
    )
    bench.record(
        "share of this machine's read bandwidth",
        value=100 * reached / bandwidth,
        unit="%",
        target=60,
        better="higher",
        note=f"{reached:.1f} of {bandwidth:.1f} GB/s",
    )


def compare_methods(bench: Benchmark, dataset: RankingDataset, levels: str) -> None:
    """Direct counting and order statistics on the same data: the same numbers, and the cost of each."""
    rng = np.random.default_rng(1)
    w, v = rng.normal(scale=0.1, size=(2, dataset.n_features))
    products = {}
    for method in ("direct", "order-statistic"):
        loss = CpuPairLoss(kernel_data(dataset), method=method)
        loss.loss_and_gradient(w)
        loss.accept()
        products[method] = loss.hessian_vector(v)
        timing = bench.time(f"{method}, {levels}", lambda made=loss: made.hessian_vector(v), repeat=3)
        bench.record(f"Hessian-vector product, {method}, {levels}", value=timing.minimum, unit="s")
    difference = np.abs(products["direct"] - products["order-statistic"]).max() / np.abs(products["direct"]).max()
    bench.check(f"both methods agree, {levels}", difference < 1e-6, f"relative difference {difference:.1e}")
    chosen = CpuPairLoss(kernel_data(dataset)).method
    bench.check(f"auto chose a method, {levels}", chosen in products, chosen)


def time_training(
    bench: Benchmark, name: str, dataset: RankingDataset, C: float, seconds: float | None, paper: str
) -> None:
    trained = ranker("cpu", C=C).fit(dataset)
    bench.check(f"{name}: converged", trained.converged_)
    timing = bench.time(f"training, {name}", lambda: ranker("cpu", C=C).fit(dataset), repeat=3, warmup=0)
    bench.record(
        f"to tolerance, {name}",
        value=timing.minimum,
        unit="s",
        target=seconds,
        paper=paper,
        note=f"{trained.history_['products'][-1]} products, {trained.method_}",
    )


def show_preconditioner(bench: Benchmark) -> None:
    """Raw features: the products that conjugate gradients need, with and without the diagonal preconditioner."""
    data = kernel_data(collection(bench, "mslr10k", standardised=False))
    counts = {}
    for name, share in (("with", 1.0), ("without", 0.0)):
        timing = bench.time(
            f"raw features, {name} the preconditioner", lambda a=share: minimise_raw(data, a), repeat=1, warmup=0
        )
        result = timing.result
        counts[name] = result.n_products
        bench.record(
            f"`mslr10k` shape, raw features, {name} the preconditioner",
            value=timing.minimum,
            unit="s",
            paper=RANKSVM_TABLE_2["mslr10k"] if name == "with" else None,
            note=f"{result.n_products:,} products to a relative gradient of {result.relative_gradient:.1e}",
        )
        bench.check(f"the run {name} the preconditioner ended", name == "without" or result.converged)
    bench.check("the preconditioner saves products", bench.quick or counts["with"] < counts["without"], str(counts))


def minimise_raw(data: PairData, preconditioning: float) -> NewtonResult:
    """To tolerance, or until `MOST_PRODUCTS` are spent."""
    objective = RankSVMObjective(CpuPairLoss(data), C=1.0)
    spent = 0

    def enough(step: NewtonStep) -> bool:
        nonlocal spent
        spent += step.n_products
        return spent >= MOST_PRODUCTS

    start = np.zeros(data.features.shape[1])
    return minimise(objective, start, tolerance=TOLERANCE, preconditioning=preconditioning, callback=enough)


_in_child: list[RankingDataset] = []


def make_in_child(scale: float) -> None:
    """For the measurement of memory, which runs in its own process: the data, and compiled kernels."""
    _in_child.append(make_ranking("mslr10k", scale=scale, standardised=True))
    ranker("cpu").fit(_in_child[0].subset(range(10)))


def train_in_child() -> None:
    ranker("cpu").fit(_in_child[0])


def record_memory(bench: Benchmark) -> None:
    scale = 0.01 if bench.quick else 1.0
    n_docs = int(723_421 * scale)
    path = "benchmarks.ranksvm_cpu"
    peak = measure.peak_memory(f"{path}:train_in_child", prepare=(f"{path}:make_in_child", scale))
    bench.record(
        "memory beyond X, `mslr10k` shape",
        value=peak / n_docs,
        unit="bytes per document",
        note=f"{peak / 1e6:.0f} MB; X itself is {n_docs * 136 * 4 / 1e6:.0f} MB and is not copied",
    )
