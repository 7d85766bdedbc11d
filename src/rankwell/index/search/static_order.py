"""Documents in the falling order of a static (a link score, a date), and how far a search goes that stops early.

An index with a static order (`Schema(static_order=…)`) numbers the documents of each segment in it. A search that may
stop early reads only the beginnings of posting lists, as far as enough documents match, and finds the best of these:
the best of the collection are among them as far as the static says which are good. What is lost is measured in
docs/guide/search.md. The result does not depend on how documents are spread over segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.errors import ParameterError
from rankwell.index.segments.columns import number_column
from rankwell.index.segments.segment import Segment

if TYPE_CHECKING:
    from rankwell.index.reader import Index


_ranks: WeakKeyDictionary[Index, list[np.ndarray]] = WeakKeyDictionary()


class Examined(NamedTuple):
    """The best of the documents that a search looked at.

    docs, scores : the best k, best first
    n_examined : how many live documents come before the end of the search; stopped : whether there are others
    """

    docs: np.ndarray
    scores: np.ndarray
    n_examined: int
    stopped: bool


def falling_order(segment: Segment, static: int) -> np.ndarray | None:
    """The segment's documents by falling values of a static, without one last, equal ones as they are: int64 (n_docs,).

    None if that is their order already.
    """
    values = number_column(segment, static)
    if values is None:
        return None
    order = np.lexsort((-values, np.isnan(values)))
    return None if (order == np.arange(len(order))).all() else order


def ordering_static(index: Index) -> int:
    """The number of the static that orders the index's documents; ParameterError if none does."""
    name = index.schema.static_order
    if name is None:
        raise ParameterError(
            "needs an index whose documents have a static order: build it with `rankwell index build --static-order "
            "NAME`, or Schema(static_order=NAME).",
            parameter="stop_after",
        )
    return index.schema.statics.index(name)


def first_of_segments(index: Index, n: int) -> list[int]:
    """How many documents of each segment are among the first n of the index: by the static, then by number."""
    if len(index.segments) == 1:
        return [n]
    return [int(np.searchsorted(ranks, n)) for ranks in _ranks_of(index)]


def live_among(index: Index, reach: list[int]) -> int:
    """How many of the segments' first documents are live."""
    live = zip(index.live, reach, strict=True)
    return sum(n if alive is None else int(np.count_nonzero(alive[:n])) for alive, n in live)


def _ranks_of(index: Index) -> list[np.ndarray]:
    """For each segment its documents' ranks among all of the index, ascending."""
    known = _ranks.get(index)
    if known is None:
        known = _ranks[index] = ranks_among_all(_values(index))
    return known


def falling_values(index: Index) -> np.ndarray:
    """The values that order an index's documents, in that order, NaN for those without one: float64 (n,)."""
    values = np.concatenate([np.empty(0), *_values(index)])
    return values[np.lexsort((-values, np.isnan(values)))]


def ranks_among_all(parts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """For each part of a collection (a segment, a shard) its documents' ranks among those of all parts.

    parts : the ordering values of each part's documents; equal ones are in the order of the parts
    """
    together = np.concatenate([np.empty(0), *parts])
    ranks = np.empty(len(together), np.int64)
    ranks[np.lexsort((-together, np.isnan(together)))] = np.arange(len(together))
    # An index without documents has no parts, which `np.split` does not make.
    ends = np.cumsum([len(own) for own in parts], dtype=np.int64).tolist()
    return [ranks[end - len(own) : end] for own, end in zip(parts, ends, strict=True)]


def _values(index: Index) -> list[np.ndarray]:
    """For each segment the ordering values of its documents."""
    static = ordering_static(index)
    values = [np.full(segment.n_docs, np.nan) for segment in index.segments]
    for own, segment in zip(values, index.segments, strict=True):
        column = number_column(segment, static)
        if column is not None:
            own[:] = column
    return values
