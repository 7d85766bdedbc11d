"""`rankwell hardware listnet`: the thesis's accelerator for a part, what it needs and how fast it would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.console import print_json, show, show_log
from rankwell.cli.figures import jsonable, make_table
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

if TYPE_CHECKING:
    import numpy as np

_KERNELS = {"backward": "back propagation", "forward": "the forward pass", "loss": "the loss gradient"}


def listnet(
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
            "--shape",
            metavar="NAME|QUERIESxDOCSxFEATURES",
            help="A paper's collection, or a size such as 1000x50000x136.",
        ),
    ] = "mq2008-list",
    task: Annotated[
        str, typer.Option("--task", metavar="NAME", help="The kernel to synthesise: backward, forward or loss.")
    ] = "backward",
    k: Annotated[int, typer.Option("-k", metavar="N", help="Places that the loss counts: 1, 2 or 3.")] = 1,
    hidden: Annotated[int, typer.Option("--hidden", metavar="N", help="Hidden units.")] = 15,
    unrolling: Annotated[
        int | None,
        typer.Option(
            "--unrolling",
            metavar="N",
            help="Products of weight gradients a cycle: a multiple of the hidden units; by default twice as many.",
            show_default=False,
        ),
    ] = None,
    bits: Annotated[int, typer.Option("--bits", metavar="N", help="Bits of back propagation, 4 to 31.")] = 8,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="Fixed point: direct, adaptive or batch.")
    ] = "batch",
    batches: Annotated[int, typer.Option("--batches", metavar="N", help="Scales of a query's gradients.")] = 10,
    target: TargetOption = "ecp5-85k",
    place: Annotated[bool, typer.Option("--place", help="Place and route too; it takes minutes.")] = False,
    seeds: SeedsOption = 1,
    epochs: Annotated[int, typer.Option("--epochs", metavar="N", help="Epochs of the run that is predicted.")] = 300,
    memory: MemoryOption = None,
    verilog: VerilogOption = None,
    skip_bad_lines: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """The ListNet accelerator of the thesis: what its kernels need of a part, how fast they run, what limits them.

    Needs the extra fpga: pip install 'rankwell\\[fpga]'. The first use compiles the tools, for a minute or two.

    Example: rankwell hardware listnet --unrolling 30 --bits 8 --target ecp5-85k --place
    """
    from rankwell.kernels.lists.fixed_point_format import METHODS, sufficient_accumulator_bits
    from rankwell.parameters import check_choice, check_whole_number

    show_log(quiet=quiet)
    require_tools(place=place)
    from rankwell.hardware.listnet.configuration import ListNetConfiguration
    from rankwell.hardware.listnet.cpu_measurement import measure_cpu
    from rankwell.hardware.listnet.loss_gradient import LossConfiguration
    from rankwell.hardware.listnet.port_meanings import MODULES, task_readme
    from rankwell.hardware.listnet.report import describe
    from rankwell.hardware.listnet.tasks import TASKS, task_design

    for name, value in (("seeds", seeds), ("epochs", epochs), ("hidden", hidden), ("batches", batches)):
        check_whole_number(name, value, least=1)
    check_choice("method", method, METHODS)
    check_choice("task", task, TASKS)
    check_memory(memory)
    part = part_of(target, place=place)
    if verilog is not None:
        check_output(verilog, option="--verilog", inputs=[data])
    if data is None:
        sizes, n_features = _sizes_of(shape)
    else:
        dataset = read_data(data, Reading(skip_bad_lines), quiet=quiet)
        sizes, n_features = dataset.query_sizes, dataset.n_features
    configuration = ListNetConfiguration(
        features=n_features,
        hidden=hidden,
        unrolling=2 * hidden if unrolling is None else unrolling,
        bits=bits,
        accumulator_bits=sufficient_accumulator_bits(bits, int(sizes.max(initial=1))),
        batches=batches if method == "batch" else 1,
    )
    loss = LossConfiguration(
        k=k,
        most_docs=max(2, 1 << (int(sizes.max(initial=1)) - 1).bit_length()),
        bits=bits,
        batches=configuration.batches,
        method=METHODS.index(method),
    )
    if verilog is not None:
        design = task_design(task, configuration, loss)
        write_verilog(verilog, design, MODULES[task], task_readme(task, design), quiet=quiet)
    with progress_bar("synthesis", quiet=quiet) as bar:
        cpu = measure_cpu(configuration, int(sizes.mean()) if len(sizes) else 1)
        if place:
            bar.describe("synthesis, placement, routing")
        report = describe(
            configuration,
            loss,
            part,
            sizes,
            cpu,
            task=task,
            n_epochs=epochs,
            place=place,
            seeds=tuple(range(1, seeds + 1)),
            memory=None if memory is None else memory * 1e9,
        )
    report["configuration"]["method"] = method
    if as_json:
        print_json(jsonable(report))
    else:
        _print(report)


def _sizes_of(shape: str) -> tuple[np.ndarray, int]:
    """The sizes of the queries, as equal as they can be, and the features of a paper's collection or of a size."""
    import numpy as np

    from rankwell.data.shapes import SHAPES

    if shape in SHAPES:
        found = SHAPES[shape]
        n_queries, n_docs, n_features = found.n_queries, found.n_docs, found.n_features
    else:
        parts = shape.replace("×", "x").split("x")
        if len(parts) != 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
            raise ParameterError(
                f"must be one of {', '.join(SHAPES)}, or QUERIESxDOCSxFEATURES such as 1000x50000x136, got {shape!r}.",
                parameter="shape",
            )
        n_queries, n_docs, n_features = map(int, parts)
    sizes = np.full(n_queries, n_docs // n_queries, dtype=np.int64)
    sizes[: n_docs % n_queries] += 1
    return sizes, n_features


def _print(report: Mapping[str, Any]) -> None:
    show_rows(_rows(report))
    compared = make_table(
        f"an epoch and a run of {report['n_epochs']:,} epochs",
        ["", "back propagation", "forward, loss, link", "epoch", "run", "energy"],
    )
    for row in report["compared"]:
        energy = row["run_watt_hours"]
        compared.add_row(
            row["what"],
            _or_dash(row["back_propagation_seconds"]),
            _or_dash(row["rest_seconds"]),
            duration(row["epoch_seconds"]),
            duration(row["run_seconds"]),
            "-" if energy is None else f"{energy:,.3g} Wh at {row['watts']:g} W",
        )
    show(compared)
    show(_verdict(report["compared"]))
    for row in report["compared"]:
        show(f"{row['what']}: {row['kind']}; {row['note']}.")


def _rows(report: Mapping[str, Any]) -> dict[str, str]:
    configuration, epoch, data = report["configuration"], report["epoch"], report["data"]
    network = f"{configuration['features']}-{configuration['hidden']}-1"
    batches = f"{configuration['batches']} batches, " if configuration["batches"] > 1 else ""
    return {
        "accelerator": f"ListNet, {network}; back propagation of {configuration['bits']} bits "
        f"({configuration['method']}), {batches}sums of {configuration['accumulator_bits']} bits",
        "products a cycle": f"{configuration['unrolling']} of weight gradients, {configuration['multipliers']} in all",
        "synthesised": _KERNELS[report["task"]],
        **synthesis_rows(report),
        "data": f"{data['n_queries']:,} queries, {data['n_docs']:,} documents, {data['n_features']:,} features",
        "cycles an epoch": f"back propagation {epoch['cycles']['backward']:,} ({epoch['steps']} a document, "
        f"{epoch['query_overhead']} more a query), forward pass {epoch['cycles']['forward']:,}, "
        f"loss gradient {epoch['cycles']['loss']:,}",
        "memory": f"{epoch['needed_bandwidth'] / 1e9:.2f} GB/s would keep it busy; the board has "
        f"{epoch['memory_bandwidth'] / 1e9:.2f}",
        "limit": epoch["limit"],
    }


def _verdict(compared: Sequence[Mapping[str, Any]]) -> str:
    """The board that was asked for beside this machine's CPU."""
    board, emulated, floating = compared[0], compared[-2], compared[-1]
    over_emulated = comparison(board["epoch_seconds"] / emulated["epoch_seconds"])
    over_float = comparison(board["epoch_seconds"] / floating["epoch_seconds"])
    return f"An epoch would be {over_emulated} than this machine's CPU emulates it, and {over_float} than in float32.\n"


def _or_dash(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)
