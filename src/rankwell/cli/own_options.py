"""Options for your own features: where their values come from, the same in training and in serving."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.features.own_features import OwnFeatures

OwnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--own",
        metavar="FILE or NAME=MODULE:FUNCTION",
        help="Values of your own features: a Parquet, Feather or JSON-lines file with a column query, document or "
        "both, and one for each feature; or a Python function of a query and documents' ids. Can be repeated.",
        show_default=False,
    ),
]
QueryVectorsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--query-vectors",
        metavar="NAME=FILE or NAME=MODULE:FUNCTION",
        help="Vectors of queries, for dot.NAME and cosine.NAME of the index's vectors: a file with the columns query "
        "and vector, or a Python function of a query. Can be repeated.",
        show_default=False,
    ),
]
_FUNCTION = re.compile(r"(?P<name>[^=]+)=(?P<module>[A-Za-z_][\w.]*):(?P<function>[A-Za-z_][\w.]*)")


def given_own(own: Sequence[str], query_vectors: Sequence[str]) -> OwnFeatures | None:
    """The sources that options name; None without any."""
    if not own and not query_vectors:
        return None
    from rankwell.features.own_features import OwnFeatures

    functions = {found["name"]: _function(found, "own") for one in own if (found := _FUNCTION.fullmatch(one))}
    vectors: dict[str, Any] = {}
    for one in query_vectors:
        found, (name, equals, path) = _FUNCTION.fullmatch(one), one.partition("=")
        if not equals or not name:
            raise ParameterError(f"must be like embedding=FILE, got {one!r}.", parameter="query_vectors")
        vectors[name] = path if found is None else _function(found, "query_vectors")
    return OwnFeatures([one for one in own if not _FUNCTION.fullmatch(one)], functions, vectors)


def check_own(rankers: Mapping[str, Path], own: OwnFeatures | None) -> None:
    """Raise DataError if a ranker reads own features that no source has."""
    from rankwell.features.own_features import NOTHING
    from rankwell.scoring.ranker_file import read_ranker_file
    from rankwell.serving.ranking.ranked_search import features_of

    for path in rankers.values():
        (own or NOTHING).check(features_of(read_ranker_file(path).description))


def _function(found: re.Match[str], parameter: str) -> Any:
    """The function that MODULE:FUNCTION names; modules of the current folder are found too."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        value: Any = importlib.import_module(found["module"])
        for part in found["function"].split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as cause:
        raise ParameterError(f"names {found[0]!r}, which cannot be imported: {cause}.", parameter=parameter) from cause
    if not callable(value):
        raise ParameterError(f"names {found[0]!r}, which is not a function.", parameter=parameter)
    return value
