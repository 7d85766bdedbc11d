"""`rankwell hardware`: the papers' accelerators for a part, what they need and how fast they would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwell.cli.console import print_json, show, show_log
from rankwell.cli.figures import jsonable, make_table
from rankwell.cli.group import CommandGroup
from rankwell.cli.hardware_listnet import listnet
from rankwell.cli.hardware_output import (
    MemoryOption,
    SeedsOption,
    TargetOption,
    VerilogOption,
    check_memory,
    comparison,
    duration,
    part_of,
    require_tools,
    show_rows,
    synthesis_rows,
    write_verilog,
)
from rankwell.cli.inputs import Reading, read_data
from rankwell.cli.options import JsonOption, QuietOption, SkipOption, given_path
from rankwell.cli.output_file import check_output
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


hardware_app.command("listnet")(listnet)


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
    target: TargetOption = "ecp5-85k",
    place: Annotated[bool, typer.Option("--place", help="Place and route too; 16 PEs take minutes.")] = False,
    seeds: SeedsOption = 1,
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", help="Rounds of the run that is predicted.")] = 300,
    memory: MemoryOption = None,
    verilog: VerilogOption = None,
    skip_bad_lines: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """The RankBoost accelerator of the FAR paper: what it needs of a part, how fast it runs, what limits it.

    Needs the extra fpga: pip install 'rankwell\\[fpga]'. The first use compiles the tools, for a minute or two.

    Example: rankwell hardware rankboost --pes 16 --target ecp5-85k --place
    """
    from rankwell.parameters import check_whole_number

    show_log(quiet=quiet)
    require_tools(place=place)
    from rankwell.hardware.rankboost.accelerator import RankBoostAccelerator
    from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
    from rankwell.hardware.rankboost.cpu_measurement import measure_cpu
    from rankwell.hardware.rankboost.port_meanings import MODULE, accelerator_readme
    from rankwell.hardware.rankboost.report import describe

    for name, value in (("seeds", seeds), ("rounds", rounds)):
        check_whole_number(name, value, least=1)
    check_memory(memory)
    configuration, part = RankBoostConfiguration(pes=pes), part_of(target, place=place)
    if verilog is not None:
        check_output(verilog, option="--verilog", inputs=[data])
    if data is None:
        n_docs, n_features = _size_of(shape)
    else:
        dataset = read_data(data, Reading(skip_bad_lines), quiet=quiet)
        n_docs, n_features = dataset.n_docs, dataset.n_features
    if verilog is not None:
        accelerator = RankBoostAccelerator(configuration)
        write_verilog(verilog, accelerator, MODULE, accelerator_readme(accelerator), quiet=quiet)
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


def _print(report: Mapping[str, Any]) -> None:
    show_rows(_rows(report))
    compared = make_table(
        f"a round and a run of {report['n_rounds']:,} rounds", ["", "search", "host", "round", "run", "energy"]
    )
    for row in report["compared"]:
        compared.add_row(
            row["what"],
            duration(row["search_seconds"]),
            duration(row["host_seconds"]),
            duration(row["round_seconds"]),
            duration(row["run_seconds"]),
            f"{row['run_watt_hours']:,.3g} Wh at {row['watts']:g} W",
        )
    show(compared)
    show(_verdict(report["compared"]))
    for row in report["compared"]:
        show(f"{row['what']}: {row['kind']}; {row['note']}.")


def _rows(report: Mapping[str, Any]) -> dict[str, str]:
    one, data = report["round"], report["data"]
    return {
        "accelerator": f"RankBoost, {report['configuration']['pes']} processing elements",
        **synthesis_rows(report),
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
    return f"A round would be {comparison(times)} than on this machine's CPU.\n"
