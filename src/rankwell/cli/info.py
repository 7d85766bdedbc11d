"""`rankwell info`: what is in a data file or a ranker file, or what this machine can run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwell.cli.console import print_json, show, show_log
from rankwell.cli.feature_costs import show_costs
from rankwell.cli.figures import counted, jsonable, metric_text, parameters_text, value_text
from rankwell.cli.inputs import Reading, is_ranker, load_ranker, read_data
from rankwell.cli.options import JsonOption, LabelOption, QidOption, QuietOption, SkipOption
from rankwell.errors import DataError

_NAMES_SHOWN = 8


def info(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH|NAME]",
            help="A data file (- is stdin), a ranker file, an index, or the name of a ranker.",
            show_default=False,
        ),
    ] = None,
    label: LabelOption = "label",
    qid: QidOption = "qid",
    skip_bad_lines: SkipOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Describe a data file, a ranker file or a ranker's parameters; by default, this machine and the rankers.

    Of an index, it measures what each feature costs on this machine.

    Example: rankwell info train.txt
    """
    from rankwell.cli.summaries import summarise_class, summarise_data, summarise_machine, summarise_ranker
    from rankwell.index.commits.manifest import MANIFEST_NAME
    from rankwell.rankers.registry import RANKERS, ranker_class

    show_log(quiet=quiet)
    if path is None:
        summary = summarise_machine()
        rows = _machine_rows(summary)
    elif str(path) in RANKERS and not path.exists():
        summary = summarise_class(ranker_class(str(path)))
        rows = _class_rows(summary)
    elif str(path) != "-" and not path.exists() and path.name == str(path) and not path.suffix:
        raise DataError(f"there is no file {path} and no ranker of that name. The rankers are {', '.join(RANKERS)}.")
    elif path.is_dir() and (path / MANIFEST_NAME).exists():
        show_costs(path, as_json=as_json, quiet=quiet)
        return
    elif is_ranker(path):
        summary = {"file": str(path), **summarise_ranker(load_ranker(path))}
        rows = _ranker_rows(summary)
    else:
        dataset = read_data(path, Reading(skip_bad_lines, label, qid), quiet=quiet)
        summary = {"file": str(path), **summarise_data(dataset)}
        rows = _data_rows(summary)
    if as_json:
        print_json(jsonable(summary))
    else:
        _print(rows)


def _machine_rows(summary: Mapping[str, Any]) -> dict[str, str]:
    rows = {
        "rankwell": f"{summary['rankwell']} (Python {summary['python']}, NumPy {summary['numpy']})",
        "rankers": ", ".join(summary["rankers"]),
    }
    for kind, device in summary["devices"].items():
        rows[kind] = device["description"] if device["usable"] else f"not usable: {device['description']}"
    return rows


def _data_rows(summary: Mapping[str, Any]) -> dict[str, str]:
    labels = summary["labels"]
    rows = {
        "file": summary["file"],
        "documents": f"{summary['n_docs']:,}",
        "queries": f"{summary['n_queries']:,}{_spread_text(summary['query_sizes'], ' documents each')}",
        "features": f"{summary['n_features']:,}{' (sparse)' if summary['sparse'] else ''}",
        "labels": "none" if labels is None else f"{labels['n_levels']:,} levels{_spread_text(labels, '')}",
        "missing values": f"{summary['missing_values']:,}",
        "comments": "yes" if summary["comments"] else "no",
    }
    if labels is not None and "counts" in labels:
        rows["labels"] = ", ".join(f"{count:,} of {level}" for level, count in labels["counts"].items())
    if summary["feature_names"] is not None:
        rows["feature names"] = _names_text(summary["feature_names"])
    return rows


def _ranker_rows(summary: Mapping[str, Any]) -> dict[str, str]:
    rows = {
        "file": summary["file"],
        "ranker": summary["ranker"],
        "parameters": parameters_text(summary["parameters"]),
        "features": f"{summary['n_features']:,}: {_names_text(summary['feature_names'])}",
        "normaliser": summary["normaliser"],
        "model": f"{counted(summary['n_inputs'], 'input')}, layers: {', '.join(summary['layers'])}",
        "training steps": f"{summary['training_steps']:,}",
    }
    if summary["chosen"]:
        rows["chosen"] = parameters_text(summary["chosen"])
    if summary["path"] is not None:
        rows["path of C"] = ", ".join(
            f"{point['C']:.6g}: {metric_text(point['validation'])}" for point in summary["path"]
        )
    best = summary["best_step"]
    if best is not None:
        rows["best step"] = f"{best['step']:,} ({best['figure']} {metric_text(best['value'])})"
    convention = summary["metrics"].get("convention")
    for part, figures in summary["metrics"].items():
        if part == "cascade":
            rows |= _cascade_rows(figures)
        elif isinstance(figures, Mapping):
            rows[part] = _figures_text(figures, convention)
    return rows


def _cascade_rows(report: Mapping[str, Any]) -> dict[str, str]:
    """The passes of a cascade, and what they cost."""
    chosen, full = report["chosen"], report["full"]
    rows = {
        "cost": f"{chosen['cost']:,.1f} µs a query; the full ranker {full['cost']:,.1f} "
        f"({report['metric']} {metric_text(full['metric'])})",
        "costs": report["costs"],
    }
    if chosen["keep"] is not None:
        rows["first pass"] = f"keeps {chosen['keep']}, reads {', '.join(chosen['first'])}"
    return rows


def _class_rows(summary: Mapping[str, Any]) -> dict[str, str]:
    rows = {"ranker": summary["ranker"], "": f"{summary['description']}\n", "by default": "what it does"}
    for name, default in summary["parameters"].items():
        text = summary["settings"][name]
        rows[f"{name}={value_text(default)}"] = f"{text['values']}. {text['meaning']}"
    return rows


def _figures_text(figures: Mapping[str, Any], convention: str | None) -> str:
    """Metrics with their convention; other notes as they are."""
    if convention is None:
        return parameters_text(figures)
    shown = ", ".join(f"{name} {_figure_text(figures[name])}" for name in sorted(figures, key=_metric_order))
    return f"{shown} (convention {convention})"


def _figure_text(value: Any) -> str:
    """A metric as it is printed; whatever else a file has in its place, as it is."""
    return metric_text(value) if value is None or isinstance(value, float) else value_text(value)


def _metric_order(name: str) -> tuple[str, int]:
    """ndcg@5 before ndcg@10."""
    family, _, cutoff = name.partition("@")
    return family, int(cutoff) if cutoff.isdecimal() and len(cutoff) < 10 else 0


def _spread_text(spread: Mapping[str, float], what: str) -> str:
    if not spread:
        return ""
    return f", {spread['least']:g} to {spread['most']:g}{what} (median {spread['median']:g})"


def _names_text(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown}, ..., {names[-1]}"


def _print(rows: Mapping[str, str]) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows.items():
        table.add_row(name, text)
    show(table)
