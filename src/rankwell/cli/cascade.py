"""`rankwell cascade`: train a cheap first pass and an expensive second one, by what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.console import print_json, say, show, show_log
from rankwell.cli.figures import jsonable, make_table, metric_text
from rankwell.cli.inputs import Reading, note_one_query, read_data
from rankwell.cli.options import (
    DEFAULT_CONVENTION,
    ConventionOption,
    JsonOption,
    LabelOption,
    QidOption,
    QuietOption,
    SkipOption,
    given_path,
)
from rankwell.cli.output_file import check_drawing, check_output
from rankwell.cli.progress import progress_bar
from rankwell.errors import DataError, ParameterError

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset
    from rankwell.rankers.cascade import Cascade
    from rankwell.scoring.costs import FeatureCosts


def cascade(
    data: Annotated[Path, typer.Argument(metavar="TRAIN", help="Judged queries to learn from; - is stdin.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the ranker file is written.")],
    vali: Annotated[
        Path | None,
        typer.Option(
            "--vali",
            metavar="FILE",
            help="Judged queries to choose on; without them, parts of the training queries.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="MICROSECONDS",
            help="The best cascade that costs no more a query, or no more than 25% (a share) of the full ranker; "
            "without a budget, the cheapest as good as the full ranker.",
            show_default=False,
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="INDEX",
            parser=given_path,
            help="Measure what features cost on this index.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries", metavar="FILE", help="With --index: a TSV file of queries to measure with.", show_default=False
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            "--costs", metavar="FILE", help="What features cost, as YAML or JSON (guide: cascade).", show_default=False
        ),
    ] = None,
    first: Annotated[str, typer.Option("--first", metavar="NAME", help="The first pass's ranker.")] = "least-squares",
    second: Annotated[str, typer.Option("--second", metavar="NAME", help="The second pass's ranker.")] = "lambdamart",
    first_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--first-set", metavar="KEY=VALUE", help="A parameter of the first. Can be repeated.", show_default=False
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A parameter of the second. Can be repeated.", show_default=False
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", metavar="NUMBER", help="How much of the metric may be lost (no budget).")
    ] = 0.003,
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates",
            metavar="N",
            min=1,
            help="Documents a query for which costs are counted; by default, as many as the data has.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option("--seeds", metavar="N", min=1, help="The chosen second pass is the mean of so many models."),
    ] = 4,
    folds: Annotated[
        int, typer.Option("--folds", metavar="N", help="Without --vali: parts of the training queries.")
    ] = 5,
    metric: Annotated[str, typer.Option("--metric", metavar="NAME", help="What is measured.")] = "ndcg@10",
    convention: ConventionOption = DEFAULT_CONVENTION,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the curve (.png, .svg, .pdf).", show_default=False),
    ] = None,
    label: LabelOption = "label",
    qid: QidOption = "qid",
    skip_bad_lines: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a cascade: a cheap first pass orders all documents of a query, an expensive second one the best of them.

    Prints the curve of quality against cost, and writes the chosen cascade as one ranker file.

    Example: rankwell cascade train.txt --vali vali.txt --index docs.idx --out cascade.rank
    """
    show_log(quiet=quiet)
    ranker = _make(
        first, second, first_settings, settings,
        **_budget(budget), tolerance=tolerance, n_candidates=candidates, n_seeds=seeds, n_folds=folds,
        eval_metric=metric, eval_convention=convention,
    )  # fmt: skip
    check_output(out, inputs=[data, vali, index, costs, queries])
    if plot is not None:
        check_drawing(plot, option="--plot", inputs=[data, vali, index, costs, queries])
        if plot.resolve() == out.resolve():
            raise ParameterError(f"--plot {plot} would replace --out {out}. Give two different files.")
    reading = Reading(skip_bad_lines, label, qid)
    train = read_data(data, reading, quiet=quiet)
    note_one_query(data, train, quiet=quiet)
    validation = None if vali is None else read_data(vali, reading, quiet=quiet).widened(train.n_features)
    train = train if validation is None else train.widened(validation.n_features)
    table = _costs(index, queries, costs, train, quiet=quiet)
    with progress_bar("training the cascade", quiet=quiet) as bar:
        ranker.fit(train, eval_set=validation, costs=table, callback=bar.training_step)
    ranker.save(out)
    report = ranker.metrics_["cascade"]
    if plot is not None:
        from rankwell.rankers.cascade_plot import plot_curve

        plot.parent.mkdir(parents=True, exist_ok=True)
        plot_curve(report, title=out.name, path=plot)
    if as_json:
        print_json(jsonable({"file": str(out), "convention": convention, **report, "table": table.to_json()}))
    else:
        _show(ranker, convention)
        say(f"costs: {report['costs']}", quiet=quiet)
        say(f"written to {out}", quiet=quiet)


def _make(
    first: str, second: str, first_settings: list[str] | None, settings: list[str] | None, **options: Any
) -> Cascade:
    from rankwell.cli.settings import parse_settings
    from rankwell.rankers.cascade import Cascade
    from rankwell.rankers.registry import ranker_class

    return Cascade(
        first,
        second,
        first_parameters=parse_settings(ranker_class(first), first_settings or (), "--first-set") or None,
        second_parameters=parse_settings(ranker_class(second), settings or ()) or None,
        **options,
    )


def _budget(text: str | None) -> dict[str, float]:
    """--budget as a number of microseconds, or a share with a percent sign."""
    if text is None:
        return {}
    number = text.removesuffix("%")
    try:
        value = float(number)
    except ValueError as cause:
        raise ParameterError(f"--budget must be microseconds, as 500, or a share, as 25%, got {text!r}.") from cause
    if number == text:
        return {"budget": value}
    if not 0 < value <= 100:
        raise ParameterError(f"--budget must be a share above 0% and at most 100%, got {text!r}.")
    return {"budget_share": value / 100}


def _costs(
    index: Path | None, queries: Path | None, costs: Path | None, train: RankingDataset, *, quiet: bool
) -> FeatureCosts:
    from rankwell.scoring.costs import FeatureCosts, read_costs

    if index is not None and costs is not None:
        raise ParameterError("give --index or --costs, not both: costs are measured or read from a file.")
    if queries is not None and index is None:
        raise ParameterError("--queries says what to measure costs with, which needs --index.")
    if costs is not None:
        return read_costs(costs)
    if index is None:
        return FeatureCosts()
    from rankwell.features.cost_measurement import index_costs
    from rankwell.features.feature_set import FeatureSet
    from rankwell.features.queries import read_queries
    from rankwell.index.query.query import parse_query
    from rankwell.index.reader import Index

    if train.feature_names is None:
        raise DataError(
            "the data has no feature names, so costs cannot be measured on an index. Use what `rankwell features` "
            "writes, or give --costs."
        )
    opened = Index.open(index)
    asked = None
    if queries is not None:
        asked = [parse_query(one.text, opened.analysis) for one in read_queries(queries, operators=False)]
    with progress_bar("measuring what features cost", quiet=quiet):
        return index_costs(opened, FeatureSet(train.feature_names), queries=asked)


def _show(ranker: Cascade, convention: str) -> None:
    full, chosen = ranker.full_, ranker.point_
    features = ["features 1", "features 2"]
    columns = ["", "cost (µs)", "of full", "keep", *features, ranker.eval_metric, "difference"]
    table = make_table(f"cascades on validation queries ({convention})", columns)
    rows = {id(point): point for point in (*ranker.curve_, chosen, full)}
    for point in sorted(rows.values(), key=lambda point: point.cost):
        marks = ["chosen"] * (point is chosen) + ["full ranker"] * (point is full)
        table.add_row(
            ", ".join(marks),
            f"{point.cost:,.1f}",
            f"{100 * point.cost / full.cost:.1f} %",
            "all" if point.keep is None else str(point.keep),
            str(len(point.first)) if point.keep is not None else "-",
            str(len(point.second)),
            metric_text(point.metric),
            f"{point.metric - full.metric:+.4f}",
        )
    show(table)
    if chosen.keep is not None:
        show(f"first pass: {', '.join(chosen.first)}")
