"""The first k of the documents that match, by the values of fields instead of scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankwell.errors import ParameterError
from rankwell.index.segments.columns import keyword_column, number_column
from rankwell.index.segments.keyword_columns import MISSING
from rankwell.index.segments.segment import Segment

if TYPE_CHECKING:
    from rankwell.index.reader import Index
    from rankwell.index.schema import Schema


# A number, a keyword, or None for a document without a value.
SortValue = float | bytes | None


class SortedDocuments(NamedTuple):
    """docs : int64 (n,), document numbers; values : those of each document that it is sorted by, one for each key"""

    docs: np.ndarray
    values: list[tuple[SortValue, ...]]


class SortKey(NamedTuple):
    """A static, date or keyword field, and whether its largest values come first."""

    field: str
    is_descending: bool


def sort_keys(sort: str | Sequence[str], schema: Schema) -> tuple[SortKey, ...]:
    """The keys of ``"year"``, ``"year:desc"`` or several of them; ParameterError if a field cannot be sorted by."""
    if not isinstance(sort, Iterable):
        raise ParameterError(f"must be fields as year or year:desc, got {sort!r}.", parameter="sort")
    keys = []
    for written in filter(None, sort.split(",")) if isinstance(sort, str) else sort:
        field, colon, direction = written.rpartition(":") if isinstance(written, str) else ("", "", "")
        if not colon or direction not in ("asc", "desc"):
            field, direction = str(written), "asc"
        kind = schema.kind_of(field)
        if kind is None or kind == "stream":
            what = "holds text" if kind else "does not exist"
            allowed = ", ".join([*schema.statics, *schema.keywords]) or "none"
            raise ParameterError(
                f"must be fields as year or year:desc; {field!r} {what}, it can be sorted by: {allowed}.",
                parameter="sort",
            )
        keys.append(SortKey(field, direction == "desc"))
    return tuple(keys)


def first_documents(index: Index, matches: Sequence[np.ndarray], keys: Sequence[SortKey], k: int) -> SortedDocuments:
    """The first k documents. Those without a value come last, equal ones in their order.

    matches : for each segment the numbers of its documents that match, ascending
    """
    found: list[tuple[int, tuple[SortValue, ...]]] = []
    for number, (segment, docs) in enumerate(zip(index.segments, matches, strict=True)):
        ranks = [_ranks(segment, key, index.schema) for key in keys]
        for place in _smallest([own[docs] for own in ranks], k).tolist():
            doc = int(docs[place])
            values = (_value(segment, key, float(own[doc]), index.schema) for key, own in zip(keys, ranks, strict=True))
            found.append((int(index.bases[number]) + doc, tuple(values)))
    # The sort is stable, and documents of equal values have come in their order.
    found.sort(key=lambda one: comparable(one[1], keys))
    return SortedDocuments(np.array([doc for doc, _ in found[:k]], np.int64), [values for _, values in found[:k]])


def comparable(values: Sequence[SortValue], keys: Sequence[SortKey]) -> tuple[Any, ...]:
    """What ascends as documents with these values are to be sorted, whichever segment or shard they are of."""
    return tuple(_comparable(value, key.is_descending) for value, key in zip(values, keys, strict=True))


def _smallest(columns: Sequence[np.ndarray], k: int) -> np.ndarray:
    """The places of the k smallest rows, in order; of equal ones the earlier."""
    places = np.arange(len(columns[0]))
    if k < len(places):
        # Rows whose first value is above the k-th smallest cannot be among them.
        places = np.flatnonzero(columns[0] <= np.partition(columns[0], k - 1)[k - 1])
    order = np.lexsort((places, *(column[places] for column in reversed(columns))))
    return places[order[:k]]


def _ranks(segment: Segment, key: SortKey, schema: Schema) -> np.ndarray:
    """A number for each document of a segment, float64 (n_docs,), that ascends as the key orders; missing: infinite."""
    if key.field in schema.statics:
        values = number_column(segment, schema.statics.index(key.field))
        if values is None:
            return np.full(segment.n_docs, np.inf)
        return np.where(np.isnan(values), np.inf, -values if key.is_descending else values)
    column = keyword_column(segment, schema.keyword_number(key.field))
    if column is None:
        return np.full(segment.n_docs, np.inf)
    entries = column.entries
    if column.entry_ptr is not None:
        # Entries ascend: the first is the smallest value, the last the largest.
        entries = entries[column.entry_ptr[1:] - 1] if key.is_descending else entries[column.entry_ptr[:-1]]
    ordinals = entries.astype(np.float64)
    return np.where(entries == MISSING, np.inf, -ordinals if key.is_descending else ordinals)


class _Descending(bytes):
    """A keyword that sorts before smaller ones."""

    def __lt__(self, other: bytes) -> bool:
        return bytes(self) > bytes(other)


def _comparable(value: SortValue, is_descending: bool) -> tuple[bool, float | bytes]:
    """(Whether it is missing, the value)."""
    if value is None:
        return True, 0.0
    if not is_descending:
        return False, value
    return False, _Descending(value) if isinstance(value, bytes) else -value


def _value(segment: Segment, key: SortKey, rank: float, schema: Schema) -> SortValue:
    """The value that has a rank."""
    if np.isinf(rank):
        return None
    if key.field in schema.statics:
        return -rank if key.is_descending else rank
    column = keyword_column(segment, schema.keyword_number(key.field))
    assert column is not None
    return column.values[int(abs(rank))]
