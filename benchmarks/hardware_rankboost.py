"""What does FAR's RankBoost accelerator need and reach on a part that anyone can place for, and is it right?

The array of 16 PEs is placed and routed for an ECP5-85k, speed grade 8, with nextpnr's seeds 1 to 3, and as many PEs as
fit with one seed: frequency and resources are the tools' output, and the notes name their versions. Simulated rounds,
random and adversarial, must give the choice of the CPU's kernels in exactly the cycles of the formula; so must a
training on MQ2008 Fold1 and a whole round at the FAR paper's size. Searches at that size are predicted by the model
(docs/algorithms/hardware.md) for the paper's memories and for a board with HBM.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.hardware_cases import KINDS, chosen_by_kernels, make_round, random_stalls
from benchmarks.hardware_notes import describe_synthesis
from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_fold, synthetic_fold
from benchmarks.rankboost_cases import paper_ranker, queries_of, scaled_shape
from benchmarks.rankboost_cpu import random_bins
from rankwell.hardware.rankboost.accelerator import RankBoostAccelerator
from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.cycles import reset_cycles, round_cycles
from rankwell.hardware.rankboost.far_paper import N_DOCS, N_FEATURES, TABLE_IV
from rankwell.hardware.rankboost.performance import BOARDS, predict_round
from rankwell.hardware.rankboost.search import SimulatedSearch
from rankwell.hardware.rankboost.speedup_plot import plot_speedup
from rankwell.hardware.simulation.simulation import simulate
from rankwell.hardware.synthesis import synthesise
from rankwell.hardware.targets import TARGETS
from rankwell.kernels.boosting.cpu.booster import LevelBooster
from rankwell.kernels.boosting.cpu.documents import DocumentWeights, initial_weights
from rankwell.kernels.boosting.precision import tolerance

MANY_PES = 128
FAR_CYCLES = 49_300_000


def run(bench: Benchmark) -> None:
    check_rounds(bench)
    record_training(bench)
    record_far(bench)
    record_placement(bench)
    record_predictions(bench)
    plot_speedup(bench.figure("rankboost_speedup"))


def check_rounds(bench: Benchmark) -> None:
    """Rounds of every kind, in one simulation: the kernels' choice, and the cycles of the formula."""
    configuration = RankBoostConfiguration()
    simulation = simulate(RankBoostAccelerator(configuration))
    rng = np.random.default_rng(0)
    n_rounds, wrong, off, repeated, n_stalled = (40 if bench.quick else 2000), 0, 0, 0, 0
    for number in range(n_rounds):
        case = make_round(rng, KINDS[number % len(KINDS)])
        is_stalled = number % (len(KINDS) + 1) == len(KINDS)  # so every kind is
        stalls = random_stalls(rng, configuration.channels + 2) if is_stalled else None
        search = SimulatedSearch(case.bins, case.n_features, configuration, simulation=simulation)
        choice = search.find(case.pi, case.margin, stalls=stalls)
        wrong += (choice.feature, choice.bin, choice.r) != chosen_by_kernels(case)
        expected = round_cycles(configuration, len(case.pi), case.n_features) * (2 if choice.repeated else 1)
        expected += reset_cycles(configuration) if number == 0 else 0
        off += choice.cycles < expected if is_stalled else choice.cycles != expected
        repeated += choice.repeated
        n_stalled += is_stalled
    bench.check("the kernels' choice in every simulated round", wrong == 0, f"{wrong} of {n_rounds} wrong")
    bench.check(
        "the cycles of the formula in every round, no fewer with stalls", off == 0, f"{off} of {n_rounds} differ"
    )
    bench.record(
        "simulated rounds with the kernels' choice",
        value=n_rounds,
        unit="rounds",
        target=None if bench.quick else 1000,
        better="higher",
        note=f"{', '.join(KINDS)}; {repeated} were repeated for too many records, "
        f"{n_stalled} had stalls on all streams",
    )


def record_training(bench: Benchmark) -> None:
    """20 rounds on MQ2008 Fold1: the CPU's weak rankers, losses included."""
    fold = None if bench.quick else letor_fold(bench, "MQ2008", 1)
    name = "MQ2008's shape, synthetic" if fold is None else "MQ2008 Fold1"
    train = (synthetic_fold(0.05) if fold is None else fold).train
    expected = paper_ranker(n_rounds=20, device="cpu").fit(train)
    simulated = paper_ranker(n_rounds=20, device="fpga-sim").fit(train)
    same = all(simulated.state_[key].tobytes() == values.tobytes() for key, values in expected.state_.items())
    bench.check(f"{name}: the CPU's model", same and simulated.history_["loss"] == expected.history_["loss"])
    cycles = simulated.history_["cycles"]
    bench.record(
        f"{name}, search of a round",
        value=cycles[-1],
        unit="cycles",
        note=f"20 rounds; {sum(simulated.history_['board_seconds']) * 1e3:.2f} ms of searches at 200 MHz",
    )


def record_far(bench: Benchmark) -> None:
    """A whole round of the paper's size, and how fast the simulator is."""
    shape = scaled_shape("far", docs=0.002 if bench.quick else 1.0)
    queries = queries_of(shape)
    bins = random_bins(shape, queries)
    weights = initial_weights(queries)
    expected = LevelBooster(bins, shape.n_features, 256, queries, initial_weights(queries)).boost(1)
    configuration = RankBoostConfiguration()
    search = SimulatedSearch(bins, shape.n_features, configuration)
    pi = DocumentWeights(queries, weights).potentials()
    start = time.process_time()
    choice = search.find(pi, tolerance(queries.n_docs))
    seconds = time.process_time() - start
    found = (choice.feature, choice.bin, choice.r)
    first = (int(expected.feature[0]), int(expected.bin[0]), int(expected.r[0]))
    bench.check("far: the CPU's weak ranker", found == first, f"{found} and {first}")
    cycles = round_cycles(configuration, queries.n_docs, shape.n_features)
    bench.check("far: the cycles of the formula", choice.cycles == cycles + reset_cycles(configuration))
    bench.record(
        "far, a round of 16 PEs",
        value=cycles,
        unit="cycles",
        target=None if bench.quick else FAR_CYCLES,
        note=f"{queries.n_docs:,} documents with pairs; the first round takes {reset_cycles(configuration)} more",
    )
    bench.record(
        "far, simulator",
        value=choice.cycles / seconds,
        unit="cycles/s",
        target=None if bench.quick else 500_000,
        better="higher",
        note=f"{search.simulation.simulator}, one thread, by its processor time",
    )


def record_placement(bench: Benchmark) -> None:
    """The array of 16, best of three seeds, and many PEs; in the quick form, two PEs are only counted."""
    if bench.quick:
        synthesis = synthesise(RankBoostAccelerator(RankBoostConfiguration(pes=2)), TARGETS["ecp5-25k"])
        bench.check("two PEs have two block RAMs", synthesis.resources.block_rams == 2)
        return
    target = TARGETS["ecp5-85k"]
    few = synthesise(RankBoostAccelerator(RankBoostConfiguration()), target, place=True, seeds=(1, 2, 3))
    note = describe_synthesis(few)
    bench.record(
        "16 PEs, ECP5-85k, routed",
        value=few.megahertz or 0.0,
        unit="MHz",
        target=200,
        better="higher",
        paper="FAR1 180 MHz, 8 PEs",
        note=note,
    )
    bench.record("16 PEs, ECP5-85k", value=few.resources.luts, unit="LUTs", target=5000, note=note)
    bench.record("16 PEs, ECP5-85k", value=few.resources.block_rams, unit="block RAMs", target=16, note=note)
    many = synthesise(
        RankBoostAccelerator(RankBoostConfiguration(pes=MANY_PES)), target, place=True, seeds=(1,), megahertz=200
    )
    bench.record(
        f"{MANY_PES} PEs, ECP5-85k, routed",
        value=many.megahertz or 0.0,
        unit="MHz",
        target=150,
        better="higher",
        note=describe_synthesis(many),
    )


def record_predictions(bench: Benchmark) -> None:
    """Searches at the paper's size by the model."""
    for name in ("far1", "far2", "hbm"):
        board = BOARDS[name]
        prediction = predict_round(board, N_DOCS, N_FEATURES)
        paper = None
        if name in TABLE_IV:
            times = TABLE_IV[name]
            paper = f"{times.search * 1e3:.0f} + {times.transfer * 1e3:.0f} ms"
        bench.record(
            f"predicted search, {board.title}",
            value=prediction.search * 1e3,
            unit="ms",
            target=10 if name == "hbm" else None,
            paper=paper,
            note=f"{board.pes} PEs at {board.megahertz:g} MHz: memory {prediction.fill_memory * 1e3:.1f} ms, clock "
            f"{prediction.fill_compute * 1e3:.1f} ms, scans {prediction.overhead * 1e3:.2f} ms; not measured",
        )
