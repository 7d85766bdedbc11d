"""Accumulators: sums by batch and step in block RAM, some of them side by side in a word.

    A  the address is given                                  0
    B  the block RAM has read                                1
    R  its output register has the sums; the addends come    2
    C  the sums, one bit wider                               3
    E  saturated, and written                                4

A word that is given in A must not come again in the next `LOOP_CYCLES` − 1 cycles; the control sees to it, so nothing
is forwarded.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.configuration import ListNetConfiguration

_TO_TOTAL, _TO_WRITE = 3, 4


class Accumulators(wiring.Component):
    """`lanes` sums for each address.

    Members
    -------
    address, writes, clears : in A
        Which word; whether its new sums are written, and whether they are 0 instead.
    addends : in R
        What is added, `bits` each, signed.
    word : in R
        The sums before the addition.
    """

    def __init__(self, configuration: ListNetConfiguration, lanes: int) -> None:
        self.configuration, self.lanes = configuration, lanes
        super().__init__(
            {
                "address": In(configuration.address_bits),
                "writes": In(1),
                "clears": In(1),
                "addends": In(lanes * configuration.bits),
                "word": Out(lanes * configuration.accumulator_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        bits, wide = self.configuration.bits, self.configuration.accumulator_bits
        m.submodules.sums = sums = memory.Memory(shape=self.lanes * wide, depth=self.configuration.depth, init=[])
        read, write = sums.read_port(), sums.write_port()
        word = Signal(self.lanes * wide, reset_less=True)
        clears = delayed(m, self.clears, _TO_TOTAL, "clears")
        totals = []
        for lane in range(self.lanes):
            wider = Signal(signed(wide + 1), name=f"sum_{lane}", reset_less=True)
            total = Signal(wide, name=f"total_{lane}", reset_less=True)
            beyond = wider[wide] != wider[wide - 1]
            limit = Cat((~wider[wide]).replicate(wide - 1), wider[wide])
            m.d.sync += [
                wider.eq(word.word_select(lane, wide).as_signed() + self.addends.word_select(lane, bits).as_signed()),
                total.eq(Mux(clears, 0, Mux(beyond, limit, wider[:wide]))),
            ]
            totals.append(total)
        m.d.sync += word.eq(read.data)
        m.d.comb += [
            read.addr.eq(self.address),
            read.en.eq(1),
            self.word.eq(word),
            write.addr.eq(delayed(m, self.address, _TO_WRITE, "address")),
            write.data.eq(Cat(totals)),
            write.en.eq(delayed(m, self.writes, _TO_WRITE, "writes", reset_less=False)),
        ]
        return m
