"""Documents of another system's run that the index lacks: left out, counted, and told at the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from rankwell.index.reader import Index

logger = logging.getLogger(__name__)

_NAMED = 5


class AbsentCandidates:
    """What an index lacks of a run, over all queries."""

    def __init__(self) -> None:
        self._documents: dict[str, None] = {}
        self._bereft_queries: list[str] = []
        self._n_absent = self._n_given = 0

    def numbers(self, index: Index, query_id: str, names: Sequence[str]) -> np.ndarray:
        """The documents of a query's run that the index has, in the run's order: int64."""
        docs = np.array([index.find(name) for name in names], np.int64)
        absent = [name for name, doc in zip(names, docs.tolist(), strict=True) if doc < 0]
        self._documents |= dict.fromkeys(absent)
        self._n_given += len(names)
        self._n_absent += len(absent)
        if absent and len(absent) == len(names):
            self._bereft_queries.append(query_id)
        return docs[docs >= 0]

    def warn(self) -> None:
        """Log what was left out, if anything was."""
        if not self._n_absent:
            return
        queries = self._bereft_queries
        left = f" Queries that have no other documents: {len(queries)}, {_named(queries)}." if queries else ""
        logger.warning(
            "the run's documents must be in the index: %d of %d are not and were left out, of the ids %s.%s Check that "
            "the run is of this collection, and that both write ids alike.",
            self._n_absent,
            self._n_given,
            _named(list(self._documents)),
            left,
        )


def _named(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:_NAMED])) + (", ..." if len(names) > _NAMED else "")
