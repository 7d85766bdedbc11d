"""Division, one quotient a cycle: a stage for every bit of the quotient."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Divider(wiring.Component):
    """`quotient` is ⌊numerator·2^point / denominator⌋ of `cycles` cycles ago, for numerator < 2·denominator."""

    def __init__(self, bits: int, point: int) -> None:
        self.bits, self.point = bits, point
        super().__init__({"numerator": In(bits), "denominator": In(bits), "quotient": Out(point + 1)})

    @property
    def cycles(self) -> int:
        return self.point + 1

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        remainder: Any = self.numerator
        denominator: Any = self.denominator
        quotient: Any = None
        for stage in range(self.cycles):
            less = Signal(self.bits + 2, name=f"less_{stage}")
            next_remainder = Signal(self.bits + 1, name=f"remainder_{stage}", reset_less=True)
            next_denominator = Signal(self.bits, name=f"denominator_{stage}", reset_less=True)
            next_quotient = Signal(stage + 1, name=f"quotient_{stage}", reset_less=True)
            fits = ~less[-1]
            m.d.comb += less.eq(remainder - denominator)
            m.d.sync += [
                next_remainder.eq(Mux(fits, less, remainder) << 1),
                next_denominator.eq(denominator),
                next_quotient.eq(fits if quotient is None else Cat(fits, quotient)),
            ]
            remainder, denominator, quotient = next_remainder, next_denominator, next_quotient
        m.d.comb += self.quotient.eq(quotient)
        return m
