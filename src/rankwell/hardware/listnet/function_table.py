"""A function by linear interpolation in a table in block RAM, one value a cycle."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.forward_format import Interpolation

TABLE_CYCLES = 4


class FunctionTable(wiring.Component):
    """`value` is the function at the `place` of `TABLE_CYCLES` cycles ago."""

    def __init__(self, interpolation: Interpolation) -> None:
        self.interpolation = interpolation
        place_bits = (len(interpolation.values) - 1).bit_length() + interpolation.fraction_bits
        super().__init__({"place": In(place_bits), "value": Out(interpolation.bits)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        table = self.interpolation
        bits, fraction_bits = table.bits, table.fraction_bits
        difference_bits = max(table.differences).bit_length()
        words = [value | rise << bits for value, rise in zip(table.values, table.differences, strict=True)]
        m.submodules.words = rom = memory.Memory(shape=bits + difference_bits, depth=len(words), init=words)
        read = rom.read_port()
        word = Signal(bits + difference_bits, reset_less=True)
        rise = Signal(difference_bits + fraction_bits, reset_less=True)
        fraction = delayed(m, self.place[:fraction_bits], 2, "fraction")
        m.d.comb += [read.addr.eq(self.place[fraction_bits:]), read.en.eq(1)]
        m.d.sync += [
            word.eq(read.data),
            rise.eq(word[bits:] * fraction),
            self.value.eq(delayed(m, word[:bits], 1, "value") + ((rise + (1 << fraction_bits - 1)) >> fraction_bits)),
        ]
        return m
