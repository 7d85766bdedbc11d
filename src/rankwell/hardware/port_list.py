"""The README of a design's ports, for those who put its Verilog on a board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankwell.hardware.ports import ports_of

_PROTOCOL = """\
Clock and reset: `clk`, rising edge; `rst`, synchronous, active high, one cycle or more before the first beat.

Streams: a beat is transferred in every cycle in which `valid` and `ready` are both 1. Once `valid` is 1, it and the
payload stay until then. No `ready` or `valid` that the design drives depends on an input of the same cycle. Fields of a
payload are given from its lowest bit up.
"""


def port_list(design: Any, module: str, title: str, meanings: Mapping[str, str], layouts: Mapping[str, Any]) -> str:
    """A README: every port, its width, direction and meaning.

    module : the name of the top module
    meanings : by stream or input
    layouts : by stream, the fields of its payload
    """
    ports = ports_of(design)
    lines = [f"# {title}", "", f"The top module is `{module}`.", "", _PROTOCOL, "| port | bits | direction | meaning |"]
    lines += ["| --- | --- | --- | --- |", "| `clk` | 1 | in | clock |", "| `rst` | 1 | in | reset |"]
    for stream in ports.streams:
        given, taken = ("in", "out") if stream.is_input else ("out", "in")
        fields = _fields(layouts.get(stream.name))
        meaning = _cell(meanings.get(stream.name, ""))
        lines += [
            f"| `{stream.payload.name}` | {stream.payload.bits} | {given} | {meaning}{fields} |",
            f"| `{stream.valid.name}` | 1 | {given} | |",
            f"| `{stream.ready.name}` | 1 | {taken} | |",
        ]
    lines += [
        f"| `{port.name}` | {port.bits} | {'in' if port.is_input else 'out'} | {_cell(meanings.get(port.name, ''))} |"
        for port in ports.settings
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text for a table's cell, where | begins the next."""
    return text.replace("|", "\\|")


def _fields(layout: Any) -> str:
    if layout is None:
        return ""
    from amaranth.hdl import Shape

    parts = []
    for name, field in layout:
        shape = Shape.cast(field.shape)
        high = field.offset + shape.width - 1
        place = f"{field.offset}" if shape.width == 1 else f"{high}:{field.offset}"
        parts.append(f"`{name}` [{place}]{' signed' if shape.signed else ''}")
    return f". Fields: {', '.join(parts)}"
