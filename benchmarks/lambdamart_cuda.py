"""How close does a whole LambdaMART round on a GPU come to only moving its bytes?

At the sizes of MSLR-WEB30K (3,771,125 documents, 136 features) and of the FPGA paper (1,196,711, 646), synthetic
features. A round is everything: lambdas, gradients as whole numbers, histograms, cuts, documents by leaf, scores; the
time is that of a batch of rounds after the first ones, the host's wait at its end included, divided by their number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.device_reading import reader
from benchmarks.harness import Benchmark
from rankwell.data.synthetic import make_ranking
from rankwell.kernels.trees.columns import LOWEST, N_CODES
from rankwell.kernels.trees.contract import BinTree, TreeProblem, TreeSettings
from rankwell.kernels.trees.feature_rules import FeatureRules, group_bits
from rankwell.kernels.trees.losses import LOSSES, RankingLoss, judged_queries
from rankwell.kernels.trees.sampling import Sampling

ROUNDS = 32
READS = 20
# Rounds before the measured ones: the first trees, of scores that are all 0, are not typical.
EARLIER_ROUNDS = 20
# Milliseconds that a round may take, by collection and number of leaves.
TARGETS = {("mslr30k", 31): 2.0, ("mslr30k", 255): 5.0, ("far", 31): 3.0}


def run(bench: Benchmark) -> None:
    check_trees(bench)
    for name, n_docs in (("mslr30k", 3_771_125), ("far", 1_196_711)):
        data = slabs_of(make_ranking(name, n_docs=n_docs // 100 if bench.quick else n_docs))
        for (of, n_leaves), target in TARGETS.items():
            if of == name:
                record_rounds(bench, name, tree_problem(data, n_leaves), target)
        if name == "mslr30k":
            record_waiting(bench, tree_problem(data, 31))
            record_variants(bench, tree_problem(data, 31))
            record_losses(bench, data)
        else:
            record_streaming(bench, tree_problem(data, 31))


def slabs_of(dataset: Any) -> tuple[Any, ...]:
    """Slabs, columns, query_ptr and gains of a dataset."""
    from rankwell.data.binning import Binner
    from rankwell.rankers.tree_bins import TreeBins
    from rankwell.rankers.tree_data import binned_slabs, gains_of

    slabs, columns = binned_slabs(dataset, TreeBins(Binner().fit(dataset), dataset, (), n_jobs=None), None)
    return slabs, columns, dataset.query_ptr, gains_of(dataset.labels, "exponential")


def tree_problem(data: tuple[Any, ...], n_leaves: int, name: str = "lambdarank", noise: float = 0.0) -> TreeProblem:
    """LightGBM's defaults but for the number of leaves and the loss."""
    slabs, columns, query_ptr, gains = data
    loss = RankingLoss(LOSSES[name], 30, 1.0, 1, noise)
    settings = TreeSettings(n_leaves=n_leaves, min_docs_leaf=20, min_hessian_leaf=1e-3)
    return TreeProblem(slabs, columns, settings, loss, judged_queries(loss, query_ptr, gains), query_ptr)


def make_booster(problem: TreeProblem, **options: Any) -> Any:
    from rankwell.kernels.trees.cuda.booster import CudaTreeBooster

    return CudaTreeBooster(problem, np.zeros(problem.n_docs, np.float32), **options)


def check_trees(bench: Benchmark) -> None:
    """Trees grown on the device have the bytes of the CPU's."""
    from rankwell.kernels.trees.cpu.booster import CpuTreeBooster

    data = slabs_of(make_ranking("mslr10k", scale=0.05, missing=0.02))
    whole = tree_problem(data, 63)
    for drawn, problem in (
        ("", whole),
        (" with random parts", replace(whole, sampling=Sampling(0.6, 0.7, 0.8, 0.9, seed=1))),
        (" of noisy rankings", tree_problem(data, 63, noise=0.3)),
        (" of xendcg", tree_problem(data, 63, "xendcg")),
    ):
        cpu = CpuTreeBooster(problem, np.zeros(problem.n_docs, np.float32))
        booster = make_booster(problem)
        trees = booster.boost_rounds(0, 20)
        same = all(
            np.array_equal(getattr(own, name), getattr(theirs, name))
            for own, theirs in zip(trees, cpu.boost_rounds(0, len(trees)), strict=True)
            for name in BinTree.__dataclass_fields__
        )
        same = same and np.array_equal(booster.scores(), cpu.scores()) and len(trees) == 20
        bench.check(f"20 trees{drawn} and the scores after them are the CPU's, bit for bit", same)


def round_bytes(problem: TreeProblem, tree: BinTree) -> int:
    """The fewest bytes that a tree moves: each document counted, divided or scored is read once, and written once."""
    children = np.stack([tree.left, tree.right])
    docs = np.where(
        children >= 0, tree.node_docs[np.maximum(children, 0)], tree.leaf_docs[-1 - np.minimum(children, -1)]
    )
    counted = problem.n_docs + int(docs.min(axis=0).sum())
    divided = int(tree.node_docs.sum())
    row_and_sums = 4 + 8
    by_document = 4 * 4 + row_and_sums  # scores, gradient and Hessian read and written once; packed
    column_bytes = len(problem.columns.sizes) + row_and_sums
    return counted * column_bytes + divided * (1 + 2 * row_and_sums) + problem.n_docs * by_document


def record_rounds(bench: Benchmark, name: str, problem: TreeProblem, target: float) -> None:
    import cupy

    n_leaves = problem.settings.n_leaves
    booster = make_booster(problem)
    booster.boost_rounds(0, 2 if bench.quick else EARLIER_ROUNDS)
    trees: list[BinTree] = []
    timing = bench.time(
        f"{name}, {n_leaves} leaves: {ROUNDS} rounds",
        lambda: trees.extend(booster.boost_rounds(0, ROUNDS)),
        repeat=2 if bench.quick else 5,
    )
    seconds = timing.median / ROUNDS
    array = cupy.zeros(2**28 if bench.quick else 2**32, dtype=np.uint8)
    read = bench.time(f"{name}, {n_leaves} leaves: read {array.nbytes} bytes {READS} times", reader(array, READS))
    bandwidth = array.nbytes * READS / read.median
    floor = float(np.median([round_bytes(problem, tree) for tree in trees[-ROUNDS:]])) / bandwidth
    bench.record(
        f"{name}, {n_leaves} leaves, a whole round",
        value=seconds * 1e3,
        unit="ms",
        target=None if bench.quick else target,
        rival="only moving its bytes",
        rival_value=floor * 1e3,
        note=f"{seconds / floor:.1f} times that; {len(problem.columns.sizes)} columns, {bandwidth / 1e12:.2f} TB/s",
    )


def record_waiting(bench: Benchmark, problem: TreeProblem) -> None:
    """Rounds together, and with a wait of the host for each, in turns."""
    booster = make_booster(problem)
    booster.boost_rounds(0, 2 if bench.quick else EARLIER_ROUNDS)

    def one_by_one() -> None:
        for number in range(ROUNDS):
            booster.boost(number)

    seconds: dict[str, list[float]] = {"together": [], "one by one": []}
    for _ in range(1 if bench.quick else 3):
        for way, grow in (("together", lambda: booster.boost_rounds(0, ROUNDS)), ("one by one", one_by_one)):
            timing = bench.time(f"mslr30k, 31 leaves: {ROUNDS} rounds {way}", grow, repeat=1, warmup=0)
            seconds[way].append(timing.median / ROUNDS)
    together, alone = (1e3 * float(np.median(seconds[way])) for way in seconds)
    bench.record(
        "mslr30k, 31 leaves, rounds that the host waits for together",
        value=together,
        unit="ms",
        rival="a wait for each",
        rival_value=alone,
    )


def record_variants(bench: Benchmark, whole: TreeProblem) -> None:
    """What random parts of the data, another form of trees and rules for features cost, or save."""
    settings, columns = whole.settings, whole.columns
    n_features = len(columns.by_feature)
    every_fourth, free = np.arange(n_features) % 4 == 0, FeatureRules.none(n_features)
    n_bins = columns.by_feature[:, N_CODES] - 1 + columns.by_feature[:, LOWEST]
    groups = group_bits([list(range(first, n_features, 3)) for first in range(3)], n_features)
    directions = np.resize(np.array([1, 0, -1, 0], np.int8), n_features)
    rules = {
        "half of the features rising or falling": free._replace(direction=directions),
        "three groups of features": free._replace(groups=groups),
        "a quarter of the features categories": free._replace(n_categories=np.maximum(n_bins * every_fourth, 0)),
    }
    problems = {
        "31 leaves, half of the queries and features": replace(whole, sampling=Sampling(queries=0.5, features=0.5)),
        "31 leaves, half of the features for each leaf": replace(whole, sampling=Sampling(node_features=0.5)),
        **{f"31 leaves, {words}": replace(whole, feature_rules=own) for words, own in rules.items()},
        **{
            f"symmetric trees of {depth} levels": replace(
                whole, settings=replace(settings, is_symmetric=True, max_depth=depth, n_leaves=2**depth)
            )
            for depth in (5, 8)
        },
    }
    for words, problem in problems.items():
        booster = make_booster(problem)
        booster.boost_rounds(0, 2 if bench.quick else EARLIER_ROUNDS)
        timing = bench.time(
            f"mslr30k, {words}: {ROUNDS} rounds", lambda booster=booster: booster.boost_rounds(0, ROUNDS), repeat=3
        )
        bench.record(f"mslr30k, {words}", value=timing.median / ROUNDS * 1e3, unit="ms")


def record_losses(bench: Benchmark, data: tuple[Any, ...]) -> None:
    """Losses that draw random numbers, beside rounds whose gradients are computed on the CPU and sent."""
    from rankwell.kernels.trees.cpu.booster import gradient_source

    for words, name, noise in (("xendcg", "xendcg", 0.0), ("lambdarank with noise", "lambdarank", 0.3)):
        problem = tree_problem(data, 31, name, noise)
        assert problem.loss is not None
        assert problem.queries is not None
        booster, fill = make_booster(problem), gradient_source(problem.loss, problem.queries)
        booster.boost_rounds(0, 2 if bench.quick else EARLIER_ROUNDS)
        timing = bench.time(
            f"mslr30k, 31 leaves, {words}: {ROUNDS} rounds",
            lambda booster=booster: booster.boost_rounds(0, ROUNDS),
            repeat=2 if bench.quick else 5,
        )
        gradient, hessian = np.zeros((2, problem.n_docs), np.float32)

        def round_by_host(booster: Any = booster, fill: Any = fill, of_loss: Any = (gradient, hessian)) -> None:
            fill(booster.scores(), 0, *of_loss)
            booster.boost_along(0, *of_loss)

        by_host = bench.time(f"mslr30k, 31 leaves, {words}: a round with the CPU's gradients", round_by_host, repeat=5)
        bench.record(
            f"mslr30k, 31 leaves, {words}, a whole round",
            value=timing.median / ROUNDS * 1e3,
            unit="ms",
            rival="gradients from the CPU",
            rival_value=by_host.median * 1e3,
        )


def record_streaming(bench: Benchmark, problem: TreeProblem) -> None:
    """About half of the slabs on the device, the others sent to it in every step of a tree's growth."""
    booster = make_booster(problem, memory=problem.slabs.nbytes * 7 // 10)
    seconds = bench.time("far, slabs sent: 2 rounds", lambda: booster.boost_rounds(0, 2), repeat=3).median / 2
    share = booster._slabs.n_resident / len(problem.slabs)
    bench.record("far, slabs do not fit", value=seconds * 1e3, unit="ms", note=f"{share:.2f} of them stay")
