"""A processing element beside an obvious model, for a solver: every total that is written is the model's."""

from __future__ import annotations

from pathlib import Path

from amaranth.hdl import Array, Assert, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rankwell.hardware.netlist import rtlil_of
from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.tools import run_yosys


class ProvedElement(wiring.Component):
    """`element` is given any items, after all bins are cleared, as the array's control does; `sums` is the model."""

    def __init__(self, element, configuration: RankBoostConfiguration) -> None:
        self.element, self.configuration = element, configuration
        super().__init__({"bin": In(configuration.bin_bits), "pi": In(configuration.pi_bits), "clear": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.element = element = self.element
        # The sweep, and as long again until no item from before it is in the pipeline.
        first_items = self.configuration.bins + self.configuration.stages
        counter, sweeping = Signal(range(first_items + 1)), Signal()
        m.d.comb += sweeping.eq(counter != first_items)
        m.d.sync += counter.eq(counter + sweeping)
        pi, clear = self.pi, self.clear | sweeping
        for stage in range(1, self.configuration.stages - 1):  # from A to C
            later_pi, later_clear = Signal(len(self.pi), name=f"pi_{stage}"), Signal(name=f"clear_{stage}")
            m.d.sync += [later_pi.eq(pi), later_clear.eq(clear)]
            pi, clear = later_pi, later_clear
        m.d.comb += [element.bin.eq(Mux(sweeping, counter, self.bin)), element.pi.eq(pi), element.clear.eq(clear)]
        written_pi, written_clear = Signal(signed(len(self.pi))), Signal()
        m.d.sync += [written_pi.eq(pi), written_clear.eq(clear)]
        bits = self.configuration.sum_bits
        sums = Array(Signal(signed(bits), name=f"sum_{number}") for number in range(self.configuration.bins))
        expected = Signal(signed(bits))
        m.d.comb += expected.eq(Mux(written_clear, 0, sums[element.total_bin] + written_pi))
        m.d.sync += sums[element.total_bin].eq(expected)
        with m.If(~sweeping):
            m.d.comb += Assert(element.total == expected)
        return m


def prove(element, configuration: RankBoostConfiguration, n_cycles: int, folder: Path) -> None:
    """Bounded model checking over all inputs of so many cycles; a `DeviceError` if the solver finds a wrong total."""
    n_cycles += configuration.bins + configuration.stages
    (folder / "proof.il").write_text(rtlil_of(ProvedElement(element, configuration)))
    run_yosys(
        "read_rtlil proof.il; hierarchy -top top; proc; flatten; memory -nordff; memory_map; chformal -lower; opt; "
        f"sat -verify -prove-asserts -set rst 0 -seq 1 -tempinduct-skip 0 -maxsteps {n_cycles} -tempinduct-baseonly "
        "-tempinduct",
        folder,
    )
