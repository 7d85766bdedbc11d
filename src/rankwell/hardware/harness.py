"""A harness for placement: a design with more ports than the package has pins, between two shift registers."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

_PINS = 8


class SerialHarness(wiring.Component):
    """Eight pins in, eight out. Every port of the design is reached, so that nothing is optimised away."""

    def __init__(self, design: Any) -> None:
        self.design = design
        super().__init__({"serial": In(_PINS), "load": In(1), "shifted": Out(_PINS)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.design = self.design
        members = [(member, Value.cast(value)) for _, member, value in self.design.signature.flatten(self.design)]
        inputs = Cat(value for member, value in members if member.flow == In)
        outputs = Cat(value for member, value in members if member.flow == Out)
        given, taken = Signal(len(inputs), reset_less=True), Signal(len(outputs), reset_less=True)
        m.d.sync += [
            given.eq(Cat(self.serial, given)),
            taken.eq(Mux(self.load, outputs, taken >> _PINS)),
        ]
        m.d.comb += [inputs.eq(given), self.shifted.eq(taken)]
        return m
