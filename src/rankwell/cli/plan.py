"""`rankwell plan`: what training would take, before it is started."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.console import print_json, show
from rankwell.cli.figures import make_table
from rankwell.cli.group import CommandGroup
from rankwell.cli.options import JsonOption, LabelOption, QidOption, QuietOption, given_path
from rankwell.cli.output_file import check_drawing
from rankwell.cli.progress import progress_bar
from rankwell.errors import DataError, ParameterError

if TYPE_CHECKING:
    from rankwell.planning.plan import TrainingPlan
    from rankwell.planning.round_model import Network, RoundModel, TrainingSizes

plan_app = typer.Typer(name="plan", cls=CommandGroup, help="Predict what training would take, and where it ends.")

_ROUNDS = 300


@plan_app.callback(invoke_without_command=True)
def plan_help(context: typer.Context) -> None:
    """Predict what training would take, and where it ends."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@plan_app.command("train")
def plan_train(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]",
            parser=given_path,
            help="Judged queries; only their beginning is read.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        str, typer.Option("--workers", metavar="LIST", help="Numbers of workers, each a machine like this one.")
    ] = "1,2,4,8",
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", min=1, help="Rounds of the run.")] = _ROUNDS,
    documents: Annotated[
        float | None,
        typer.Option("--documents", metavar="N", help="Instead of DATA, or beyond it.", show_default=False),
    ] = None,
    features: Annotated[
        int | None, typer.Option("--features", metavar="N", min=1, help="The same.", show_default=False)
    ] = None,
    network: Annotated[
        str,
        typer.Option(
            "--network",
            metavar="NAME",
            help="Between workers: this (processes of this machine, measured), 1gbit, 10gbit, 100gbit or nvlink; or "
            "BYTES/SECONDS such as 2e9/30e-6: bytes a second and seconds of a message.",
        ),
    ] = "10gbit",
    hardware: Annotated[
        str, typer.Option("--hardware", metavar="NAME", help="this (measured), or h200 (as measured elsewhere).")
    ] = "this",
    check: Annotated[
        bool, typer.Option("--check", help="Measure twelve other settings too, and say how far off predictions are.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Measure fewer sizes: a few seconds, less exact.")] = False,
    label: LabelOption = "label",
    qid: QidOption = "qid",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict time and memory of training RankBoost, from measurements on this machine.

    Example: rankwell plan train train.txt --workers 1,2,4,8

    Example: rankwell plan train --documents 1e9 --features 1000 --workers 64 --network 10gbit
    """
    from rankwell.planning.plan import make_plan

    counts = _counts(workers)
    link = _network(network)
    sizes, share, note = _sizes(data, documents, features, label, qid, quiet)
    models = _models(hardware, share, quick, quiet)
    plan = make_plan(models, sizes, counts, link, rounds)
    checked = _check(models[0], quiet) if check and hardware == "this" else []
    if as_json:
        print_json(plan.to_json() | ({"measured": checked} if checked else {}))
        return
    _print(plan, note)
    if checked:
        errors = sorted(abs(row["predicted"] / row["seconds"] - 1) for row in checked)
        show(
            f"predictions of {len(checked)} other sizes are off by {errors[-1]:.0%} at most, half of them by less than "
            f"{errors[len(errors) // 2]:.0%}"
        )


@plan_app.command("figures")
def plan_figures(
    source: Annotated[Path, typer.Argument(metavar="JSON", help="What `rankwell plan train --json` printed.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The drawing: .svg or .png.")],
) -> None:
    """Draw the papers' figures 7, 9 and 10 with a plan's model (needs the extra plot).

    Example: rankwell plan figures plan.json --out plan.svg
    """
    from rankwell.planning.figures import draw_figures

    check_drawing(out, inputs=[source])
    try:
        noted = json.loads(source.read_text())
        out.parent.mkdir(parents=True, exist_ok=True)
        draw_figures(noted, out)
    except (KeyError, TypeError, ValueError) as cause:
        raise DataError(
            f"{source} is not a plan's JSON ({cause!r}). Write it with rankwell plan train --json."
        ) from cause


def _counts(text: str) -> list[int]:
    counts = [int(part) for part in text.split(",") if part.strip().isdigit()]
    if len(counts) != len(text.split(",")) or not counts or min(counts) < 1:
        raise ParameterError(f"must be numbers of 1 or more, separated by commas, got {text!r}.", parameter="workers")
    return counts


def _network(text: str) -> Network:
    from rankwell.planning.references import NETWORKS
    from rankwell.planning.round_model import Network
    from rankwell.planning.worker_measurement import measure_exchange

    if text == "this":
        return measure_exchange()
    if text in NETWORKS:
        return NETWORKS[text]
    found = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?)/([0-9.]+(?:e-?[0-9]+)?)", text)
    if found is None or float(found[1]) <= 0:
        raise ParameterError(
            f"must be this, {', '.join(NETWORKS)}, or BYTES/SECONDS such as 2e9/30e-6, got {text!r}.",
            parameter="network",
        )
    return Network(float(found[1]), float(found[2]))


def _sizes(
    data: Path | None, documents: float | None, features: int | None, label: str, qid: str, quiet: bool
) -> tuple[TrainingSizes, float, str]:
    """The sizes, the share of the search that bounds leave, and where both come from."""
    from rankwell.planning.data_sizes import look_at
    from rankwell.planning.measurement import measure_share
    from rankwell.planning.round_model import TrainingSizes

    if data is None:
        if documents is None or features is None:
            raise ParameterError("give DATA, or both --documents and --features.")
        return TrainingSizes(int(documents), features, max(1, int(documents) // 100)), 1.0, "every feature is searched"
    with progress_bar(f"looking at {data}", quiet=quiet):
        sample = look_at(data, label=label, qid=qid)
        share = measure_share(sample.dataset)
    sizes = sample.sizes
    scale = 1.0 if documents is None else documents / sizes.n_docs
    sizes = TrainingSizes(
        round(sizes.n_docs * scale),
        features or sizes.n_features,
        max(1, round(sizes.n_queries * scale)),
        round(sizes.n_pairs * scale),
    )
    source = "estimated from the beginning" if sample.is_estimated else "counted"
    return sizes, share, f"sizes {source}; bounds leave {share:.0%} of the search, as on the first rows"


def _models(hardware: str, share: float, quick: bool, quiet: bool) -> list[RoundModel]:
    from dataclasses import replace

    from rankwell.kernels.device_report import report_device
    from rankwell.planning.measurement import measure_machine
    from rankwell.planning.references import H200

    if hardware == "h200":
        return [H200]
    if hardware != "this":
        raise ParameterError(f"must be this or h200, got {hardware!r}.", parameter="hardware")
    devices = ["cpu", *(["cuda"] if report_device("cuda").usable else [])]
    models = []
    for device in devices:
        with progress_bar(f"measuring {device}", quiet=quiet) as bar:
            model = measure_machine(device=device, quick=quick, progress=bar.bytes_read)
        # A GPU searches every feature.
        models.append(replace(model, share=share) if device == "cpu" else model)
    return models


def _check(model: RoundModel, quiet: bool) -> list[dict[str, Any]]:
    from rankwell.planning.measurement import check_model
    from rankwell.planning.worker_measurement import measure_exchange

    with progress_bar("measuring other sizes", quiet=quiet):
        return [
            {
                "documents": one.n_docs,
                "features": one.n_features,
                "workers": one.n_workers,
                "seconds": one.seconds,
                "predicted": predicted,
            }
            for one, predicted in check_model(model, measure_exchange())
        ]


def _print(plan: TrainingPlan, note: str) -> None:
    sizes = plan.sizes
    pairs = f", {sizes.n_pairs:,} pairs" if sizes.n_pairs else ""
    show(f"{sizes.n_docs:,} documents × {sizes.n_features:,} features{pairs}, {plan.n_rounds:,} rounds ({note})")
    columns = ["device", "workers", "divided by", "a round", "limited by", "run", "memory a worker", "with --memory"]
    table = make_table("", columns, left=["divided by", "limited by"])
    for run in plan.runs:
        predicted = run.round
        share = predicted.parts[predicted.limit] / predicted.total
        table.add_row(
            run.device,
            str(predicted.n_workers),
            "" if predicted.n_workers == 1 else predicted.division,
            _duration(predicted.total),
            f"{predicted.limit} ({share:.0%})",
            _duration(run.seconds),
            _size(run.memory),
            "" if run.memory_on_disk is None else _size(run.memory_on_disk),
        )
    show(table)
    if plan.break_even is None:
        show("more workers do not help: exchanging what they found takes longer than finding it.")
    else:
        show(f"quicker from {plan.break_even} workers on; quickest with about {plan.best:,}")


def _duration(seconds: float) -> str:
    for limit, size, unit in (
        (1e-3, 1e-6, "µs"),
        (1, 1e-3, "ms"),
        (120, 1, "s"),
        (7200, 60, "min"),
        (172_800, 3600, "h"),
    ):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86_400:,.0f} days"


def _size(n_bytes: float) -> str:
    for limit, size, unit in ((2**30, 2**20, "MiB"), (2**40, 2**30, "GiB")):
        if n_bytes < limit:
            return f"{n_bytes / size:,.3g} {unit}" if n_bytes < 100 * size else f"{n_bytes / size:,.0f} {unit}"
    return f"{n_bytes / 2**40:,.3g} TiB"
