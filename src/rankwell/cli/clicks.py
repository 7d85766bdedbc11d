"""`rankwell clicks`: judgments from a log of results shown and clicked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwell.cli.console import print_json, say, show, show_log
from rankwell.cli.figures import make_table
from rankwell.cli.inputs import check_readable
from rankwell.cli.options import JsonOption, QuietOption, given_path
from rankwell.cli.output_file import check_output, write_output
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rich.table import Table

    from rankwell.clicks.attraction import Prior
    from rankwell.clicks.position_bias import PositionBias

# Positions of the table: the first ten, then ever fewer.
_SHOWN_POSITIONS = (*range(1, 11), 15, 20, 30, 50, 100)


def clicks(
    log: Annotated[Path, typer.Argument(metavar="USE_LOG", parser=given_path, help="A log of `UseLog`; - is stdin.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The judgments, in TREC's format; with --from-log training data: .txt, .parquet, .feather, .csv. - is "
            "stdout.",
        ),
    ],
    features_log: Annotated[
        Path | None,
        typer.Option(
            "--from-log",
            metavar="LOG",
            help="Features of the same queries as they were served: writes training data instead of judgments.",
            show_default=False,
        ),
    ] = None,
    grades: Annotated[
        int, typer.Option("--grades", metavar="N", help="How many grades there are; 0 writes the attraction itself.")
    ] = 3,
    eta: Annotated[
        float | None,
        typer.Option(
            "--eta",
            metavar="NUMBER",
            help="Do not estimate the position bias: position p is examined p^-NUMBER times as often as the first; 0 "
            "is no bias.",
            show_default=False,
        ),
    ] = None,
    prior: Annotated[
        str,
        typer.Option(
            "--prior",
            metavar="log|NUMBER",
            help="What is known of a document before its clicks: the attractions in the log, or its mean as so many "
            "examinations.",
        ),
    ] = "log",
    min_examinations: Annotated[
        float,
        typer.Option("--min-examinations", metavar="NUMBER", help="Leave out documents that were examined less often."),
    ] = 0.0,
    skip_bad_lines: Annotated[
        bool,
        typer.Option(
            "--skip-bad-lines",
            help="Leave out lines of the log that are wrong, as a click on what was not shown, and say how many.",
        ),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Judge documents by clicks, corrected for the positions at which they were shown.

    Example: rankwell clicks use.jsonl --from-log features.log --out train.txt
    """
    from rankwell.clicks.click_counts import read_click_counts
    from rankwell.clicks.click_judgments import click_judgments
    from rankwell.clicks.position_bias import PositionBias, estimate_position_bias
    from rankwell.data.files import write
    from rankwell.features.qrels import qrels_text
    from rankwell.features.training_data import logged_features
    from rankwell.serving.ranking.feature_log import FeatureLogReader

    show_log(quiet=quiet)
    check_output(out, inputs=[log, features_log])
    for path in (log, features_log):
        if path is not None:
            check_readable(path)
    counts = read_click_counts(
        log, on_bad_line="skip" if skip_bad_lines else "error", for_judgments=features_log is None
    )
    bias = estimate_position_bias(counts) if eta is None else PositionBias.power(eta, counts.n_positions)
    judgments = click_judgments(
        counts, bias, grades=grades or None, prior=_prior(prior), min_examinations=min_examinations
    )
    if features_log is None:
        write_output(out, qrels_text(judgments).encode())
    else:
        write(logged_features(FeatureLogReader(features_log), judgments).dataset, out)
    if as_json:
        print_json({"examination": bias.examination.tolist(), "estimated": bias.seen.tolist()})
    elif str(out) != "-":
        show(_table(bias))
        impressions, clicked = int(counts.shown[counts.position == 1].sum()), int(counts.clicked.sum())
        n_judged = sum(map(len, judgments.values()))
        say(
            f"{n_judged} documents of {len(judgments)} queries, from {clicked} clicks on {impressions} result pages, "
            f"written to {out}",
            quiet=quiet,
        )


def _prior(written: str) -> Prior:
    try:
        return "log" if written == "log" else float(written)
    except ValueError:
        raise ParameterError(f"must be 'log' or a number, got {written!r}.", parameter="prior") from None


def _table(bias: PositionBias) -> Table:
    table = make_table("", ["position", "examined", "how"], left=["how"])
    for position in _SHOWN_POSITIONS:
        if position <= len(bias.examination):
            how = "estimated" if bias.seen[position - 1] else "from the curve"
            table.add_row(str(position), f"{bias.examination[position - 1]:.4f}", how)
    return table
