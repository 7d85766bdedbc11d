"""A queue between two streams: LUT RAM, and a register at its end, so that nothing waits for the RAM; and joints."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out


class StreamQueue(wiring.Component):
    """Holds up to `depth` payloads of `width` bits, `depth` a power of two; one may enter and one leave a cycle.

    With `registered`, a payload waits in a register at the end, which is room for one more and takes a cycle more.
    Without, it comes out of the RAM, and should go into a register that needs no enable.

    `incoming.ready` and `outgoing.valid` are registers. Long paths begin where a payload leaves, so what follows from
    that is one choice between values that are known before: the level learns of it a cycle later.
    """

    def __init__(self, width: int, depth: int, *, registered: bool = True) -> None:
        self.depth, self.width, self.registered = depth, width, registered
        super().__init__({"incoming": In(stream.Signature(width)), "outgoing": Out(stream.Signature(width))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.payloads = payloads = memory.Memory(shape=self.width, depth=self.depth, init=[])
        write, read = payloads.write_port(), payloads.read_port(domain="comb")
        put, get, level = Signal(range(self.depth)), Signal(range(self.depth)), Signal(range(self.depth + 1))
        push, load, loaded, some = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            push.eq(self.incoming.valid & self.incoming.ready),
            write.addr.eq(put),
            write.data.eq(self.incoming.payload),
            write.en.eq(push),
            read.addr.eq(get),
        ]
        m.d.sync += [
            put.eq(put + push),
            loaded.eq(load),
            some.eq(push | Mux(loaded, level > 2, level > 1) | (some & ~load)),
            # One cycle late: then one more may have entered.
            self.incoming.ready.eq(level <= self.depth - 2),
        ]
        with m.If(load):
            m.d.sync += get.eq(get + 1)
        with m.If(push & ~loaded):
            m.d.sync += level.eq(level + 1)
        with m.If(loaded & ~push):
            m.d.sync += level.eq(level - 1)
        if self.registered:
            self._register(m, read.data, some, load)
        else:
            m.d.comb += [
                self.outgoing.valid.eq(some),
                self.outgoing.payload.eq(read.data),
                load.eq(some & self.outgoing.ready),
            ]
        return m

    def _register(self, m: Module, payload: Any, some: Any, load: Any) -> None:
        """The register at the end."""
        m.d.comb += load.eq(some & (~self.outgoing.valid | self.outgoing.ready))
        m.d.sync += self.outgoing.valid.eq(some | (self.outgoing.valid & ~self.outgoing.ready))
        with m.If(~self.outgoing.valid | self.outgoing.ready):
            m.d.sync += self.outgoing.payload.eq(payload)  # of no meaning unless there is some


def connect(m: Module, source: Any, sink: Any) -> None:
    """Join the end of one stream to the beginning of another."""
    m.d.comb += [sink.payload.eq(source.payload), sink.valid.eq(source.valid), source.ready.eq(sink.ready)]
