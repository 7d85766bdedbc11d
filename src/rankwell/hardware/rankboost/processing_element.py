"""The processing element: one histogram, one (bin, π) a cycle whatever the bins.

The stages of an item, for `stages` = 5:

    A  its bin is the address of the block RAM         0
    B  the block RAM has read                          1
    R  its output register has the word                2
    C  operand + π                                     3
    E  the total is written                            4

A sum written in E is read by items `stages` or more after it. Items closer than that, whose bin is the same, must take
the sum from the pipeline instead. FAR avoids this by interleaving 16 histograms in one RAM, one item of each in turn;
here every PE forwards: in each stage, the item that is in E is at one distance, so each stage looks at one distance:
C at 1, the stage before at 2, and so on up to B at `stages` − 2; B also takes the sum written one cycle earlier, of the
item `stages` − 1 ahead. The nearest of them wins, because it is taken last. Bins are compared one stage before the
first use.

There is an item in every cycle: where none is offered, 0 is added to some bin. So no comparison needs to know which
items are real.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.rankboost.configuration import RankBoostConfiguration


class ProcessingElement(wiring.Component):
    """One histogram and its adder.

    Members
    -------
    bin : in A
        Of the item; it is the address.
    pi, clear : in C
        What is added; or, with `clear`, the sum becomes 0.
    word : in C
        The sum before the addition, if the item before it was of another bin or added 0: what a scan reads.
    total, total_bin : in E
        What is written.
    """

    def __init__(self, configuration: RankBoostConfiguration) -> None:
        self.configuration = configuration
        bits, sums = configuration.bin_bits, signed(configuration.sum_bits)
        super().__init__(
            {
                "bin": In(bits),
                "pi": In(signed(configuration.pi_bits)),
                "clear": In(1),
                "word": Out(sums),
                "total": Out(sums),
                "total_bin": Out(bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        stages, sums = self.configuration.stages, signed(self.configuration.sum_bits)
        m.submodules.histogram = histogram = memory.Memory(
            shape=self.configuration.sum_bits, depth=self.configuration.bins, init=[]
        )
        read, write = histogram.read_port(), histogram.write_port()
        m.d.comb += [read.addr.eq(self.bin), read.en.eq(1)]
        bins = self._items(m)
        same = self._equal_bins(m, bins)

        written = Signal(sums, reset_less=True)  # the total one cycle ago
        m.d.sync += written.eq(self.total)
        word, taken, found = read.data, written, same[stages - 1]
        for stage in range(1, stages - 3):
            next_word = Signal(sums, name=f"word_{stage + 1}", reset_less=True)
            next_taken = Signal(sums, name=f"taken_{stage + 1}", reset_less=True)
            next_found = Signal(name=f"found_{stage + 1}", reset_less=True)
            nearer = self._at(m, same, stages - 1 - stage, stage)
            m.d.sync += [
                next_word.eq(word),
                next_taken.eq(Mux(nearer, self.total, taken)),
                next_found.eq(nearer | found),
            ]
            word, taken, found = next_word, next_taken, next_found
        operand = Signal(sums, reset_less=True)
        m.d.sync += operand.eq(Mux(self._at(m, same, 2, stages - 3), self.total, Mux(found, taken, word)))
        m.d.sync += self.total.eq(Mux(self._at(m, same, 1, stages - 2), self.total, operand) + self.pi)
        with m.If(self.clear):
            m.d.sync += self.total.eq(0)
        m.d.comb += [
            self.word.eq(operand),
            self.total_bin.eq(bins[stages - 1]),
            write.addr.eq(self.total_bin),
            write.data.eq(self.total),
            write.en.eq(1),
        ]
        return m

    def _items(self, m: Module) -> list[Any]:
        """The bin of the item in each stage."""
        bins = [self.bin]
        for stage in range(1, self.configuration.stages):
            bins.append(Signal(self.configuration.bin_bits, name=f"bin_{stage}", reset_less=True))
            m.d.sync += bins[stage].eq(bins[stage - 1])
        return bins

    def _equal_bins(self, m: Module, bins: list[Any]) -> dict[int, Any]:
        """By distance, for the item in B: whether the item that far ahead has the same bin."""
        same = {}
        for distance in range(1, self.configuration.stages):
            same[distance] = Signal(name=f"same_{distance}", reset_less=True)
            m.d.sync += same[distance].eq(self.bin == bins[distance])
        return same

    def _at(self, m: Module, same: dict[int, Any], distance: int, stage: int) -> Any:
        """`same` of a distance for the item in a later stage than B."""
        value = same[distance]
        for later in range(2, stage + 1):
            delayed = Signal(name=f"same_{distance}_in_{later}", reset_less=True)
            m.d.sync += delayed.eq(value)
            value = delayed
        return value
