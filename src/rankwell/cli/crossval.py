"""`rankwell crossval`: tune on each fold's validation data, report on its test data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.console import print_json, say, show, show_log
from rankwell.cli.figures import jsonable, make_table, metric_text, parameters_text
from rankwell.cli.inputs import Reading
from rankwell.cli.options import (
    DEFAULT_CONVENTION,
    DEFAULT_METRICS,
    ConventionOption,
    JsonOption,
    LabelOption,
    MetricsOption,
    NormalizeOption,
    QidOption,
    QuietOption,
    RankerArgument,
    SetOption,
    SkipOption,
)
from rankwell.cli.output_file import check_output, write_output
from rankwell.cli.progress import ProgressBar, progress_bar
from rankwell.cli.ranker import make_ranker
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.data.folds import Fold, FoldData
    from rankwell.rankers.base import Ranker
    from rankwell.rankers.tuning import CrossValidation, FoldOutcome, Trial

_REPORT, _PER_QUERY = "crossval.json", "per-query.tsv"


def crossval(
    name: RankerArgument,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of Fold1/{train,vali,test}.txt, Fold2/..., as in LETOR.")
    ],
    settings: SetOption = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="KEY=A,B,C",
            help="Values to try for a parameter (lists of values are separated by ';'). Can be repeated.",
            show_default=False,
        ),
    ] = None,
    normalize: NormalizeOption = None,
    metric: Annotated[
        str, typer.Option("--metric", metavar="NAME", help="The metric on validation data to choose parameters by.")
    ] = "ndcg@10",
    inner_folds: Annotated[
        int | None,
        typer.Option(
            "--inner-folds",
            metavar="K",
            min=2,
            help="Choose by K-fold cross-validation inside training and validation data, then train on all of both.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="A folder for the test data's scores, each query's figures and the report; see rankwell compare.",
            show_default=False,
        ),
    ] = None,
    metrics: MetricsOption = DEFAULT_METRICS,
    convention: ConventionOption = DEFAULT_CONVENTION,
    label: LabelOption = "label",
    qid: QidOption = "qid",
    skip_bad_lines: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Cross-validate a ranker over folds: tune on validation data, report on test data, per fold and in the mean.

    Example: rankwell crossval least-squares MQ2008 --grid ridge=1e-4,1e-2,1 --convention letor4

    Example: rankwell crossval rankboost MQ2008 --inner-folds 5 --out boosted
    """
    from rankwell.cli.settings import parse_grid
    from rankwell.data.folds import find_folds
    from rankwell.metrics.conventions import get_convention
    from rankwell.metrics.names import parse_metric, parse_metrics
    from rankwell.rankers.tuning import cross_validate

    # Inner folds train many times, and each training would say what it chose.
    show_log(quiet=quiet or inner_folds is not None)
    ranker = make_ranker(name, settings or (), normalize=normalize, metric=metric, convention=convention)
    values = parse_grid(type(ranker), grid or ())
    _refuse_both(values, settings or (), normalize)
    chooser, reported, chosen_convention = parse_metric(metric), parse_metrics(metrics), get_convention(convention)
    folds = find_folds(directory)
    if out is not None:
        _check_folder(out, directory)
    with progress_bar("cross-validating", quiet=quiet) as bar:
        steps = _Steps(bar, len(folds), Reading(skip_bad_lines, label, qid))
        outcome = cross_validate(
            ranker,
            steps.read(folds),
            values,
            metric=chooser,
            metrics=reported,
            convention=chosen_convention,
            inner_folds=inner_folds,
            on_trial=steps.trial_done,
        )
    report = _report(ranker, directory, outcome, inner_folds)
    if out is not None:
        _keep(out, outcome, report)
    if as_json:
        print_json(report)
    else:
        _print(ranker, outcome)
        say(_how_chosen(outcome, inner_folds), quiet=quiet)
        if out is not None:
            say(f"Scores, each query's figures and the report are in {out}", quiet=quiet)


def _check_folder(out: Path, directory: Path) -> None:
    """Refuse a folder that cannot be written, or that the command reads, before the work."""
    if out.resolve() == directory.resolve():
        raise ParameterError(f"--out {out} is the folder of the folds. Choose another folder.")
    if out.exists() and not out.is_dir():
        raise ParameterError(f"--out {out} is a file, not a folder. Choose another path.")
    check_output(out / _REPORT)


def _keep(out: Path, outcome: CrossValidation, report: dict[str, Any]) -> None:
    """Write the scores of each fold's test data, the figures of every query, and the report."""
    import json

    from rankwell.data.fold_scores import write_fold_scores

    write_fold_scores(out, {fold.name: fold.scores for fold in outcome.folds})
    names = list(outcome.mean)
    lines = ["\t".join(["fold", "qid", *(f"{name} ({outcome.convention})" for name in names)])]
    for fold in outcome.folds:
        columns = (fold.evaluation.per_query[name].tolist() for name in names)
        for query, *figures in zip(fold.evaluation.query_ids.tolist(), *columns, strict=True):
            lines.append("\t".join([fold.name, str(query), *(repr(figure) for figure in figures)]))
    write_output(out / _PER_QUERY, ("\n".join(lines) + "\n").encode())
    write_output(out / _REPORT, (json.dumps(report, indent=2) + "\n").encode())


class _Steps:
    """Counts trials over all folds for the progress bar."""

    def __init__(self, bar: ProgressBar, n_folds: int, reading: Reading) -> None:
        self._bar = bar
        self._n_folds = n_folds
        self._reading = reading
        self._fold = 0

    def read(self, folds: Sequence[Fold]) -> Iterator[FoldData]:
        from rankwell.data.folds import read_fold

        for self._fold, fold in enumerate(folds):
            self._bar.describe(f"reading {fold.name}")
            reading = self._reading
            data = read_fold(fold, on_bad_line=reading.on_bad_line, label=reading.label, qid=reading.qid)
            self._bar.describe(f"training on {fold.name}")
            yield data

    def trial_done(self, done: int, in_all: int, trial: Trial) -> None:
        self._bar.show(
            done=self._fold * in_all + done, total=self._n_folds * in_all, note=parameters_text(trial.parameters)
        )


def _refuse_both(grid: dict[str, list[Any]], settings: Sequence[str], normalize: str | None) -> None:
    fixed = {setting.partition("=")[0].strip().replace("-", "_") for setting in settings}
    fixed |= {"normalize"} if normalize is not None else set()
    for key in grid:
        if key in fixed:
            raise ParameterError(f"{key} is given by both --set and --grid: keep one of them.")


def _how_chosen(outcome: CrossValidation, inner_folds: int | None) -> str:
    tuning = outcome.folds[0].tuning
    where = "on each fold's validation data"
    if inner_folds is not None:
        where = f"by {inner_folds}-fold cross-validation inside each fold's training and validation data"
    if len(tuning.trials) == 1:
        return (
            "No parameter was chosen from a grid (--grid key=a,b,c). What the ranker chooses itself, such as rounds or "
            f"C, it chose {where} by {tuning.metric} ({tuning.convention})."
        )
    return (
        f"Chosen {where} by {tuning.metric} ({tuning.convention}) "
        f"from {len(tuning.trials)} combinations; the test data was not used for it."
    )


def _chosen(ranker: Ranker, fold: FoldOutcome) -> dict[str, Any]:
    """What was chosen for a fold: from the grid, by inner folds, and by the ranker itself."""
    kept = fold.tuning.ranker
    before = ranker.get_params(deep=False)
    settled = {
        name: value
        for name, value in kept.get_params(deep=False).items()
        if value != before[name] and name != "early_stopping_rounds"
    }
    return {**settled, **fold.tuning.chosen.parameters, **kept.chosen_}


def _print(ranker: Ranker, outcome: CrossValidation) -> None:
    names = list(outcome.mean)
    metric = outcome.folds[0].tuning.metric
    title = f"{ranker.name}: test data, convention {outcome.convention}"
    table = make_table(title, ["fold", "chosen", f"{metric} on validation", *names], left=["chosen"])
    for fold in outcome.folds:
        chosen = fold.tuning.chosen
        figures = (metric_text(fold.test[name]) for name in names)
        table.add_row(
            fold.name, parameters_text(_chosen(ranker, fold)) or "-", metric_text(chosen.validation), *figures
        )
    table.add_section()
    table.add_row("mean", "", "", *(metric_text(outcome.mean[name]) for name in names), style="bold")
    show(table)


def _report(ranker: Ranker, directory: Path, outcome: CrossValidation, inner_folds: int | None) -> dict[str, Any]:
    first = outcome.folds[0].tuning
    tried = first.chosen.parameters
    fixed = {name: value for name, value in ranker.get_params(deep=False).items() if name not in tried}
    return jsonable(
        {
            "ranker": ranker.name,
            "parameters": fixed,
            "directory": str(directory),
            "convention": outcome.convention,
            "chosen_by": first.metric,
            "inner_folds": inner_folds,
            "folds": [
                {
                    "fold": fold.name,
                    "chosen": _chosen(ranker, fold),
                    "test": fold.test,
                    "trials": [
                        {
                            "parameters": trial.parameters,
                            "validation": trial.validation,
                            "seconds": trial.seconds,
                        }
                        for trial in fold.tuning.trials
                    ],
                }
                for fold in outcome.folds
            ],
            "mean": outcome.mean,
        }
    )
