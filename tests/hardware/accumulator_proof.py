"""Accumulators beside an obvious model, for a solver: every sum that is read is the model's."""

from __future__ import annotations

from pathlib import Path

from amaranth.hdl import Array, Assert, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.accumulators import Accumulators
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.netlist import rtlil_of
from rankwell.hardware.tools import run_yosys

_WORDS = 4
_TO_WORD = 2


class ProvedAccumulators(wiring.Component):
    """Any addends to any of four words, cleared first; a word is given again after `distance` cycles or more."""

    def __init__(self, configuration: ListNetConfiguration, distance: int) -> None:
        self.configuration, self.distance = configuration, distance
        super().__init__({"address": In(2), "addend": In(configuration.bits), "writes": In(1), "clears": In(1)})

    def elaborate(self, platform):
        m = Module()
        bits, wide = self.configuration.bits, self.configuration.accumulator_bits
        m.submodules.accumulators = accumulators = Accumulators(self.configuration, 1)
        # The sweep clears the words, and then nothing is written until no earlier cycle can matter.
        first_items = _WORDS + self.distance
        counter, sweeping = Signal(range(first_items + 1)), Signal()
        m.d.comb += sweeping.eq(counter != first_items)
        m.d.sync += counter.eq(counter + sweeping)
        address, writes, clears = Signal(2), Signal(), Signal()
        recent = [(delayed(m, writes, age, f"w{age}"), delayed(m, address, age, f"a{age}")) for age in _ages(self)]
        soon = Cat(gave & (other == address) for gave, other in recent).any()
        m.d.comb += [
            address.eq(Mux(sweeping, counter[:2], self.address)),
            writes.eq(Mux(sweeping, counter < _WORDS, self.writes & ~soon)),
            clears.eq(sweeping | self.clears),
            accumulators.address.eq(Cat(address, Const(0, self.configuration.address_bits - 2))),
            accumulators.writes.eq(writes),
            accumulators.clears.eq(clears),
            accumulators.addends.eq(delayed(m, self.addend, _TO_WORD, "addend")),
        ]
        sums = Array(Signal(signed(wide), name=f"sum_{word}") for word in range(_WORDS))
        limit = 1 << wide - 1
        total = Signal(signed(wide + 1))
        m.d.comb += total.eq(sums[address] + self.addend.as_signed())
        saturated = Mux(total >= limit, limit - 1, Mux(total < -limit, -limit, total))
        with m.If(writes):
            m.d.sync += sums[address].eq(Mux(clears, 0, saturated))
        expected = delayed(m, sums[address], _TO_WORD, "expected")
        with m.If(delayed(m, writes & ~sweeping, _TO_WORD, "comes")):
            m.d.comb += Assert(accumulators.word == expected.as_unsigned())
        assert bits < wide
        return m


def _ages(proved):
    return range(1, proved.distance)


def prove(distance: int, n_cycles: int, folder: Path) -> None:
    """Bounded model checking over all inputs of so many cycles; a `DeviceError` if the solver finds a wrong sum."""
    configuration = ListNetConfiguration(features=1, hidden=1, unrolling=1, bits=4, accumulator_bits=5, batches=1)
    (folder / "proof.il").write_text(rtlil_of(ProvedAccumulators(configuration, distance)))
    n_cycles += _WORDS + distance
    run_yosys(
        "read_rtlil proof.il; hierarchy -top top; proc; flatten; memory -nordff; memory_map; chformal -lower; opt; "
        f"sat -verify -prove-asserts -set rst 0 -seq 1 -tempinduct-skip 0 -maxsteps {n_cycles} -tempinduct-baseonly "
        "-tempinduct",
        folder,
    )
