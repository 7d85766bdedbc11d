"""What users do with results: which were shown, which were clicked, which were voted for."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from rankwell.clicks.position_bias import exchanged_neighbours
from rankwell.clicks.use_log import UseLog
from rankwell.serving.log_losses import LogLosses
from rankwell.serving.votes import QueryNames, Votes

# How many of the impressions shown last can be clicked.
_IMPRESSIONS_REMEMBERED = 100_000


class Use:
    """The use log and the judgments of a server, each only if it has a path.

    Beside each is a file with the texts of the queries that it names: of `use.jsonl`, `use.queries.tsv`.

    Parameters
    ----------
    exchanges : bool
        Whether neighbouring results are exchanged at random before they are shown, so that position bias can be
        estimated from the log.

    Attributes
    ----------
    losses : impressions that the use log could not keep
    queries_paths : the files with the texts of queries
    """

    def __init__(
        self,
        use_log: str | os.PathLike[str] | None = None,
        judgments: str | os.PathLike[str] | None = None,
        *,
        exchanges: bool = False,
    ) -> None:
        self._random = np.random.default_rng() if exchanges else None
        self._log = None if use_log is None else UseLog(use_log)
        # Two files that differ in their suffix only have their queries in one file.
        names_at = cache(QueryNames)
        self._queries = None if use_log is None else names_at(_queries_path(use_log))
        self.votes = None if judgments is None else Votes(judgments, names_at(_queries_path(judgments)))
        given = [path for path in (use_log, judgments) if path is not None]
        self.queries_paths = tuple(dict.fromkeys(map(_queries_path, given)))
        self.losses = LogLosses("use log")
        self._shown: OrderedDict[str, frozenset[str]] = OrderedDict()

    @property
    def has_log(self) -> bool:
        return self._log is not None

    def order(self, n_results: int) -> list[int] | None:
        """The places of the results, in the order in which they are shown; None if nothing is exchanged."""
        if self._log is None or self._random is None:
            return None
        return exchanged_neighbours(n_results, self._random).tolist()

    def show(self, query: str, documents: Sequence[str]) -> str | None:
        """Log results as they were shown, from the first place on; returns the impression, None if none was logged."""
        log, queries = self._log, self._queries
        if log is None or queries is None or not documents:
            return None
        impression = self.losses.attempt(lambda: log.add_shown(queries.add(query), documents))
        if impression is None:
            return None
        self._shown[impression] = frozenset(documents)
        if len(self._shown) > _IMPRESSIONS_REMEMBERED:
            self._shown.popitem(last=False)
        return impression

    def was_shown(self, impression: str, document: str) -> bool:
        """Whether it can be clicked: whether the document is of the impression, and that is one of the last."""
        return document in self._shown.get(impression, ())

    def click(self, impression: str, document: str) -> None:
        """Log a click on what was shown; any other would make the log unreadable."""
        if self._log is not None and self.was_shown(impression, document):
            self._log.add_click(impression, document)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def _queries_path(path: str | os.PathLike[str]) -> Path:
    """The file of queries of a log: its name says whose it is, and is not one that users give to files of theirs."""
    log = Path(path)
    return log.with_name(f"{log.stem}.queries.tsv").resolve()
