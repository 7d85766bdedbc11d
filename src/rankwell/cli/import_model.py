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
    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            metavar="DATA",
            help="Data as the model was trained on, for the names of its features: it can be served then.",
            show_default=False,
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Turn a model of LightGBM or XGBoost into a ranker file that scores the same.

    Example: rankwell import model.txt model.rank

    Example: rankwell import model.txt model.rank --features train.txt
    """
    from rankwell.rankers.imported import ImportedRanker

    show_log(quiet=quiet)
    check_output(out, option="OUT", inputs=[source])
    check_readable(source)
    ranker = ImportedRanker.from_model(source, feature_names=None if features is None else _names_of(features))
    ranker.save(out)
    description = ranker.description_
    say(f"{description.n_inputs} trees over {description.n_features} features written to {out}", quiet=quiet)


def _names_of(path: Path) -> tuple[str, ...]:
    """The names of the features of a data file."""
    from rankwell.data.files import read
    from rankwell.errors import DataError

    check_readable(path)
    names = read(path).feature_names
    if names is None:
        raise DataError(f"{path} has no names of features. `rankwell features` writes data that has them.")
    return tuple(names)
