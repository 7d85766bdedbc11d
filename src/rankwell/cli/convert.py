"""`rankwell convert`: the same data in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwell.cli.console import say
from rankwell.cli.options import QuietOption
from rankwell.cli.output_file import check_output
from rankwell.cli.progress import progress_bar


def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A data file; - is LETOR text on stdin.")],
    target: Annotated[
        Path, typer.Argument(metavar="DST", help="Its ending says the format: .txt, .txt.gz, .feather, .parquet, .csv.")
    ],
    quiet: QuietOption = False,
) -> None:
    """Write a data file in another format; a .feather file is memory-mapped when it is read.

    Example: rankwell convert train.txt train.feather
    """
    from rankwell.data.files import read, write

    check_output(target, option="DST")
    with progress_bar(f"reading {source}", quiet=quiet) as bar:
        dataset = read(source)
        bar.describe(f"writing {target}")
        write(target, dataset)
    say(f"{dataset.n_docs} rows in {dataset.n_queries} queries written to {target}", quiet=quiet)
