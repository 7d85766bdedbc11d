"""The scan of an array's histograms: the first weak ranker within a margin of the best, in one pass.

The product's rule (`kernels/boosting/precision.py`) takes the lowest feature, then bin, whose |r| is within `margin` of
the largest. The largest is known only at the end, so the scan keeps *records*: an |r| above all before it. The first
value within the margin of the largest is a record, because all before it are smaller. Records that are more than the
margin below the largest so far are dropped, and the head of the queue is the answer.

π sums to 0, so r(f, b) = Σ_{a > b} = −Σ_{a ≤ b}: the scan runs upwards through the bins, in the order of the rule.

Stages of a word: 1 its integral, 2 both signs, 3 its size, 4 compared with the largest and with the word before it,
5 whether it is the new largest, 6 the new limit, 7 the largest before compared with that limit, 8 into the queue.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.rankboost.configuration import RankBoostConfiguration

# From a word to the queue; and cycles to drop one record that the largest has left behind.
SCAN_STAGES = 9
DROP_CYCLES = 3


def record_layout(configuration: RankBoostConfiguration) -> data.StructLayout:
    """A record: |r|, its sign, bin and feature."""
    return data.StructLayout(
        {
            "size": configuration.sum_bits,
            "negative": 1,
            "bin": configuration.bin_bits,
            "feature": configuration.feature_bits,
        }
    )


class RecordScan(wiring.Component):
    """The scan and its queue of records.

    Members
    -------
    start : in
        Begin a round: the queue is empty, and only values above `floor` are records.
    valid, first, word, bin, feature : in
        A histogram's word; `first` with bin 0.
    margin : in, stable
    limit : in
        Records below it are dropped: the largest |r| of all arrays so far, less the margin.
    best : out
        The largest so far, or `floor`.
    head, found : out
        The first record that remains, and whether there is one.
    overflow : out
        A record was lost: repeat the round with `floor` one below the largest less the margin.
    unbalanced : out
        The sums of a feature do not add up to 0.
    """

    def __init__(self, configuration: RankBoostConfiguration) -> None:
        self.configuration = configuration
        sum_bits = configuration.sum_bits
        super().__init__(
            {
                "start": In(1),
                "valid": In(1),
                "first": In(1),
                "word": In(signed(sum_bits)),
                "bin": In(configuration.bin_bits),
                "feature": In(configuration.feature_bits),
                "margin": In(sum_bits - 1),
                "floor": In(sum_bits),
                "limit": In(signed(sum_bits + 1)),
                "best": Out(sum_bits),
                "head": Out(record_layout(configuration)),
                "found": Out(1),
                "overflow": Out(1),
                "unbalanced": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        record, jump, pushed = self._find_records(m)
        self._queue(m, record, jump, pushed)
        return m

    def _find_records(self, m: Module) -> tuple[Any, Any, Any]:
        """Stages 1 to 8: whether there is a record, whether it is more than the margin above all before it, and it."""
        bits, layout = self.configuration.sum_bits, record_layout(self.configuration)
        free: dict[str, Any] = {"reset_less": True}
        valid = [self.valid, *(Signal(name=f"valid_{stage}") for stage in range(1, 6))]
        place_bits = self.configuration.bin_bits + self.configuration.feature_bits
        places = [Cat(self.bin, self.feature)]
        places += [Signal(place_bits, name=f"place_{stage}", **free) for stage in range(1, 9)]
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise(valid)]
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise(places)]

        integral = Signal(signed(bits), **free)
        plus, minus = Signal(signed(bits), **free), Signal(bits, **free)
        sizes = [Signal(bits, name=f"size_{stage}", **free) for stage in range(3, 9)]
        negative = [Signal(name=f"negative_{stage}", **free) for stage in range(3, 9)]
        size_3, size_4, size_5 = sizes[:3]
        m.d.sync += [
            integral.eq(Mux(self.first, 0, integral) + self.word),
            plus.eq(integral),
            minus.eq(-integral),
            size_3.eq(Mux(plus[-1], minus, plus)),
            negative[0].eq(~plus[-1]),  # r is minus the integral
            *(later.eq(earlier) for earlier, later in pairwise(negative)),
            # Where there is no word, the floor: so the largest begins with it.
            size_4.eq(Mux(valid[3], size_3, self.floor)),
            *(later.eq(earlier) for earlier, later in pairwise(sizes[1:])),
        ]
        # The only loop of the scan: the word before may have become the largest after this one was compared with it.
        above_best, above_before = Signal(**free), Signal(**free)
        larger, was_larger = Signal(), Signal()
        m.d.comb += larger.eq(Mux(was_larger, above_before, above_best))
        m.d.sync += [
            above_best.eq(_is_less(self.best, size_4)),
            above_before.eq(_is_less(size_5, size_4)),
            was_larger.eq(larger & ~self.start),
        ]
        with m.If(larger):
            m.d.sync += self.best.eq(size_5)
        with m.If(self.start):
            m.d.sync += self.best.eq(0)
        records = [Signal(name=f"record_{stage}") for stage in range(6, 9)]
        before_6, before_7 = Signal(bits, **free), Signal(bits, **free)
        limit, jump = Signal(signed(bits + 1), **free), Signal(**free)
        m.d.sync += [
            records[0].eq(larger & valid[5]),
            *(later.eq(earlier) for earlier, later in pairwise(records)),
            before_6.eq(self.best),
            before_7.eq(before_6),
            limit.eq(self.best - self.margin),
            jump.eq(_is_less(before_7, limit)),
        ]
        ends, nonzero = Signal(), Signal(**free)
        m.d.sync += [
            ends.eq(valid[3] & places[3][: self.configuration.bin_bits].all()),
            nonzero.eq(size_3 != 0),
            self.unbalanced.eq((self.unbalanced | (ends & nonzero)) & ~self.start),
        ]
        pushed = Signal(layout)
        m.d.comb += pushed.eq(Cat(sizes[-1], negative[-1], places[-1]))
        return records[-1], jump, pushed

    def _queue(self, m: Module, record: Any, jump: Any, pushed: Any) -> None:
        """The records that remain, oldest first; the oldest is in the register `head`."""
        depth = self.configuration.records
        m.submodules.records = records = memory.Memory(shape=len(pushed.as_value()), depth=depth, init=[])
        push, pop = records.write_port(), records.read_port(domain="comb")
        place_bits = depth.bit_length() - 1
        put, get, level = Signal(place_bits), Signal(place_bits), Signal(place_bits + 1)
        load, kept, fresh, below = Signal(), Signal(), Signal(), Signal(reset_less=True)
        m.d.comb += [
            kept.eq(record & ((level != depth) | jump)),
            push.addr.eq(put),
            push.en.eq(kept),
            push.data.eq(pushed),
            pop.addr.eq(get),
            load.eq(~self.found & (level != 0)),
        ]
        m.d.sync += [
            below.eq(_is_less(self.head.size, self.limit)),
            fresh.eq(load),
            put.eq(put + kept),
            level.eq(level + kept - load),
            self.overflow.eq(self.overflow | (record & ~kept)),
        ]
        with m.If(load):
            m.d.sync += [self.head.eq(pop.data), self.found.eq(1), get.eq(get + 1)]
        with m.Elif(self.found & ~fresh & below):
            m.d.sync += self.found.eq(0)
        with m.If(record & jump):  # all before it are worthless, lost ones too
            m.d.sync += [get.eq(put), level.eq(1), self.found.eq(0), self.overflow.eq(0)]
        with m.If(self.start):
            m.d.sync += [put.eq(0), get.eq(0), level.eq(0), self.found.eq(0), self.overflow.eq(0)]


def _is_less(value: Any, limit: Any) -> Any:
    """value < limit, by the sign of their difference: a carry chain, where Yosys makes a deep tree of a comparison."""
    return (value - limit)[-1]
