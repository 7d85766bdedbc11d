"""`rankwell convert`: the same data in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwell.cli.console import say, show_log
from rankwell.cli.inputs import Reading, read_data
from rankwell.cli.options import LabelOption, QidOption, QuietOption, SkipOption
from rankwell.cli.output_file import check_data_output, check_output, write_output
from rankwell.cli.progress import progress_bar


def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A data file; - is LETOR text on stdin.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="DST", help="The ending is the format: .txt, .txt.gz, .feather, .parquet, .csv, or .qrels (TREC)."
        ),
    ],
    label: LabelOption = "label",
    qid: QidOption = "qid",
    skip_bad_lines: SkipOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a data file in another format; a .feather file is memory-mapped when it is read.

    The labels alone, with query and document ids, are judgments in TREC's format (.qrels).

    Example: rankwell convert train.txt train.feather
    """
    from rankwell.data.files import write
    from rankwell.features.qrels import qrels_of, qrels_text

    show_log(quiet=quiet)
    check = check_output if target.suffix == ".qrels" else check_data_output
    check(target, option="DST", inputs=[source])
    dataset = read_data(source, Reading(skip_bad_lines, label, qid), quiet=quiet)
    with progress_bar(f"writing {target}", quiet=quiet):
        if target.suffix == ".qrels":
            write_output(target, qrels_text(qrels_of(dataset)).encode())
        else:
            write(dataset, target)
    if str(target) != "-":
        say(f"{dataset.n_docs} rows in {dataset.n_queries} queries written to {target}", quiet=quiet)
