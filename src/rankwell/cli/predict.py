"""`rankwell predict`: score data with a ranker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwell.cli.console import say, show_log
from rankwell.cli.inputs import Reading, load_ranker, read_data, score
from rankwell.cli.options import LabelOption, QidOption, QuietOption, SkipOption
from rankwell.cli.output_file import check_output, write_output


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A ranker file.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The documents to score; - is stdin.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the scores are written; - is stdout.")
    ],
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds",
            metavar="N",
            help="Score with the first N rounds only (LambdaMART, RankBoost, and imported trees).",
            show_default=False,
        ),
    ] = None,
    trec: Annotated[
        bool, typer.Option("--trec", help="Write a run in TREC's format, documents named by the data's comments.")
    ] = False,
    tag: Annotated[
        str, typer.Option("--tag", metavar="NAME", help="With --trec: the name of the run in its lines.")
    ] = "rankwell",
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="Where to score: cpu, cuda or auto.")] = "cpu",
    label: LabelOption = "label",
    qid: QidOption = "qid",
    skip_bad_lines: SkipOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score every row of a data file: one score per line, in the order of the rows.

    Scores are written so that reading them gives the same float64 numbers.

    Example: rankwell predict model.rank test.txt --out scores.txt

    Example: rankwell predict model.rank test.txt --out run.txt --trec
    """
    from rankwell.data.scores import format_scores
    from rankwell.data.trec_lines import check_tag
    from rankwell.data.trec_run import run_of

    show_log(quiet=quiet)
    check_tag(tag)
    check_output(out, inputs=[model, data])
    ranker = load_ranker(model)
    dataset = read_data(data, Reading(skip_bad_lines, label, qid), quiet=quiet)
    scores = score(model, ranker, data, dataset, n_rounds=rounds, device=device, quiet=quiet)
    write_output(out, run_of(dataset, scores, tag=tag).encode() if trec else format_scores(scores))
    if str(out) != "-":
        say(f"{dataset.n_docs} scores written to {out}", quiet=quiet)
