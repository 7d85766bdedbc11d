"""A gradient as the number that enters back propagation: u = ∂L/∂s·F·2^B, and B (`fixed_point_format.py`).

The gradient is a whole number of `GRADIENT_POINT` bits after the point. Its length, the bits of its size, is E_d but
for that constant, and the longest of a list is E_q: F and B only move the binary point.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.forward_format import GRADIENT_BITS, GRADIENT_POINT
from rankwell.kernels.lists.fixed_point_format import BATCH, DIRECT, INTEGER_BITS

LENGTH_BITS = 5
SCALE_CYCLES = 4
_LONGEST = GRADIENT_BITS - 1


def length_of(size: Any) -> Any:
    """The bits of a whole number."""
    found: Any = Const(0, LENGTH_BITS)
    for bit in range(len(size)):
        found = Mux(size[bit], bit + 1, found)
    return found


class GradientScale(wiring.Component):
    """`value` and `batch` are those of the gradient of `SCALE_CYCLES` cycles ago.

    Members
    -------
    gradient, length, longest : in
        The number, its length, and the longest of the list.
    """

    def __init__(self, bits: int, batches: int, method: int) -> None:
        self.bits, self.batches, self.method = bits, batches, method
        batch_bits = max(1, (batches - 1).bit_length())
        super().__init__(
            {
                "gradient": In(signed(GRADIENT_BITS)),
                "length": In(LENGTH_BITS),
                "longest": In(LENGTH_BITS),
                "value": Out(signed(bits)),
                "batch": Out(batch_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        batch = Signal(len(self.batch), reset_less=True)
        shifted = Signal(signed(GRADIENT_BITS), reset_less=True)
        rounded = Signal(signed(self.bits + 1), reset_less=True)
        if self.method == BATCH:
            behind = self.longest - self.length
            m.d.sync += batch.eq(Mux(behind > self.batches - 1, self.batches - 1, behind))
        number, longest = delayed(m, self.gradient, 1, "number"), delayed(m, self.longest, 1, "longest")
        if self.method == DIRECT:
            down = GRADIENT_POINT + INTEGER_BITS + 1 - self.bits
            m.d.sync += shifted.eq(number)
        else:
            down = GRADIENT_BITS - self.bits
            up = Signal(LENGTH_BITS)
            m.d.comb += up.eq(_LONGEST - longest + batch)
            m.d.sync += shifted.eq(number << up)
        most = (1 << self.bits - 1) - 1
        m.d.sync += [
            rounded.eq((shifted >> down) + shifted[down - 1] if down > 0 else shifted << -down),
            self.value.eq(Mux(rounded > most, most, rounded)),
            self.batch.eq(delayed(m, batch, SCALE_CYCLES - 2, "batch")),
        ]
        return m
