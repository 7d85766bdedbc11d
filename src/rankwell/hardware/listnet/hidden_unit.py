"""A hidden unit's part of the gradient: the thesis's computation unit (hCU, figure 3.8) for back propagation.

A document takes `steps` cycles. In each, every lane multiplies δ by one feature and adds the product to the sum of that
weight. After the features come two slots more: the bias, to which δ is added as it is, and the unit's weight in the
output unit, whose product is ∂L/∂s · a.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.accumulators import Accumulators
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.product import product, rounded

_QUAD = 4


class HiddenUnit(wiring.Component):
    """The multipliers and accumulators of one hidden unit.

    Members
    -------
    delta, output, score_delta, features, is_bias, is_output : in 0
        δ and a of this unit, δ of the output unit, the features of this step; whether the step has the slot of the
        bias, and of the output unit's weight. They are multiplied one cycle later.
    address, writes, clears : in `product_cycles`
        See `Accumulators`.
    lane : in `product_cycles` + 2
        Whose sum is read.
    sum : in `product_cycles` + 3
        The lane's sum before the addition.
    """

    def __init__(self, configuration: ListNetConfiguration) -> None:
        self.configuration = configuration
        bits = configuration.bits
        super().__init__(
            {
                "delta": In(bits),
                "output": In(bits),
                "score_delta": In(bits),
                "features": In(configuration.lanes * bits),
                "is_bias": In(1),
                "is_output": In(1),
                "address": In(configuration.address_bits),
                "writes": In(1),
                "clears": In(1),
                "lane": In(configuration.lane_bits),
                "sum": Out(configuration.accumulator_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        configuration = self.configuration
        m.submodules.accumulators = accumulators = Accumulators(configuration, configuration.lanes)
        m.d.comb += [
            accumulators.address.eq(self.address),
            accumulators.writes.eq(self.writes),
            accumulators.clears.eq(self.clears),
            accumulators.addends.eq(Cat(self._addend(m, lane) for lane in range(configuration.lanes))),
            self.sum.eq(self._chosen(m, accumulators.word)),
        ]
        return m

    def _chosen(self, m: Module, word: Any) -> Any:
        """The lane's sum, by a multiplexer of two stages, of which the second has no register here."""
        lanes, wide = self.configuration.lanes, self.configuration.accumulator_bits
        sums = [word.word_select(lane, wide) for lane in range(lanes)]
        quads = []
        for start in range(0, lanes, _QUAD):
            quad = Signal(wide, name=f"quad_{start // _QUAD}", reset_less=True)
            m.d.sync += quad.eq(Array(sums[start : start + _QUAD])[self.lane[:2]])
            quads.append(quad)
        return Array(quads)[delayed(m, self.lane[2:], 1, "high_lane")] if lanes > _QUAD else quads[0]

    def _addend(self, m: Module, lane: int) -> Any:
        """What the lane adds: a rounded product, or δ itself."""
        configuration = self.configuration
        bits, cycles = configuration.bits, configuration.product_cycles
        left = Signal(bits, name=f"left_{lane}", reset_less=True)
        right = Signal(bits, name=f"right_{lane}", reset_less=True)
        feature = self.features.word_select(lane, bits)
        if lane == (configuration.features + 1) % configuration.lanes:
            m.d.sync += [
                left.eq(Mux(self.is_output, self.score_delta, self.delta)),
                right.eq(Mux(self.is_output, self.output, feature)),
            ]
        else:
            m.d.sync += [left.eq(self.delta), right.eq(feature)]
        value = rounded(product(m, left, right, cycles, f"lane_{lane}"), bits)
        if lane == configuration.features % configuration.lanes:
            is_bias = delayed(m, self.is_bias, cycles + 1, "is_bias")
            value = Mux(is_bias, delayed(m, left, cycles, "delta"), value)
        addend = Signal(bits, name=f"addend_{lane}", reset_less=True)
        m.d.sync += addend.eq(value)
        return addend
