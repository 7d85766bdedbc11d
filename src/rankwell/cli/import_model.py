"""`rankwell import`: a model of another library as a ranker file."""

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
            help="A model file of LightGBM (text, JSON), XGBoost (JSON, UBJSON), CatBoost (JSON), ONNX (trees), "
            "RankLib, svm_rank or LIBLINEAR.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The ranker file to write.", show_default=False)],
    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            metavar="DATA",
            help="Data as the model was trained on, for the names of its features: it can be served then. Models of "
            "RankLib and svm_rank do not say how many features there are, either.",
            show_default=False,
        ),
    ] = None,
    all_rounds: Annotated[
        bool,
        typer.Option(
            "--all-rounds",
            help="Of a model of XGBoost that early stopping ended, the rounds after the best one as well.",
        ),
    ] = False,
    first_index: Annotated[
        int | None,
        typer.Option(
            "--first-index",
            metavar="0|1",
            help="The column of a model of LightGBM or XGBoost that is the first feature: 1 if it was trained from "
            "text that numbers features from 1, 0 if it was trained on arrays.",
            show_default=False,
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Turn a model of another library into a ranker file that scores the same.

    Example: rankwell import model.txt model.rank

    Example: rankwell import model.txt model.rank --features train.txt

    Example: rankwell import model.txt model.rank --first-index 1
    """
    from rankwell.rankers.imported import ImportedRanker
    from rankwell.scoring.imports.reader import model_format

    show_log(quiet=quiet)
    check_output(out, option="OUT", inputs=[source])
    check_readable(source)
    if features is None:
        ranker = ImportedRanker.from_model(source, all_rounds=all_rounds, first_index=first_index)
    else:
        names, n_features = _features_of(features, source)
        ranker = ImportedRanker.from_model(
            source, feature_names=names, n_features=n_features, all_rounds=all_rounds, first_index=first_index
        )
    ranker.save(out)
    description = ranker.description_
    kinds = " and ".join(dict.fromkeys(f"{group.kind} inputs" for group in description.inputs)).replace(
        "tree inputs", "trees"
    )
    say(f"{description.n_inputs} {kinds} over {description.n_features} features written to {out}", quiet=quiet)
    found = model_format(source)
    if features is None and found is not None and not found.counts_features:
        say(
            f"note: {found.title} does not say how many features there are, and this one reads "
            f"{description.n_features}; for data that has more, import it with --features DATA",
            quiet=quiet,
        )


def _features_of(path: Path, source: Path) -> tuple[tuple[str, ...] | None, int]:
    """The names of a data file's features, and how many there are; names may lack where the number is what counts."""
    from rankwell.data.files import read
    from rankwell.errors import DataError
    from rankwell.scoring.imports.reader import model_format

    check_readable(path)
    data = read(path)
    found = model_format(source)
    if data.feature_names is None and (found is None or found.counts_features):
        raise DataError(f"{path} has no names of features. `rankwell features` writes data that has them.")
    return None if data.feature_names is None else tuple(data.feature_names), data.n_features
