"""What does the thesis's ListNet accelerator need and reach on a part that anyone can place for, and is it right?

Back propagation of 46-15-1 in 8 bits (batch) is placed and routed for an ECP5-85k, speed grade 8, with 30 and with 120
products of weight gradients a cycle; forward pass and loss gradient are counted. Frequency and resources are the tools'
output, and the notes name their versions. Simulated queries, random and adversarial, must give the sums of the integer
model in exactly the cycles of the formula; a training on MQ2008 Fold1 must give the CPU's model.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.hardware_listnet_cases import KINDS, expected_sums, make_query
from benchmarks.hardware_notes import describe_synthesis
from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_fold, synthetic_fold
from benchmarks.listnet_cases import list_collection
from rankwell.data.dataset import RankingDataset
from rankwell.hardware.listnet.back_propagation import BackPropagation
from rankwell.hardware.listnet.board import MEGAHERTZ, multiplier_blocks
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.cycles import epoch_cycles, loss_cycles, query_cycles, reset_cycles
from rankwell.hardware.listnet.forward import SimulatedLossGradient
from rankwell.hardware.listnet.forward_format import OUTPUT_POINT
from rankwell.hardware.listnet.forward_reference import fixed_truth, list_gradient, scaled_gradient
from rankwell.hardware.listnet.gradient import SimulatedBackPropagation
from rankwell.hardware.listnet.loss_gradient import LossConfiguration
from rankwell.hardware.listnet.resources_plot import plot_resources
from rankwell.hardware.listnet.tasks import task_cycles, task_design
from rankwell.hardware.listnet.thesis import INITIATION_INTERVAL, TABLE_4_1, TABLE_4_2
from rankwell.hardware.synthesis import Synthesis, synthesise
from rankwell.hardware.targets import TARGETS
from rankwell.kernels.lists.cpu.top_k_loss import top_k_truth
from rankwell.kernels.lists.cpu.two_places import FIRST, MEMBERSHIP
from rankwell.rankers.listnet import ListNet

BITS = (8, 10, 16, 22, 27, 31)
EPOCH_CYCLES = 3_300_000


def run(bench: Benchmark) -> None:
    check_queries(bench)
    record_training(bench)
    record_epoch(bench)
    placed = record_placement(bench)
    record_resources(bench, placed)


def check_queries(bench: Benchmark) -> None:
    """Queries of every kind, in one simulation: the integer model's sums, and the cycles of the formula."""
    small = {"features": 5, "hidden": 2, "unrolling": 4} if bench.quick else {}
    configuration = ListNetConfiguration(**small)
    simulated = SimulatedBackPropagation(configuration)
    rng = np.random.default_rng(0)
    n_queries, wrong, off = (40 if bench.quick else 1000), 0, 0
    for number in range(n_queries):
        query = make_query(rng, configuration, KINDS[number % len(KINDS)])
        found = simulated.sums(query)
        wrong += not np.array_equal(found.parameters, expected_sums(query, configuration))
        expected = query_cycles(configuration, len(query.gradient))
        off += found.cycles != expected + (reset_cycles(configuration) if number == 0 else 0)
    bench.check("the integer model's sums in every simulated query", wrong == 0, f"{wrong} of {n_queries} wrong")
    bench.check("the cycles of the formula in every query", off == 0, f"{off} of {n_queries} differ")
    bench.record(
        "simulated queries with the integer model's sums",
        value=n_queries,
        unit="queries",
        target=None if bench.quick else 1000,
        better="higher",
        note=", ".join(KINDS),
    )


def record_training(bench: Benchmark) -> None:
    """Epochs on MQ2008 Fold1: the CPU's parameters and losses."""
    fold = None if bench.quick else letor_fold(bench, "MQ2008", 1)
    name = "MQ2008's shape, synthetic" if fold is None else "MQ2008 Fold1"
    train = (synthetic_fold(0.02) if fold is None else fold).train
    settings: dict[str, Any] = {"precision": "fixed8", "n_seeds": 1, "normalize": "none"}
    settings |= {"hidden": (2,), "n_epochs": 2} if bench.quick else {"n_epochs": 20}
    expected = ListNet(device="cpu", **settings).fit(train)
    start = time.perf_counter()
    simulated = ListNet(device="fpga-sim", **settings).fit(train)
    seconds = time.perf_counter() - start
    same = all(
        np.array_equal(ours.weights, theirs.weights) and np.array_equal(ours.bias, theirs.bias)
        for ours, theirs in zip(simulated.description_.layers, expected.description_.layers, strict=True)
        if hasattr(ours, "weights")
    )
    bench.check(f"{name}: the CPU's model", same and simulated.history_["loss"] == expected.history_["loss"])
    cycles = simulated.history_["cycles"]
    bench.record(
        f"{name}, back propagation of an epoch",
        value=cycles[-1],
        unit="cycles",
        note=f"{len(cycles)} epochs, {sum(simulated.history_['board_seconds']) * 1e3:.2f} ms of the board; simulated "
        f"at {sum(cycles) / seconds:,.0f} cycles a second, the host's part and the first compilation included",
    )


def record_epoch(bench: Benchmark) -> None:
    """An epoch of MQ2008-list with 150 products a cycle, by the formula; in full, its longest query is simulated."""
    collection = list_collection(bench.quick)
    sizes = collection.query_sizes
    configuration = ListNetConfiguration(unrolling=150)
    cycles = task_cycles(configuration, LossConfiguration(), sizes)
    per_document = cycles["backward"] / max(int(sizes.sum()), 1)
    bench.record(
        "back propagation of an epoch of MQ2008-list, 150 products a cycle",
        value=cycles["backward"],
        unit="cycles",
        target=None if bench.quick else EPOCH_CYCLES,
        paper=f"unrolling 150, one permutation in {INITIATION_INTERVAL} cycles",
        note=f"{per_document:.2f} a document; forward pass {cycles['forward']:,} and loss gradient "
        f"{cycles['loss']:,} more, if they are on the board too",
    )
    record_third_place(bench, collection)
    if bench.quick:
        return
    longest = int(sizes.max())
    query = make_query(np.random.default_rng(1), configuration, "long", most_docs=-(-longest // 3))
    found = SimulatedBackPropagation(configuration).sums(query)
    expected = query_cycles(configuration, len(query.gradient)) + reset_cycles(configuration)
    bench.check("150 products a cycle: a long query in the cycles of the formula", found.cycles == expected)
    bench.check("150 products a cycle: its sums", np.array_equal(found.parameters, expected_sums(query, configuration)))
    bench.check("the epoch is the sum of its queries", cycles["backward"] == epoch_cycles(configuration, sizes))


def record_third_place(bench: Benchmark, collection: RankingDataset) -> None:
    """The exact Top-3 loss of an epoch, by the formula; a list is simulated."""
    configuration = LossConfiguration(k=3)
    truth = top_k_truth(3, collection.labels, collection.query_ptr)
    cycles, most = 0, 0
    for start, end in pairwise(collection.query_ptr.tolist()):
        of_list = fixed_truth(3, truth[FIRST, start:end], truth[MEMBERSHIP, start:end])
        cycles += loss_cycles(configuration, end - start, of_list.n_candidates)
        most = max(most, of_list.n_candidates)
    scores = np.random.default_rng(2).integers(0, 2**OUTPUT_POINT, end - start)
    simulated = SimulatedLossGradient(configuration)
    simulated.gradients(scores, of_list)
    value, _, taken = simulated.gradients(scores, of_list)
    expected, _ = scaled_gradient(
        list_gradient(3, scores, of_list), configuration.bits, configuration.batches, configuration.method
    )
    bench.check("Top-3: the integer twin's gradient", np.array_equal(value, expected))
    expected_cycles = loss_cycles(configuration, end - start, of_list.n_candidates)
    bench.check("Top-3: the cycles of the formula", taken == expected_cycles, f"{taken} and {expected_cycles}")
    bench.record(
        "loss gradient of an epoch of MQ2008-list, exact Top-3",
        value=cycles,
        unit="cycles",
        paper="10.4 s, sampled Top-3 in 8 bits, all tasks",
        note=f"{cycles / MEGAHERTZ / 1e3:.1f} ms at {MEGAHERTZ:g} MHz; at most {most} documents of a list form pairs",
    )


def record_placement(bench: Benchmark) -> dict[int, Synthesis]:
    """30 and 120 products a cycle, routed; in the quick form a small network is only counted."""
    if bench.quick:
        small = ListNetConfiguration(features=5, hidden=2, unrolling=4)
        synthesis = synthesise(BackPropagation(small), TARGETS["ecp5-25k"])
        bench.check("every product has a multiplier", synthesis.resources.multipliers == small.multipliers)
        return {}
    found = {}
    for unrolling, target, seeds in ((30, 175, (1, 2)), (120, 150, (1,))):
        configuration = ListNetConfiguration(unrolling=unrolling)
        synthesis = synthesise(BackPropagation(configuration), TARGETS["ecp5-85k"], place=True, seeds=seeds)
        found[unrolling] = synthesis
        bench.record(
            f"46-15-1, 8 bits, {unrolling} products of weight gradients a cycle, ECP5-85k, routed",
            value=synthesis.megahertz or 0.0,
            unit="MHz",
            target=target,
            better="higher",
            paper="300 MHz, ZCU102",
            note=describe_synthesis(synthesis),
        )
    return found


def record_resources(bench: Benchmark, placed: dict[int, Synthesis]) -> None:
    """Resources against bits, and of the other two kernels: counted, except where placed."""
    small = {"features": 5, "hidden": 2, "unrolling": 4} if bench.quick else {}
    found = {}
    for bits in (8, 22) if bench.quick else BITS:
        configuration = ListNetConfiguration(bits=bits, accumulator_bits=bits + 10, **small)
        synthesis = placed.get(configuration.unrolling) if bits == BITS[0] else None
        synthesis = synthesis or synthesise(BackPropagation(configuration), TARGETS["ecp5-85k"])
        found[bits] = synthesis
        expected = configuration.multipliers * multiplier_blocks(bits)
        bench.check(f"{bits} bits: multipliers", synthesis.resources.multipliers == expected)
        usage = TABLE_4_2.get(bits) or TABLE_4_1.get(("direct", bits))
        bench.record(
            f"{bits} bits, {configuration.unrolling} products of weight gradients a cycle",
            value=synthesis.resources.luts,
            unit="LUTs",
            paper=usage and f"{usage.luts:,} LUTs, {usage.registers:,} registers, {usage.multipliers} DSP (all tasks)",
            note=describe_synthesis(synthesis),
        )
    configuration = ListNetConfiguration(**small)
    for task, k, title in (
        ("forward", 1, "forward pass, 16 bits"),
        ("loss", 2, "loss gradient, Top-2"),
        ("loss", 3, "loss gradient, Top-3"),
    ):
        synthesis = synthesise(task_design(task, configuration, LossConfiguration(k=k)), TARGETS["ecp5-85k"])
        bench.record(title, value=synthesis.resources.luts, unit="LUTs", note=describe_synthesis(synthesis))
    if not bench.quick:
        plot_resources(found, bench.figure("listnet_resources"))
