"""The rankers by name: the names that `rankwell train NAME` and ranker files may use. Nothing else is ever loaded."""

from __future__ import annotations

import os
from importlib import import_module

from rankwell.errors import FileFormatError, ParameterError
from rankwell.rankers.base import Ranker
from rankwell.scoring.ranker_file import RankerFile, read_ranker_file

RANKERS = {
    "least-squares": ("rankwell.rankers.least_squares", "LeastSquares"),
    "lambdamart": ("rankwell.rankers.lambdamart", "LambdaMART"),
    "rankboost": ("rankwell.rankers.rankboost", "RankBoost"),
    "listnet": ("rankwell.rankers.listnet", "ListNet"),
    "ranknet": ("rankwell.rankers.ranknet", "RankNet"),
    "lambdarank": ("rankwell.rankers.lambdarank", "LambdaRank"),
    "ranksvm": ("rankwell.rankers.ranksvm", "RankSVM"),
    "listmle": ("rankwell.rankers.listmle", "ListMLE"),
}

# Rankers that files may also contain, but that `rankwell train` does not train.
LOADED_ONLY = {
    "imported": ("rankwell.rankers.imported", "ImportedRanker"),
    "cascade": ("rankwell.rankers.cascade", "Cascade"),
    "made": ("rankwell.rankers.made", "MadeRanker"),
}


def ranker_class(name: str) -> type[Ranker]:
    """The class of the ranker called `name`."""
    if name not in RANKERS:
        raise ParameterError(f"there is no ranker called {name!r}. The rankers are {', '.join(RANKERS)}.")
    return _class_at(*RANKERS[name])


def load(path: str | os.PathLike[str]) -> Ranker:
    """The ranker stored at `path`, ready to predict. No code from the file runs.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> ranker = rankwell.LeastSquares().fit(data)
    >>> ranker.save("model.rank")
    >>> again = rankwell.load("model.rank")
    >>> bool((again.predict(data) == ranker.predict(data)).all())
    True
    """
    content = _read(path)
    known = RANKERS | LOADED_ONLY
    if content.ranker not in known:
        raise FileFormatError(
            f"{path} contains a ranker of the kind {content.ranker!r}, which this release does not know. "
            f"It knows {', '.join(known)}; upgrade rankwell if the file is newer."
        )
    return _class_at(*known[content.ranker]).from_content(content, path)


def _read(path: str | os.PathLike[str]) -> RankerFile:
    """The file's content; if another library wrote it, the error says how to import it."""
    try:
        return read_ranker_file(path)
    except FileFormatError as cause:
        from rankwell.scoring.imports.reader import model_format

        found = model_format(path) if os.path.isfile(path) else None
        if found is not None:
            raise FileFormatError(
                f"{path} is {found.title}, not a ranker file. Import it: "
                "rankwell.ImportedRanker.from_model(path), or on the command line rankwell import MODEL OUT."
            ) from cause
        raise


def _class_at(module: str, class_name: str) -> type[Ranker]:
    found: type[Ranker] = getattr(import_module(module), class_name)
    return found
