"""The read-out of a query: the sums of every slot over all batches, Σ_B sum·2^(batches − 1 − B), by Horner's rule."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.configuration import ListNetConfiguration

# From the words of `Accumulators` to the total: a multiplexer of two stages, and the sum.
READ_STAGES = 3


class ReadOut(wiring.Component):
    """Takes one lane of every hidden unit a cycle, batch after batch.

    Members
    -------
    sums : a cycle after R of `Accumulators`
        The sum that is read of every hidden unit, lowest lowest.
    bias_word : in R
        The sum of the output unit's bias.
    valid, is_bias, first, last : in R
        Whether there is anything to read; the output unit's bias, as if it were the lowest unit's, instead; whether the
        batch is the first, and the last.
    totals, given
        The totals of a slot, and whether they are complete.
    """

    def __init__(self, configuration: ListNetConfiguration) -> None:
        self.configuration = configuration
        wide = configuration.accumulator_bits
        super().__init__(
            {
                "sums": In(configuration.hidden * wide),
                "bias_word": In(wide),
                "valid": In(1),
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
        wide = configuration.accumulator_bits
        chosen = [self.sums.word_select(unit, wide) for unit in range(configuration.hidden)]
        lowest = Signal(wide, reset_less=True)
        bias_word = delayed(m, self.bias_word, 1, "bias_word")
        m.d.sync += lowest.eq(Mux(delayed(m, self.is_bias, 1, "is_bias"), bias_word, chosen[0]))
        words = [lowest]
        for unit, word in enumerate(chosen[1:], start=1):
            words.append(Signal(wide, name=f"chosen_{unit}", reset_less=True))
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
