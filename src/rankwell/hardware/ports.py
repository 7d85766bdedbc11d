"""The ports of a design: its streams, and its other inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Port:
    """One port of a design's top module: a vector of bits."""

    name: str
    bits: int
    is_input: bool


@dataclass(frozen=True)
class StreamPort:
    """A stream: its payload, and the two bits of its protocol."""

    name: str
    payload: Port
    valid: Port
    ready: Port

    @property
    def is_input(self) -> bool:
        return self.payload.is_input

    @property
    def row_bytes(self) -> int:
        """Bytes that hold a payload."""
        return -(-self.payload.bits // 8)


@dataclass(frozen=True)
class DesignPorts:
    """The ports of a design, other than `clk` and `rst`; `settings` are inputs that belong to no stream."""

    streams: tuple[StreamPort, ...]
    settings: tuple[Port, ...]

    @property
    def inputs(self) -> tuple[StreamPort, ...]:
        return tuple(stream for stream in self.streams if stream.is_input)

    @property
    def outputs(self) -> tuple[StreamPort, ...]:
        return tuple(stream for stream in self.streams if not stream.is_input)


def ports_of(design: Any) -> DesignPorts:
    """The ports of a component whose members are streams and plain inputs."""
    from amaranth.hdl import Value
    from amaranth.lib.wiring import In

    found: dict[str, dict[str, Port]] = {}
    settings = []
    for path, member, value in design.signature.flatten(design):
        port = Port("__".join(map(str, path)), len(Value.cast(value)), member.flow == In)
        if len(path) == 1:
            settings.append(port)
        else:
            found.setdefault(str(path[0]), {})[str(path[1])] = port
    streams = tuple(StreamPort(name, parts["payload"], parts["valid"], parts["ready"]) for name, parts in found.items())
    return DesignPorts(streams, tuple(settings))
