"""A word for every document of a list, in block RAM."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import memory

# A word of the list is read, and registered.
READ = 2


class ListWords:
    """`word` is the one at the place of `READ` cycles ago."""

    def __init__(self, m: Module, name: str, bits: int, depth: int, place: Any) -> None:
        m.submodules[f"list_{name}"] = cells = memory.Memory(shape=bits, depth=depth, init=[])
        read, self._write = cells.read_port(), cells.write_port()
        self.word = Signal(bits, name=name, reset_less=True)
        m.d.comb += [read.addr.eq(place), read.en.eq(1)]
        m.d.sync += self.word.eq(read.data)

    def put(self, m: Module, place: Any, value: Any, comes: Any) -> None:
        m.d.comb += [self._write.addr.eq(place), self._write.data.eq(value), self._write.en.eq(comes)]
