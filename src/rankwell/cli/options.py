"""Options that several commands share, so that their names and help are the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_METRICS = "ndcg@1,ndcg@5,ndcg@10,map"
# rankwell.metrics.conventions.DEFAULT, written here so that --help need not import it.
DEFAULT_CONVENTION = "burges"
# rankwell.data.candidates.N_CANDIDATES, written here for the same reason.
DEFAULT_CANDIDATES = 100
# The names of rankwell.rankers.registry.RANKERS, written here so that the Tab key answers at once.
RANKER_NAMES = ("least-squares", "lambdamart", "rankboost", "listnet", "ranknet", "lambdarank", "ranksvm", "listmle")

# Those of rankwell.metrics.conventions.CONVENTIONS and rankwell.scoring.exports.formats.FORMATS, for the same reason.
CONVENTION_NAMES = ("letor4", "mslr", "gbdt", "catboost", "trec", "sklearn", "burges")
EXPORT_FORMATS = (
    "onnx",
    "ranklib",
    "opensearch",
    "opensearch-ranklib",
    "opensearch-features",
    "vespa",
    "lightgbm",
    "c",
)


def given_path(text: str) -> Path:
    """A path of a command line. An empty one, often an unset shell variable, would mean the current folder."""
    if not text:
        raise typer.BadParameter("the path is empty. Give the path of a file or folder, or . for the current folder.")
    return Path(text)


# Help shows the name of what reads a value as its type: INDEX <path>.
given_path.__name__ = "path"


def complete_ranker(incomplete: str) -> list[str]:
    """The names of rankers that begin so, for the Tab key."""
    return [name for name in RANKER_NAMES if name.startswith(incomplete)]


def complete_convention(incomplete: str) -> list[str]:
    return [name for name in CONVENTION_NAMES if name.startswith(incomplete)]


def complete_export_format(incomplete: str) -> list[str]:
    return [name for name in EXPORT_FORMATS if name.startswith(incomplete)]


RankerArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The ranker; `rankwell info` lists them.", autocompletion=complete_ranker),
]
MetricsOption = Annotated[
    str,
    typer.Option(
        "--metrics",
        metavar="NAMES",
        help="What to measure, separated by commas: ndcg@K, map, mrr, p@K, recall@K, err, pairwise_accuracy, ...",
    ),
]
ConventionOption = Annotated[
    str,
    typer.Option(
        "--convention",
        metavar="NAME",
        help="The metrics' convention: letor4, mslr, gbdt, catboost, trec, sklearn or burges; every figure names it.",
        autocompletion=complete_convention,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A parameter of the ranker. Can be repeated.",
        show_default=False,
    ),
]
NormalizeOption = Annotated[
    str | None,
    typer.Option(
        "--normalize",
        metavar="NAME",
        help="How features are normalised: auto, none, standard, query-minmax or letor; as --set normalize=NAME.",
        show_default=False,
    ),
]
QrelsOption = Annotated[
    Path | None,
    typer.Option(
        "--qrels",
        metavar="FILE",
        help="All judgments, in TREC's format: judged documents that the data lacks count as missed, as in trec_eval.",
        show_default=False,
    ),
]
SkipOption = Annotated[
    bool,
    typer.Option("--skip-bad-lines", help="Leave out lines of the data that break the format, and say how many."),
]
LabelOption = Annotated[
    str, typer.Option("--label", metavar="COLUMN", help="The column of labels in CSV, Parquet or Feather data.")
]
QidOption = Annotated[
    str, typer.Option("--qid", metavar="COLUMN", help="The column of query ids in CSV, Parquet or Feather data.")
]
MemoryLimitOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="For data larger than memory (rankboost, ranksvm, lambdamart): keep it in temporary files, and use at "
        "most this much memory, such as 4GiB. The model is the same.",
        show_default=False,
    ),
]
ScratchOption = Annotated[
    Path | None,
    typer.Option(
        "--scratch",
        metavar="FOLDER",
        parser=given_path,
        help="The folder of the temporary files of --memory; by default the system's.",
        show_default=False,
    ),
]
StopAfterOption = Annotated[
    int | None,
    typer.Option(
        "--stop-after",
        metavar="N",
        min=1,
        help="Look only at the first documents in the index's --static-order, of which about N match: quicker, and "
        "others are lost.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs, and nothing else, on stdout.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no progress bars on stderr.")]
