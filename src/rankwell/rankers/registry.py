"""The rankers by name: what `rankwell train NAME` and ranker files may say. Nothing else is ever loaded."""

from __future__ import annotations

import os
from importlib import import_module

from rankwell.errors import FileFormatError, ParameterError
from rankwell.rankers.base import Ranker
from rankwell.scoring.ranker_file import read_ranker_file

RANKERS = {
    "least-squares": ("rankwell.rankers.least_squares", "LeastSquares"),
    "rankboost": ("rankwell.rankers.rankboost", "RankBoost"),
    "listnet": ("rankwell.rankers.listnet", "ListNet"),
    "ranknet": ("rankwell.rankers.ranknet", "RankNet"),
    "lambdarank": ("rankwell.rankers.lambdarank", "LambdaRank"),
    "listmle": ("rankwell.rankers.listmle", "ListMLE"),
}


def ranker_class(name: str) -> type[Ranker]:
    """The class of the ranker called `name`."""
    if name not in RANKERS:
        raise ParameterError(f"there is no ranker called {name!r}. The rankers are {', '.join(RANKERS)}.")
    module, class_name = RANKERS[name]
    found: type[Ranker] = getattr(import_module(module), class_name)
    return found


def load(path: str | os.PathLike[str]) -> Ranker:
    """The ranker stored at `path`, ready to predict. No code from the file runs."""
    content = read_ranker_file(path)
    if content.ranker not in RANKERS:
        raise FileFormatError(
            f"{path} holds a {content.ranker!r} ranker, which this release does not know. "
            f"It knows {', '.join(RANKERS)}; upgrade rankwell if the file is newer."
        )
    return ranker_class(content.ranker).from_content(content, path)
