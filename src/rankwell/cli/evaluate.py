"""`rankwell evaluate`: how good is a ranking of judged data?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwell.cli.console import print_json, show, show_log
from rankwell.cli.figures import jsonable, make_table, metric_text
from rankwell.cli.first_pass import first_pass_feature, measure_first_pass, note_if_worse
from rankwell.cli.inputs import Reading
from rankwell.cli.options import (
    DEFAULT_CONVENTION,
    DEFAULT_METRICS,
    ConventionOption,
    JsonOption,
    LabelOption,
    MetricsOption,
    QidOption,
    QrelsOption,
    QuietOption,
    SkipOption,
)
from rankwell.cli.runs import read_runs
from rankwell.printable import printable

if TYPE_CHECKING:
    from rankwell.metrics.evaluation import Evaluation


def evaluate(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA|QRELS", help="Judged queries, or judgments in TREC's format; - is stdin."),
    ],
    run: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES|MODEL|RUN",
            help="One score per line (- is stdin), a ranker file, or a run in TREC's format; for judgments a run.",
        ),
    ],
    metrics: MetricsOption = DEFAULT_METRICS,
    convention: ConventionOption = DEFAULT_CONVENTION,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Every query's figures, tab-separated, and their means last.")
    ] = False,
    qrels: QrelsOption = None,
    label: LabelOption = "label",
    qid: QidOption = "qid",
    skip_bad_lines: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure a ranking: scores from any tool, a ranker, or a run in TREC's format.

    A run is measured over all judged queries, as trec_eval -c does: one that the run lacks counts as 0.

    Example: rankwell evaluate test.txt scores.txt --metrics ndcg@10,map --convention letor4

    Example: rankwell evaluate qrels.txt run.txt --convention trec
    """
    from rankwell.data.dataset import RankingDataset
    from rankwell.metrics.conventions import get_convention
    from rankwell.metrics.evaluation import evaluate as evaluate_ranking
    from rankwell.metrics.names import parse_metrics

    show_log(quiet=quiet)
    chosen_metrics, chosen_convention = parse_metrics(metrics), get_convention(convention)
    reading = Reading(skip_bad_lines, label, qid)
    (ranking,) = read_runs(data, [run], reading, chosen_convention, qrels=qrels, quiet=quiet)
    evaluation = evaluate_ranking(ranking.queries, ranking.scores, metrics=chosen_metrics, convention=chosen_convention)
    first_pass, feature = None, None
    if isinstance(ranking.queries, RankingDataset):
        feature = first_pass_feature(ranking.queries)
        first_pass = measure_first_pass({"data": ranking.queries}, chosen_metrics, chosen_convention).get("data")
    if as_json:
        report = {"data": str(data), "run": str(run), **evaluation.to_dict(per_query=per_query)}
        if first_pass is not None:
            report["first_pass"] = {"feature": feature, "metrics": jsonable(first_pass.mean)}
        print_json(report)
    elif per_query:
        _print_queries(evaluation)
    else:
        _print_means(evaluation, feature, first_pass)
    note_if_worse(str(data), feature, evaluation, first_pass, quiet=quiet)


def _print_means(evaluation: Evaluation, feature: str | None, first_pass: Evaluation | None) -> None:
    beside = {} if feature is None or first_pass is None else {feature: first_pass}
    table = make_table("", ["metric", "convention", "mean", *beside, "queries"], left=["convention"])
    for name, mean in evaluation.mean.items():
        queries = f"{evaluation.n_counted(name)} of {evaluation.n_queries}"
        others = (metric_text(other.mean[name]) for other in beside.values())
        table.add_row(name, evaluation.convention.name, metric_text(mean), *others, queries)
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
