"""`rankwell compare`: which of several rankings is better, and is the difference luck?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.console import print_json, say, show, show_log
from rankwell.cli.figures import jsonable, make_table, metric_text
from rankwell.cli.inputs import Reading
from rankwell.cli.options import (
    DEFAULT_CONVENTION,
    ConventionOption,
    JsonOption,
    LabelOption,
    MetricsOption,
    QidOption,
    QrelsOption,
    QuietOption,
    SkipOption,
)
from rankwell.cli.runs import Run, read_runs
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.metrics.evaluation import Evaluation
    from rankwell.metrics.significance import Comparison


def compare(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA|QRELS|DIR",
            help="Judged queries, judgments in TREC's format, or a folder of folds; - is stdin.",
        ),
    ],
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN RUN...",
            help="Scores files or ranker files; for judgments, runs in TREC's format; for a folder of folds, folders "
            "that crossval --out wrote. The first is the baseline.",
        ),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="FEATURE",
            help="A feature of the data as the baseline, as in bm25.whole; one RUN is then enough.",
            show_default=False,
        ),
    ] = None,
    metrics: MetricsOption = "ndcg@10,map",
    convention: ConventionOption = DEFAULT_CONVENTION,
    qrels: QrelsOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of the randomisation test.")] = 0,
    label: LabelOption = "label",
    qid: QidOption = "qid",
    skip_bad_lines: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare rankings of the same data with the first one, by paired two-sided tests over queries.

    p is that of Fisher's randomisation test, p(t) of the paired t-test; neither is corrected for the number of runs.

    Example: rankwell compare test.txt baseline.txt model.rank --metrics ndcg@10 --convention letor4

    Example: rankwell compare test.txt model.rank --baseline bm25.whole

    Example: rankwell compare MQ2008 boosted linear, after rankwell crossval rankboost MQ2008 --out boosted and the same
    for linear
    """
    from rankwell.metrics.conventions import get_convention
    from rankwell.metrics.evaluation import evaluate
    from rankwell.metrics.names import parse_metrics
    from rankwell.metrics.significance import compare as compare_runs

    if len(runs) + (baseline is not None) < 2:
        raise ParameterError(
            "compare needs two runs or more: the baseline first, then those to compare with it; or --baseline FEATURE "
            "and one."
        )
    show_log(quiet=quiet)
    chosen_metrics, chosen_convention = parse_metrics(metrics), get_convention(convention)
    reading, features = Reading(skip_bad_lines, label, qid), [] if baseline is None else [baseline]
    rankings = read_runs(data, runs, reading, chosen_convention, qrels=qrels, features=features, quiet=quiet)
    evaluations = [
        evaluate(ranking.queries, ranking.scores, metrics=chosen_metrics, convention=chosen_convention)
        for ranking in rankings
    ]
    names = list(evaluations[0].mean)
    comparisons = [
        {name: compare_runs(evaluation, evaluations[0], metric=name, random_state=seed) for name in names}
        for evaluation in evaluations[1:]
    ]
    if as_json:
        print_json(_report(data, rankings, evaluations, comparisons))
        return
    for name in names:
        _print_metric(name, rankings, evaluations, [comparison[name] for comparison in comparisons])
    say("p: Fisher's randomisation test; p(t): paired t-test; both two-sided, against the first run.", quiet=quiet)


def _report(
    data: Path, runs: Sequence[Run], evaluations: Sequence[Evaluation], comparisons: Sequence[Mapping[str, Comparison]]
) -> dict[str, Any]:
    return {
        "data": str(data),
        "convention": evaluations[0].convention.name,
        "runs": [
            {"run": run.name, "metrics": jsonable(evaluation.mean)}
            for run, evaluation in zip(runs, evaluations, strict=True)
        ],
        "comparisons": [
            {"run": run.name, "baseline": runs[0].name, **comparison.to_dict()}
            for run, of_run in zip(runs[1:], comparisons, strict=True)
            for comparison in of_run.values()
        ],
    }


def _print_metric(
    name: str, runs: Sequence[Run], evaluations: Sequence[Evaluation], comparisons: Sequence[Comparison]
) -> None:
    title = f"{name} ({evaluations[0].convention})"
    table = make_table(title, ["run", "mean", "difference", "won", "equal", "lost", "p", "p(t)"])
    table.add_row(runs[0].name, metric_text(evaluations[0].mean[name]), "baseline")
    for run, evaluation, found in zip(runs[1:], evaluations[1:], comparisons, strict=True):
        table.add_row(
            run.name,
            metric_text(evaluation.mean[name]),
            f"{found.difference:+.4f}",
            *(str(count) for count in (found.wins, found.ties, found.losses)),
            _p_text(found.fisher_p),
            _p_text(found.t_p),
        )
    show(table)


def _p_text(p: float) -> str:
    if p != p:
        return "-"
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"
