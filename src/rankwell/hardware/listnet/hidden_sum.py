"""A hidden unit's sum in the forward pass: the thesis's computation unit (hCU, figure 3.8) with its weights."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.forward_format import BITS, OUTPUT_POINT

# From the step to the operands: the weights are read, and registered.
_TO_OPERANDS = 2


def sum_bits(configuration: ListNetConfiguration) -> int:
    """Of an exact sum of products and a bias."""
    return 2 * BITS + max(configuration.features, configuration.hidden).bit_length() + 1


def sum_cycles(configuration: ListNetConfiguration) -> int:
    """From a document's last step to its sum: operands, products, the tree of additions, the sum over steps."""
    return _TO_OPERANDS + 1 + (configuration.lanes - 1).bit_length() + 1


class HiddenSum(wiring.Component):
    """Σ_f w_f·x_f + b over the steps of a document.

    Members
    -------
    step, features, adds, first : in 0
        Which weights; the features of the step; whether there is a step; whether it is a document's first.
    stored, value, store_weight, lane, store_bias : in
        With `store_weight`, `value` becomes the weight of `lane` in step `stored`; with `store_bias`, the bias.
    total : in `sum_cycles`
    """

    def __init__(self, configuration: ListNetConfiguration) -> None:
        self.configuration = configuration
        beats = range(max(2, configuration.feature_beats))
        super().__init__(
            {
                "step": In(beats),
                "features": In(configuration.lanes * BITS),
                "adds": In(1),
                "first": In(1),
                "stored": In(beats),
                "lane": In(configuration.lane_bits),
                "value": In(BITS),
                "store_weight": In(1),
                "store_bias": In(1),
                "total": Out(signed(sum_bits(configuration))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        lanes = self.configuration.lanes
        bias = Signal(signed(BITS))
        with m.If(self.store_bias):
            m.d.sync += bias.eq(self.value)
        terms = []
        for lane in range(lanes):
            weights = memory.Memory(shape=BITS, depth=max(2, self.configuration.feature_beats), init=[])
            m.submodules[f"weights_{lane}"] = weights
            read, write = weights.read_port(), weights.write_port()
            weight, term = Signal(signed(BITS), name=f"weight_{lane}"), Signal(signed(2 * BITS), name=f"term_{lane}")
            feature = delayed(m, self.features.word_select(lane, BITS), _TO_OPERANDS, f"feature_{lane}")
            m.d.comb += [
                read.addr.eq(self.step),
                read.en.eq(1),
                write.addr.eq(self.stored),
                write.data.eq(self.value),
                write.en.eq(self.store_weight & (self.lane == lane)),
            ]
            m.d.sync += [weight.eq(read.data), term.eq(weight * feature.as_signed())]
            terms.append(term)
        level = 0
        while len(terms) > 1:
            terms = [self._added(m, terms[start : start + 2], level, start) for start in range(0, len(terms), 2)]
            level += 1
        later = sum_cycles(self.configuration) - 1
        first = delayed(m, self.first, later, "first")
        with m.If(delayed(m, self.adds, later, "adds", reset_less=False)):
            m.d.sync += self.total.eq(Mux(first, bias << OUTPUT_POINT, self.total) + terms[0])
        return m

    def _added(self, m: Module, terms: list[Any], level: int, start: int) -> Any:
        value = Signal(signed(2 * BITS + level + 1), name=f"sum_{level}_{start}", reset_less=True)
        m.d.sync += value.eq(sum(terms[1:], start=terms[0]))
        return value
