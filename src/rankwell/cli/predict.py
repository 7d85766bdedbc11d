"""`rankwell predict`: score data with a ranker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwell.cli.console import say
from rankwell.cli.inputs import load_ranker, read_data
from rankwell.cli.options import QuietOption
from rankwell.cli.output_file import check_output, write_output
from rankwell.cli.progress import progress_bar


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A ranker file.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The documents to score; - is stdin.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the scores are written; - is stdout.")
    ],
    quiet: QuietOption = False,
) -> None:
    """Score every row of a data file: one score a line, in the order of the rows.

    Scores are written so that reading them gives the same float64 numbers.

    Example: rankwell predict model.rank test.txt --out scores.txt
    """
    from rankwell.data.scores import format_scores

    check_output(out)
    ranker = load_ranker(model)
    dataset = read_data(data, n_features=ranker.n_features_in_, quiet=quiet)
    with progress_bar(f"scoring {data}", quiet=quiet):
        content = format_scores(ranker.predict(dataset))
    write_output(out, content)
    if str(out) != "-":
        say(f"{dataset.n_docs} scores written to {out}", quiet=quiet)
