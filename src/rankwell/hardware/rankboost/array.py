"""An array: up to 16 PEs that take one word of bins and one π a cycle, the scan of their histograms, and the control.

A round is `passes` passes. In a pass the control fills the histograms until the item marked `last`, lets the pipeline
run empty, then scans the histograms, lane after lane, bin after bin; what the scan has read is cleared on the way.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.processing_element import ProcessingElement
from rankwell.hardware.rankboost.record_scan import SCAN_STAGES, RecordScan, record_layout

# From the control's counter to the PEs' stage A; from the PEs' stage C to the scan, by way of a multiplexer of two
# stages.
_TO_ADDRESS, _TO_SCAN = 2, 2
_QUAD = 4


def flush_cycles(configuration: RankBoostConfiguration) -> int:
    """Cycles between the last item of a pass and the first address of its scan."""
    return configuration.stages


def drain_cycles(configuration: RankBoostConfiguration) -> int:
    """Cycles between the last address of a scan and the next pass: until its record is in the queue."""
    return _TO_ADDRESS + configuration.stages - 2 + _TO_SCAN + SCAN_STAGES


def rest_cycles(configuration: RankBoostConfiguration) -> int:
    """Cycles before a round: until no array sees the largest |r| of the round before (`accelerator`)."""
    return 4 * configuration.arrays


class ProcessingArray(wiring.Component):
    """PEs, scan and control. The array's groups of features are `number`, `number` + arrays, ...

    Members
    -------
    valid, word, pi, last, ready
        An item: bins of one document in all lanes, its π, and whether it is the pass's last. It is taken in every
        cycle with `valid`, which is allowed only with `ready`.
    passes, margin, floor, limit
        See `RankBoostAccelerator` and `RecordScan`.
    done, restart
        The round has ended, the results are stable; and begin the next one.
    best, head, found, overflow, unbalanced
        See `RecordScan`.
    """

    def __init__(self, configuration: RankBoostConfiguration, number: int) -> None:
        self.configuration, self.number = configuration, number
        sum_bits = configuration.sum_bits
        super().__init__(
            {
                "valid": In(1),
                "word": In(8 * configuration.lanes),
                "pi": In(signed(configuration.pi_bits)),
                "last": In(1),
                "ready": Out(1),
                "passes": In(configuration.group_bits),
                "margin": In(sum_bits - 1),
                "floor": In(sum_bits),
                "limit": In(signed(sum_bits + 1)),
                "done": Out(1),
                "restart": In(1),
                "best": Out(sum_bits),
                "head": Out(record_layout(configuration)),
                "found": Out(1),
                "overflow": Out(1),
                "unbalanced": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        configuration = self.configuration
        counter = Signal(configuration.bin_bits + configuration.lane_bits)  # bin, then lane
        sweeping, clearing, start = Signal(), Signal(), Signal()
        group = Signal(configuration.group_bits)
        m.submodules.scan = scan = RecordScan(configuration)
        for name in ("margin", "floor", "limit"):
            m.d.comb += getattr(scan, name).eq(getattr(self, name))
        for name in ("best", "head", "found", "overflow", "unbalanced"):
            m.d.comb += getattr(self, name).eq(getattr(scan, name))
        m.d.sync += scan.start.eq(start)  # registered, because it clears much; no record is near
        words = self._elements(m, counter, sweeping, clearing)
        self._read_out(m, scan, words, counter, sweeping & ~clearing, group)
        self._control(m, counter, sweeping, clearing, start, group)
        return m

    def _elements(self, m: Module, counter: Any, sweeping: Any, clearing: Any) -> list[Any]:
        """The PEs, after a register for items and one for addresses; the words that they have in stage C."""
        configuration = self.configuration
        word, counted = Signal(8 * configuration.lanes, reset_less=True), Signal(len(counter), reset_less=True)
        sweep = Signal()
        valid, given = Signal(), Signal(signed(configuration.pi_bits), reset_less=True)
        added = Signal(signed(configuration.pi_bits))
        m.d.sync += [
            word.eq(self.word),
            valid.eq(self.valid),
            given.eq(self.pi),
            added.eq(Mux(valid, given, 0)),  # where there is no item, 0 is added
            counted.eq(counter),
            sweep.eq(sweeping),
        ]
        bin_bits = configuration.bin_bits
        to_add = configuration.stages - 2 + _TO_ADDRESS
        pi = delayed(m, added, to_add - 2, "pi")
        sweeps, clears = delayed(m, sweeping, to_add - 1, "sweep"), delayed(m, clearing, to_add - 1, "clear")
        lane_swept = delayed(m, counter[bin_bits:], to_add - 1, "swept")
        words = []
        for lane in range(configuration.lanes):
            m.submodules[f"element_{lane}"] = element = ProcessingElement(configuration)
            address, clear = Signal(bin_bits, name=f"address_{lane}"), Signal(name=f"clear_{lane}")
            m.d.sync += [
                address.eq(Mux(sweep, counted[:bin_bits], word.word_select(lane, 8)[:bin_bits])),
                clear.eq(sweeps & (clears | (lane_swept == lane))),
            ]
            m.d.comb += [element.bin.eq(address), element.pi.eq(pi), element.clear.eq(clear)]
            words.append(element.word)
        return words

    def _read_out(self, m: Module, scan: RecordScan, words: list[Any], counter: Any, scanning: Any, group: Any) -> None:
        """The word of the lane that is scanned, and where it is, to the scan."""
        configuration = self.configuration
        bin_bits = configuration.bin_bits
        to_word = configuration.stages - 2 + _TO_ADDRESS
        at_word = delayed(m, counter, to_word, "place")
        at_quads = delayed(m, at_word, 1, "place_of_quads")
        at_scan = delayed(m, at_quads, 1, "place_of_scan")
        quads = []
        for start in range(0, len(words), _QUAD):
            quad = Signal(configuration.sum_bits, name=f"quad_{start // _QUAD}", reset_less=True)
            m.d.sync += quad.eq(Array(words[start : start + _QUAD])[at_word[bin_bits : bin_bits + 2]])
            quads.append(quad)
        word, first = Signal(configuration.sum_bits, reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            word.eq(Array(quads)[at_quads[bin_bits + 2 :]] if len(quads) > 1 else quads[0]),
            first.eq(~at_quads[:bin_bits].any()),
        ]
        m.d.comb += [
            scan.valid.eq(delayed(m, scanning, to_word + _TO_SCAN, "scanning", reset_less=False)),
            scan.word.eq(word),
            scan.first.eq(first),
            scan.bin.eq(at_scan[:bin_bits]),
            scan.feature.eq(Cat(at_scan[bin_bits:], group)),
        ]

    def _control(self, m: Module, counter: Any, sweeping: Any, clearing: Any, start: Any, group: Any) -> None:
        configuration = self.configuration
        flush, drain, rest = (cycles(configuration) for cycles in (flush_cycles, drain_cycles, rest_cycles))
        wait, left = Signal(range(max(flush, drain, rest))), Signal(configuration.group_bits)
        late = configuration.arrays - 1 - self.number  # cycles that `restart` takes to come here
        final = Signal()
        m.d.sync += final.eq(left == 1)
        with m.FSM():
            with m.State("CLEAR"):  # after a reset: the histograms may hold anything
                m.d.comb += [sweeping.eq(1), clearing.eq(1)]
                m.d.sync += [counter.eq(counter + 1), wait.eq(rest - 1)]
                with m.If(counter == configuration.bins - 1):
                    m.next = "REST"
            with m.State("REST"):
                m.d.comb += start.eq(1)
                m.d.sync += [wait.eq(wait - 1), group.eq(self.number), left.eq(self.passes)]
                with m.If(wait == 0):
                    m.d.sync += self.ready.eq(1)
                    m.next = "FILL"
            with m.State("FILL"):
                m.d.sync += [wait.eq(flush - 1), counter.eq(0)]
                with m.If(self.valid & self.last):
                    m.d.sync += self.ready.eq(0)
                    m.next = "FLUSH"
            with m.State("FLUSH"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.next = "SCAN"
            with m.State("SCAN"):
                m.d.comb += sweeping.eq(1)
                m.d.sync += [counter.eq(counter + 1), wait.eq(drain - 1)]
                with m.If(counter == configuration.bins * configuration.lanes - 1):
                    m.next = "DRAIN"
            with m.State("DRAIN"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.d.sync += [group.eq(group + configuration.arrays), left.eq(left - 1), wait.eq(rest - late - 1)]
                    with m.If(final):
                        m.next = "DONE"
                    with m.Else():
                        m.d.sync += self.ready.eq(1)
                        m.next = "FILL"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
                with m.If(self.restart):
                    m.next = "REST"
