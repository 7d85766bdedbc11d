"""The read-out of a query: the sums of every slot over all batches, Σ_B sum·2^(batches − 1 − B), by Horner's rule."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.configuration import ListNetConfiguration

_QUAD = 4
# From the words to the total: a multiplexer of two stages, and the sum.
READ_STAGES = 3


class ReadOut(wiring.Component):
    """Takes one lane of every hidden unit a cycle, batch after batch.

    Members
    -------
    words : in R of `Accumulators`
        Of all hidden units, lowest lowest.
    bias_word : in R
        The sum of the output unit's bias.
    valid, lane, is_bias, first, last : in R
        Whether there is anything to read; the lane; the output unit's bias, as if it were the lowest unit's, instead;
        whether the batch is the first, and the last.
    totals, given
        The totals of a slot, and whether they are complete.
    """

    def __init__(self, configuration: ListNetConfiguration) -> None:
        self.configuration = configuration
        wide = configuration.accumulator_bits
        super().__init__(
            {
                "words": In(configuration.hidden * configuration.lanes * wide),
                "bias_word": In(wide),
                "valid": In(1),
                "lane": In(configuration.lane_bits),
                "is_bias": In(1),
                "first": In(1),
                "last": In(1),
                "totals": Out(configuration.hidden * configuration.total_bits),
                "given": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        configuration = self.configuration
        chosen = [self._chosen(m, unit) for unit in range(configuration.hidden)]
        lowest = Signal(configuration.accumulator_bits, reset_less=True)
        bias_word = delayed(m, self.bias_word, 1, "bias_word")
        m.d.sync += lowest.eq(Mux(delayed(m, self.is_bias, 1, "is_bias"), bias_word, chosen[0]))
        words = [lowest]
        for unit, word in enumerate(chosen[1:], start=1):
            words.append(Signal(configuration.accumulator_bits, name=f"chosen_{unit}", reset_less=True))
            m.d.sync += words[-1].eq(word)
        first = delayed(m, self.first, 2, "first")
        totals = []
        for unit, word in enumerate(words):
            total = Signal(signed(configuration.total_bits), name=f"total_{unit}", reset_less=True)
            m.d.sync += total.eq(Mux(first, 0, total << 1) + word.as_signed())
            totals.append(total)
        m.d.comb += [
            self.totals.eq(Cat(totals)),
            self.given.eq(delayed(m, self.valid & self.last, READ_STAGES, "given", reset_less=False)),
        ]
        return m

    def _chosen(self, m: Module, unit: int) -> Any:
        """The lane's sum of one unit, after the first stage of the multiplexer."""
        lanes, wide = self.configuration.lanes, self.configuration.accumulator_bits
        word = self.words.word_select(unit, lanes * wide)
        sums = [word.word_select(lane, wide) for lane in range(lanes)]
        quads = []
        for start in range(0, lanes, _QUAD):
            quad = Signal(wide, name=f"quad_{unit}_{start // _QUAD}", reset_less=True)
            m.d.sync += quad.eq(Array(sums[start : start + _QUAD])[self.lane[:2]])
            quads.append(quad)
        high = delayed(m, self.lane[2:], 1, f"lane_{unit}") if lanes > _QUAD else None
        return quads[0] if high is None else Array(quads)[high]
