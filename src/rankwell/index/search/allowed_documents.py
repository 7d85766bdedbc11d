"""Which documents of each segment may be found: live ones that meet a query's conditions.

The documents that meet a filter are kept for later queries with the same filter, up to `MOST_BYTES` for each index.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.index.query.tree import Node
from rankwell.index.search.matching import Matching

if TYPE_CHECKING:
    from rankwell.index.reader import Index

# Where fewer than one in this many documents may be found, each of them is looked up.
SPARSE = 32
MOST_BYTES = 2**26


class Allowed(NamedTuple):
    """Documents of a segment.

    marks : uint8 (n_docs,), read-only, 1 where a document may be found; (0,) if all may be
    chosen : int32, read-only, their numbers if they are few; (0,) otherwise
    """

    marks: np.ndarray
    chosen: np.ndarray


_MARKS, _CHOSEN = np.empty(0, np.uint8), np.empty(0, np.int32)
for _array in (_MARKS, _CHOSEN):
    _array.flags.writeable = False
EVERYTHING = Allowed(_MARKS, _CHOSEN)

# Threads share an index.
_lock = Lock()
_filters: WeakKeyDictionary[Index, OrderedDict[Node, list[Allowed]]] = WeakKeyDictionary()


def live_documents(index: Index) -> list[Allowed]:
    """The live documents of each segment."""
    return [EVERYTHING if live is None else Allowed(_read_only(live), _CHOSEN) for live in index.live]


def filtered_documents(index: Index, wanted: Node | None) -> list[Allowed]:
    """The live documents of each segment that meet a filter, kept for later; None is no filter."""
    if wanted is None:
        return live_documents(index)
    with _lock:
        known = _filters.setdefault(index, OrderedDict())
        found = known.get(wanted)
        if found is not None:
            known.move_to_end(wanted)
            return found
    found = allowed_documents(index, live_documents(index), wanted, Matching(index.schema))
    with _lock:
        known[wanted] = found
        while len(known) > 1 and len(known) * int(index.bases[-1]) > MOST_BYTES:
            known.popitem(last=False)
    return found


def forget_filters(index: Index) -> None:
    """Drop the documents of filters that are kept for an index."""
    _filters.pop(index, None)


def allowed_documents(
    index: Index, among: Sequence[Allowed], condition: Node | None, matching: Matching
) -> list[Allowed]:
    """Those of the documents `among` that meet a condition, in each segment; None is no condition."""
    if condition is None:
        return list(among)
    return [_of_marks(marks) for marks in marked_documents(index, among, condition, matching)]


def marked_documents(
    index: Index, among: Sequence[Allowed], condition: Node, matching: Matching
) -> Iterator[np.ndarray]:
    """For each segment bool (n_docs,): which of the documents `among` meet a condition."""
    for segment, allowed in zip(index.segments, among, strict=True):
        marks = matching.marks(segment, condition)
        if len(allowed.marks):
            marks &= allowed.marks
        # NumPy counts and lists booleans many times faster than bytes.
        yield marks.view(np.bool_)


def count_documents(index: Index, among: Sequence[Allowed], condition: Node, matching: Matching) -> int:
    """How many of the documents `among` meet a condition."""
    if any(len(allowed.marks) for allowed in among):
        return sum(int(np.count_nonzero(marks)) for marks in marked_documents(index, among, condition, matching))
    return sum(matching.count(segment, condition) for segment in index.segments)


def only_these(docs: np.ndarray, n_docs: int) -> Allowed:
    """These documents of a segment, int32, ascending, and no others."""
    marks = np.zeros(n_docs, np.uint8)
    marks[docs] = 1
    return Allowed(_read_only(marks), _read_only(docs))


def all_but(allowed: Allowed, docs: np.ndarray, n_docs: int) -> Allowed:
    """The allowed documents of a segment without these."""
    marks = allowed.marks.copy() if len(allowed.marks) else np.ones(n_docs, np.uint8)
    marks[docs] = 0
    return Allowed(_read_only(marks), _read_only(allowed.chosen[marks[allowed.chosen] != 0]))


def _of_marks(marks: np.ndarray) -> Allowed:
    chosen = _CHOSEN if np.count_nonzero(marks) * SPARSE >= len(marks) else np.flatnonzero(marks).astype(np.int32)
    return Allowed(_read_only(marks.view(np.uint8)), _read_only(chosen))


def _read_only(array: np.ndarray) -> np.ndarray:
    """Kernels are compiled for arrays that are not written to."""
    view = array.view()
    view.flags.writeable = False
    return view
