"""`rankwell train`: learn a ranker from judged queries and write it to a file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.cluster_training import (
    ClusterChoice,
    ClusterOption,
    DashboardOption,
    DivisionOption,
    GpusOption,
    WorkersOption,
    fit_on_cluster,
    print_workers,
    worker_rows,
)
from rankwell.cli.console import print_json, say, show, show_log
from rankwell.cli.figures import jsonable, make_table, metric_text
from rankwell.cli.first_pass import first_pass_feature, measure_first_pass, note_if_worse
from rankwell.cli.inputs import Reading, note_one_query, read_data
from rankwell.cli.options import (
    DEFAULT_CONVENTION,
    DEFAULT_METRICS,
    ConventionOption,
    JsonOption,
    LabelOption,
    MemoryLimitOption,
    MetricsOption,
    NormalizeOption,
    QidOption,
    QuietOption,
    RankerArgument,
    ScratchOption,
    SetOption,
    SkipOption,
)
from rankwell.cli.output_file import check_output
from rankwell.cli.progress import progress_bar
from rankwell.cli.ranker import make_ranker
from rankwell.errors import DataError, ParameterError

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset
    from rankwell.metrics.conventions import Convention
    from rankwell.metrics.evaluation import Evaluation
    from rankwell.metrics.metric import FunctionMetric, Metric
    from rankwell.rankers.base import Ranker


def train(
    name: RankerArgument,
    data: Annotated[
        list[Path],
        typer.Argument(metavar="TRAIN", help="Judged queries to learn from; - is stdin. Several only with --cluster."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the ranker file is written.")],
    vali: Annotated[
        Path | None, typer.Option("--vali", metavar="FILE", help="Judged queries to validate on.", show_default=False)
    ] = None,
    settings: SetOption = None,
    normalize: NormalizeOption = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="The metric to watch on --vali (for early stopping), if the ranker does; also reported first.",
            show_default=False,
        ),
    ] = None,
    metrics: MetricsOption = DEFAULT_METRICS,
    convention: ConventionOption = DEFAULT_CONVENTION,
    init: Annotated[
        Path | None,
        typer.Option(
            "--init", metavar="FILE", help="A ranker file of the same kind to continue from.", show_default=False
        ),
    ] = None,
    label: LabelOption = "label",
    qid: QidOption = "qid",
    skip_bad_lines: SkipOption = False,
    cluster: ClusterOption = None,
    workers: WorkersOption = None,
    gpus_per_worker: GpusOption = 0,
    division: DivisionOption = "auto",
    dashboard: DashboardOption = False,
    memory: MemoryLimitOption = None,
    scratch: ScratchOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a ranker and write it to a file.

    Example: rankwell train least-squares train.txt --vali vali.txt --out model.rank --set ridge=0.01
    """
    from rankwell.metrics.conventions import get_convention
    from rankwell.metrics.names import parse_metric, parse_metrics

    show_log(quiet=quiet)
    ranker = make_ranker(name, settings or (), normalize=normalize, metric=metric, convention=convention)
    watched = () if metric is None else (parse_metric(metric),)
    chosen_metrics = tuple(dict.fromkeys((*watched, *parse_metrics(metrics))))
    chosen_convention = get_convention(convention)
    check_output(out, inputs=[*data, vali, init])
    checkpoint = getattr(ranker, "checkpoint", None)
    if checkpoint is not None:
        check_output(Path(checkpoint), option="--set checkpoint", inputs=[*data, vali, init, out])
    if scratch is not None and memory is None:
        raise ParameterError("--scratch is the folder of what --memory keeps on disk: pass --memory too.")
    reading = Reading(skip_bad_lines, label, qid, memory, scratch)
    if cluster is None:
        parts = _read_parts(_one_file(data, workers), vali, reading, quiet)
        _check_labels(parts, chosen_metrics, chosen_convention)
        seconds = _fit(ranker, parts, init, quiet)
    else:
        choice = ClusterChoice(cluster, workers, gpus_per_worker, division, dashboard)
        parts = {} if vali is None else {"validation": read_data(vali, replace(reading, memory=None), quiet=quiet)}
        _check_labels(parts, chosen_metrics, chosen_convention)
        seconds = fit_on_cluster(ranker, data, parts.get("validation"), choice, reading, init, quiet)
        parts = {name: part.widened(ranker.n_features_in_) for name, part in parts.items()}
    evaluations = _measure(ranker, parts, chosen_metrics, chosen_convention)
    first_pass = measure_first_pass(parts, chosen_metrics, chosen_convention)
    ranker.metrics_ = {
        "convention": chosen_convention.name,
        **{part: jsonable(evaluation.mean) for part, evaluation in evaluations.items()},
    }
    ranker.save(out)
    if as_json:
        print_json(_report(ranker, out, seconds) | _report_first_pass(parts, first_pass))
    else:
        if parts:
            _print_metrics(evaluations, parts, first_pass)
            last = list(parts)[-1]
            note_if_worse(last, first_pass_feature(parts[last]), evaluations[last], first_pass.get(last), quiet=quiet)
        _print_path(ranker)
        if cluster is not None:
            print_workers(ranker.cluster_)  # type: ignore[attr-defined]
        say(f"{ranker.name} trained in {seconds:.2f} s, written to {out}", quiet=quiet)


def _one_file(data: Sequence[Path], workers: int | None) -> Path:
    """The file to train on without a cluster."""
    if len(data) > 1:
        raise ParameterError(
            f"{len(data)} files to train on: without --cluster it must be one. Join them, or pass --cluster local."
        )
    if workers is not None:
        raise ParameterError("--workers is the number of processes of a cluster: pass --cluster local too.")
    return data[0]


def _read_parts(data: Path, vali: Path | None, reading: Reading, quiet: bool) -> dict[str, RankingDataset]:
    """Training and validation data, as wide as the wider of them; a note says where that added features."""

    parts = {"train": read_data(data, reading, quiet=quiet)}
    note_one_query(data, parts["train"], quiet=quiet)
    if vali is not None:
        # Looked at after every round: in memory, whatever the limit.
        parts["validation"] = read_data(vali, replace(reading, memory=None), quiet=quiet)
    widest = max(part.n_features for part in parts.values())
    wide = {name: part.widened(widest) for name, part in parts.items()}
    for name, part in parts.items():
        if wide[name] is not part:
            say(f"note: the {name} data has {part.n_features} features, the other {widest}: absent features count as 0")
    return wide


def _check_labels(
    parts: Mapping[str, RankingDataset], metrics: Sequence[Metric | FunctionMetric], convention: Convention
) -> None:
    """Refuse labels that the metrics cannot measure before the work starts: training itself takes any numbers."""
    from rankwell.metrics.judged_queries import JudgedQueries
    from rankwell.metrics.judgments import check_negative_labels
    from rankwell.metrics.metric import Metric

    named = [metric for metric in metrics if isinstance(metric, Metric)]
    for name, part in parts.items():
        # Without labels or features there is nothing to learn from, which `fit` says.
        if not part.has_labels or not part.n_features:
            continue
        try:
            check_negative_labels(JudgedQueries.from_dataset(part), named, convention)
        except DataError as cause:
            raise DataError(f"the {name} data cannot be measured: ", *cause.pieces) from cause


def _fit(ranker: Ranker, parts: Mapping[str, RankingDataset], init: Path | None, quiet: bool) -> float:
    """Train with a progress bar; returns the seconds it took."""
    started = time.perf_counter()
    with progress_bar(f"training {ranker.name}", quiet=quiet) as bar:
        ranker.fit(parts["train"], eval_set=parts.get("validation"), callback=bar.training_step, init_model=init)
    return time.perf_counter() - started


def _measure(
    ranker: Ranker,
    parts: Mapping[str, RankingDataset],
    metrics: Sequence[Metric | FunctionMetric],
    convention: Convention,
) -> dict[str, Evaluation]:
    from rankwell.metrics.evaluation import evaluate

    return {
        part: evaluate(dataset, ranker.predict(dataset), metrics=metrics, convention=convention)
        for part, dataset in parts.items()
    }


def _report(ranker: Ranker, out: Path, seconds: float) -> dict[str, Any]:
    from rankwell.cli.summaries import path_rows

    measured = {part: figures for part, figures in ranker.metrics_.items() if part != "convention"}
    return {
        "ranker": ranker.name,
        "parameters": jsonable(ranker.get_params(deep=False)),
        "chosen": jsonable(ranker.chosen_),
        "path": jsonable(path_rows(ranker)),
        "file": str(out),
        "seconds": seconds,
        "convention": ranker.metrics_["convention"],
        "metrics": measured,
        **({"workers": jsonable(worker_rows(ranker.cluster_))} if hasattr(ranker, "cluster_") else {}),
    }


def _report_first_pass(
    parts: Mapping[str, RankingDataset], first_pass: Mapping[str, Evaluation]
) -> dict[str, dict[str, Any]]:
    """The first pass's figures, for JSON; empty where the data has no feature of it."""
    return {
        "first_pass": {
            part: {"feature": first_pass_feature(parts[part]), "metrics": jsonable(evaluation.mean)}
            for part, evaluation in first_pass.items()
        }
    }


def _print_path(ranker: Ranker) -> None:
    """What the ranker tried, if it chose a parameter from several values (C of RankSVM)."""
    path = getattr(ranker, "path_", None)
    if path is None:
        return
    columns = ["", "C", f"validation {path.metric}", "objective", "iterations", "products"]
    table = make_table(f"C chosen on the validation data, convention {path.convention}", columns)
    for point in path.points:
        mark = "*" if point is path.best else ""
        figures = (metric_text(point.validation), f"{point.objective:.6g}", str(point.n_iterations))
        table.add_row(mark, f"{point.C:.6g}", *figures, str(point.n_products))
    show(table)


def _print_metrics(
    evaluations: Mapping[str, Evaluation],
    parts: Mapping[str, RankingDataset],
    first_pass: Mapping[str, Evaluation],
) -> None:
    first = next(iter(evaluations.values()))
    columns: dict[str, Evaluation] = {}
    for part, evaluation in evaluations.items():
        columns[part] = evaluation
        if part in first_pass:
            columns[f"{part}: {first_pass_feature(parts[part])}"] = first_pass[part]
    table = make_table("", ["metric", "convention", *columns], left=["convention"])
    for name in first.mean:
        table.add_row(name, first.convention.name, *(metric_text(column.mean[name]) for column in columns.values()))
    show(table)
