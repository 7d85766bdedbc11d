"""`rankwell ranker`: ranker descriptions that people read and write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from rankwell.cli.console import say, show_log
from rankwell.cli.figures import counted
from rankwell.cli.group import CommandGroup
from rankwell.cli.inputs import check_readable
from rankwell.cli.options import QuietOption, given_path
from rankwell.cli.output_file import check_output, write_output

# Names that a note lists.
_MOST_NAMED = 8

ranker_app = typer.Typer(
    name="ranker",
    cls=CommandGroup,
    help="Show what a ranker computes, and make rankers by hand.",
)


@ranker_app.callback(invoke_without_command=True)
def ranker_help(context: typer.Context) -> None:
    """Show what a ranker computes, and make rankers by hand."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@ranker_app.command("show")
def show_ranker(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            parser=given_path,
            help="A ranker file, or a model of LightGBM or XGBoost.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the YAML is written; - is stdout.")
    ] = Path("-"),
    quiet: QuietOption = False,
) -> None:
    """Print what a ranker computes, as YAML that `rankwell ranker make` reads.

    Trees and other rankers inside it are references to the file.

    Example: rankwell ranker show model.rank --out model.yaml
    """
    from rankwell.scoring.written.references import read_model

    show_log(quiet=quiet)
    check_output(out, inputs=[model])
    check_readable(model)
    folder = Path.cwd() if str(out) == "-" else out.resolve().parent
    text = read_model(model).to_yaml(os.path.relpath(model.resolve(), folder))
    write_output(out, text.encode())
    if str(out) != "-":
        say(f"{model} described in {out}", quiet=quiet)


@ranker_app.command("make")
def make_ranker_file(
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE.yaml", parser=given_path, help="A ranker description.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="Where the ranker file is written.")],
    quiet: QuietOption = False,
) -> None:
    """Make a ranker from a description: hand-written transforms, constants, and other rankers.

    Files that the description names are relative to its folder; they become a part of the ranker file.

    Example: rankwell ranker make boosted.yaml --out boosted.rank
    """
    from rankwell.rankers.made import MadeRanker

    show_log(quiet=quiet)
    check_output(out, inputs=[source])
    check_readable(source)
    ranker = MadeRanker.from_yaml(source)
    description = ranker.description_
    ranker.save(out)
    own = [name for number, name in enumerate(description.feature_names) if number in description.read_columns]
    named = ", ".join(own[:_MOST_NAMED]) + (f" and {len(own) - _MOST_NAMED} more" if len(own) > _MOST_NAMED else "")
    reads = f"; its own inputs read {named}" if own else ""
    made_of = f", {counted(len(description.parts), 'ranker')}" if description.parts else ""
    size = f"{counted(description.n_inputs, 'input')}{made_of}, {counted(description.n_features, 'feature')}"
    say(f"{size} written to {out}{reads}", quiet=quiet)
