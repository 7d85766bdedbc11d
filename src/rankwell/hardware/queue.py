"""A queue between two streams: LUT RAM, and a register at its end, so that nothing waits for the RAM; and joints."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out


class StreamQueue(wiring.Component):
    """Holds up to `depth` + 1 payloads of `width` bits, `depth` a power of two; one may enter and one leave a cycle.

    `incoming.ready` and `outgoing.valid` are registers. Long paths begin where a payload leaves, so what follows from
    that is one choice between values that are known before.
    """

    def __init__(self, width: int, depth: int) -> None:
        self.depth, self.width = depth, width
        super().__init__({"incoming": In(stream.Signature(width)), "outgoing": Out(stream.Signature(width))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.payloads = payloads = memory.Memory(shape=self.width, depth=self.depth, init=[])
        write, read = payloads.write_port(), payloads.read_port(domain="comb")
        put, get, level = Signal(range(self.depth)), Signal(range(self.depth)), Signal(range(self.depth + 1))
        push, load, some = Signal(), Signal(), Signal()
        m.d.comb += [
            push.eq(self.incoming.valid & self.incoming.ready),
            load.eq(some & (~self.outgoing.valid | self.outgoing.ready)),
            write.addr.eq(put),
            write.data.eq(self.incoming.payload),
            write.en.eq(push),
            read.addr.eq(get),
        ]
        m.d.sync += [
            put.eq(put + push),
            some.eq(push | (level > 1) | (some & ~load)),
            # One cycle late: then one more may have entered.
            self.incoming.ready.eq(level <= self.depth - 2),
        ]
        with m.If(load):
            m.d.sync += get.eq(get + 1)
        with m.If(push & ~load):
            m.d.sync += level.eq(level + 1)
        with m.If(load & ~push):
            m.d.sync += level.eq(level - 1)
        m.d.sync += self.outgoing.valid.eq(some | (self.outgoing.valid & ~self.outgoing.ready))
        with m.If(~self.outgoing.valid | self.outgoing.ready):
            m.d.sync += self.outgoing.payload.eq(read.data)  # of no meaning unless there is some
        return m


def connect(m: Module, source: Any, sink: Any) -> None:
    """Join the end of one stream to the beginning of another."""
    m.d.comb += [sink.payload.eq(source.payload), sink.valid.eq(source.valid), source.ready.eq(sink.ready)]
