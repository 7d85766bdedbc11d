"""`rankwell evaluate`: how good is a ranking of judged data?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwell.cli.console import print_json, show, show_log
from rankwell.cli.figures import make_table, metric_text
from rankwell.cli.inputs import Reading, read_runs
from rankwell.cli.options import (
    DEFAULT_CONVENTION,
    DEFAULT_METRICS,
    ConventionOption,
    JsonOption,
    LabelOption,
    MetricsOption,
    QidOption,
    QuietOption,
    SkipOption,
)
from rankwell.printable import printable

if TYPE_CHECKING:
    from rankwell.metrics.evaluation import Evaluation


def evaluate(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Judged queries; - is stdin.")],
    run: Annotated[
        Path, typer.Argument(metavar="SCORES|MODEL", help="One score per line (- is stdin), or a ranker file.")
    ],
    metrics: MetricsOption = DEFAULT_METRICS,
    convention: ConventionOption = DEFAULT_CONVENTION,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Every query's figures, tab-separated, and their means last.")
    ] = False,
    label: LabelOption = "label",
    qid: QidOption = "qid",
    skip_bad_lines: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure a ranking: scores from any tool, or a ranker.

    Example: rankwell evaluate test.txt scores.txt --metrics ndcg@10,map --convention letor4
    """
    from rankwell.metrics.conventions import get_convention
    from rankwell.metrics.evaluation import evaluate as evaluate_ranking
    from rankwell.metrics.names import parse_metrics

    show_log(quiet=quiet)
    chosen_metrics, chosen_convention = parse_metrics(metrics), get_convention(convention)
    dataset, (ranking,) = read_runs(data, [run], Reading(skip_bad_lines, label, qid), quiet=quiet)
    evaluation = evaluate_ranking(dataset, ranking.scores, metrics=chosen_metrics, convention=chosen_convention)
    if as_json:
        print_json({"data": str(data), "run": str(run), **evaluation.to_dict(per_query=per_query)})
    elif per_query:
        _print_queries(evaluation)
    else:
        _print_means(evaluation)


def _print_means(evaluation: Evaluation) -> None:
    table = make_table("", ["metric", "convention", "mean", "queries"], left=["convention"])
    for name, mean in evaluation.mean.items():
        queries = f"{evaluation.n_counted(name)} of {evaluation.n_queries}"
        table.add_row(name, evaluation.convention.name, metric_text(mean), queries)
    show(table)


def _print_queries(evaluation: Evaluation) -> None:
    """One line per query, as trec_eval -q: the means are last, as query `all`."""
    names = list(evaluation.mean)
    lines = ["\t".join(["qid", *(f"{name} ({evaluation.convention})" for name in names)])]
    columns = (evaluation.per_query[name].tolist() for name in names)
    for query, *figures in zip(evaluation.query_ids.tolist(), *columns, strict=True):
        lines.append("\t".join([printable(str(query)), *map(metric_text, figures)]))
    lines.append("\t".join(["all", *(metric_text(evaluation.mean[name]) for name in names)]))
    sys.stdout.write("\n".join(lines) + "\n")
