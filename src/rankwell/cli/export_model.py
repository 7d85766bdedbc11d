"""`rankwell export`: a ranker as a model of another program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rankwell.cli.console import say, show_log
from rankwell.cli.inputs import check_readable
from rankwell.cli.options import QuietOption, complete_export_format, given_path
from rankwell.cli.output_file import check_output, write_output
from rankwell.errors import ParameterError


def export_model(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            parser=given_path,
            help="A ranker file, or a model that rankwell import reads.",
            show_default=False,
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="onnx, ranklib, opensearch (its model; opensearch-ranklib in RankLib's text), opensearch-features "
            "(its feature set), vespa, lightgbm or c.",
            autocompletion=complete_export_format,
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where it is written; - is stdout.")],
    name: Annotated[
        str,
        typer.Option("--name", metavar="NAME", help="The model's name there; in C, what functions begin with."),
    ] = "rankwell",
    ranking_pass: Annotated[
        str | None,
        typer.Option(
            "--pass", metavar="WHICH", help="first or second, of a ranker that ranks in two passes.", show_default=False
        ),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            "--feature",
            metavar="NAME=EXPRESSION",
            help="What a feature is in Vespa. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    first_index: Annotated[
        int | None,
        typer.Option(
            "--first-index",
            metavar="0|1",
            help="For lightgbm: the model's column that is the first feature; 1 if LightGBM itself reads the text, "
            "whose features are numbered from 1.",
            show_default=False,
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Write a ranker in another program's format; it scores the same there.

    What the format cannot say is an error that names it.

    Example: rankwell export model.rank --to onnx --out model.onnx

    Example: rankwell export model.rank --to c --out model.c

    Example: rankwell export model.rank --to vespa --name products --feature 'length.title=fieldLength(title)' --out
    products.profile
    """
    from rankwell.rankers.exporting import export
    from rankwell.scoring.exports.formats import export_notes
    from rankwell.scoring.written.references import read_model

    show_log(quiet=quiet)
    check_output(out, inputs=[model])
    check_readable(model)
    description = read_model(model)
    expressions = _expressions(feature or (), description.feature_names)
    content = export(
        description, to=to, name=name, ranking_pass=ranking_pass, features=expressions, first_index=first_index
    )
    write_output(out, content)
    if str(out) != "-":
        say(f"{model} written as {to} to {out} ({len(content):,} bytes)", quiet=quiet)
    for note in export_notes(description, to, ranking_pass=ranking_pass):
        say(f"note: {note}", quiet=quiet)


def _expressions(texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The expressions of --feature, by the name of the feature, which may have a = itself."""
    found = {}
    for text in texts:
        ends = [place for place, sign in enumerate(text) if sign == "=" and text[:place].strip() in names]
        if not ends or not text[ends[0] + 1 :].strip():
            raise ParameterError(f"--feature must be a feature of the ranker, = and an expression, got {text!r}.")
        found[text[: ends[0]].strip()] = text[ends[0] + 1 :].strip()
    return found
