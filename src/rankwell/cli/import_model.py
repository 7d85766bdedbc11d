"""`rankwell import`: a model of LightGBM or XGBoost as a ranker file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwell.cli.console import say, show_log
from rankwell.cli.inputs import check_readable
from rankwell.cli.options import QuietOption
from rankwell.cli.output_file import check_output


def import_model(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A model file of LightGBM (text, JSON dump) or XGBoost (JSON, UBJSON).",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The ranker file to write.", show_default=False)],
    quiet: QuietOption = False,
) -> None:
    """Turn a model of LightGBM or XGBoost into a ranker file that scores the same.

    Example: rankwell import model.txt model.rank
    """
    from rankwell.rankers.imported import ImportedRanker

    show_log(quiet=quiet)
    check_output(out, option="OUT", inputs=[source])
    check_readable(source)
    ranker = ImportedRanker.from_model(source)
    ranker.save(out)
    description = ranker.description_
    say(f"{description.n_inputs} trees over {description.n_features} features written to {out}", quiet=quiet)
