"""How often each document of each query was shown and clicked at each position."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rankwell.clicks.use_log import Impression, read_impressions
from rankwell.errors import DataError


@dataclass(frozen=True, eq=False)
class ClickCounts:
    """Counts by (document of a query, position), sorted.

    query_ids, document_ids : of each document of a query, (n_items,)
        The same document has one item in each query for which it was shown.
    item : int64 (n_counts,), of the count
    position : int64 (n_counts,), 1 is the first place
    shown, clicked : int64 (n_counts,)
    """

    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    item: np.ndarray
    position: np.ndarray
    shown: np.ndarray
    clicked: np.ndarray

    @property
    def n_items(self) -> int:
        return len(self.query_ids)

    @property
    def n_positions(self) -> int:
        return int(self.position.max(initial=0))

    def by_item(self, values: np.ndarray) -> np.ndarray:
        """Sums of the counts' values, float64 (n_items,)."""
        return np.bincount(self.item, weights=values, minlength=self.n_items)


def read_click_counts(
    path: str | os.PathLike[str], *, on_bad_line: str = "error", for_judgments: bool = False
) -> ClickCounts:
    """The counts of a use log; parameters as those of `read_impressions`."""
    return count_clicks(read_impressions(path, on_bad_line=on_bad_line, for_judgments=for_judgments))


def count_clicks(impressions: Iterable[Impression]) -> ClickCounts:
    """The counts of these impressions."""
    items: dict[tuple[str, str], int] = {}
    shown: Counter[tuple[int, int]] = Counter()
    clicked: Counter[tuple[int, int]] = Counter()
    for impression in impressions:
        for position, document in enumerate(impression.document_ids, start=1):
            key = items.setdefault((impression.query_id, document), len(items)), position
            shown[key] += 1
            clicked[key] += document in impression.clicked
    if not shown:
        raise DataError("the log contains no results that were shown.")
    keys = sorted(shown)
    item, position = np.array(keys, dtype=np.int64).T
    return ClickCounts(
        query_ids=tuple(query for query, _ in items),
        document_ids=tuple(document for _, document in items),
        item=item,
        position=position,
        shown=np.array([shown[key] for key in keys], dtype=np.int64),
        clicked=np.array([clicked[key] for key in keys], dtype=np.int64),
    )
