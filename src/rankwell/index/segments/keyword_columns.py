"""Keyword columns of a segment: exact values, as a sorted dictionary and the numbers of each document's values.

The values of field f are ``keywords.text`` cut by ``keywords.offsets``, from first_value[f] to first_value[f + 1], in
the order of their bytes; a document holds their *ordinals*, counted within the field. Its *entries* are its ordinals,
ascending, or -1 if it has no value. Where every document has one entry, entry and document have the same number;
otherwise ``keywords.entry_ptr`` has the first entry of each document and the end (n_docs + 1 numbers), for the fields
that need it, one after another. All arrays are empty in a segment without keyword fields, as in those of format 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rankwell.index.segments.sink import SegmentSink

MISSING = -1


class KeywordColumn(NamedTuple):
    """The values of one field.

    values : the different ones, UTF-8, ascending
    entries : int32, ordinals, or -1; entry_ptr : int64 (n_docs + 1,), None if every document has one entry
    """

    values: Sequence[bytes]
    entries: np.ndarray
    entry_ptr: np.ndarray | None

    def documents_of(self, entries: np.ndarray) -> np.ndarray:
        """The documents of entries, by their numbers."""
        if self.entry_ptr is None:
            return entries
        return np.searchsorted(self.entry_ptr, entries, side="right") - 1


class KeywordCollector:
    """Collects the keywords of documents, in their order."""

    def __init__(self) -> None:
        self._fields: list[_Collected] = []
        self.n_bytes = 0

    def add(self, doc: int, field: int, values: Iterable[bytes]) -> None:
        """Add the values of a document's field; a field without values needs no call."""
        while len(self._fields) <= field:
            self._fields.append(_Collected({}, [], []))
        collected = self._fields[field]
        for value in sorted(set(values)):
            if value not in collected.numbers:
                collected.numbers[value] = len(collected.numbers)
                self.n_bytes += len(value) + 100
            collected.docs.append(doc)
            collected.entries.append(collected.numbers[value])
            self.n_bytes += 16

    def columns(self, n_docs: int, n_fields: int) -> Iterable[KeywordColumn]:
        """The columns of all fields."""
        for field in range(n_fields):
            collected = self._fields[field] if field < len(self._fields) else _Collected({}, [], [])
            values = sorted(collected.numbers)
            ordinals = np.empty(len(values), np.int64)
            ordinals[[collected.numbers[value] for value in values]] = np.arange(len(values))
            numbers = np.array(collected.entries, np.int64)
            yield column_of(values, np.array(collected.docs, np.int64), ordinals[numbers], n_docs)


class _Collected(NamedTuple):
    """A field: its values by their first occurrence, and the document and the value of each entry."""

    numbers: dict[bytes, int]
    docs: list[int]
    entries: list[int]


def column_of(values: Sequence[bytes], docs: np.ndarray, ordinals: np.ndarray, n_docs: int) -> KeywordColumn:
    """A column from pairs of a document and an ordinal, in the order of documents and ordinals."""
    counts = np.bincount(docs, minlength=n_docs) if len(docs) else np.zeros(n_docs, np.int64)
    starts = np.concatenate(([0], np.cumsum(np.maximum(counts, 1)))).astype(np.int64)
    entries = np.full(int(starts[-1]), MISSING, np.int32)
    # The k-th pair of a document goes to its k-th entry.
    first_pair = np.concatenate(([0], np.cumsum(counts)))[:-1]
    entries[starts[docs] + np.arange(len(docs)) - first_pair[docs]] = ordinals
    return KeywordColumn(values, entries, None if len(entries) == n_docs else starts)


def write_columns(columns: Iterable[KeywordColumn], sink: SegmentSink) -> int:
    """Append the columns of a segment to a sink; returns how many there are."""
    n_fields = n_values = n_entries = end = 0
    for column in columns:
        if n_fields == 0:
            for name in ("keywords.offsets", "keywords.first_value", "keywords.first_entry"):
                sink.append(name, np.zeros(1, np.int64))
        ends = end + np.cumsum([len(value) for value in column.values], dtype=np.int64)
        sink.append("keywords.text", np.frombuffer(b"".join(column.values), np.uint8))
        sink.append("keywords.offsets", ends)
        end = int(ends[-1]) if len(ends) else end
        n_fields, n_values, n_entries = n_fields + 1, n_values + len(column.values), n_entries + len(column.entries)
        sink.append("keywords.first_value", np.array([n_values], np.int64))
        sink.append("keywords.first_entry", np.array([n_entries], np.int64))
        sink.append("keywords.entries", column.entries)
        if column.entry_ptr is not None:
            sink.append("keywords.entry_ptr", column.entry_ptr)
    return n_fields


def merge_columns(columns: Sequence[KeywordColumn | None], new_numbers: Sequence[np.ndarray]) -> KeywordColumn:
    """One field of several segments as one column of the live documents; values that none of them has are dropped.

    columns : of each segment, None where it has not the field
    new_numbers : for each segment int32 (n_docs,), the new number of a document, -1 for a deleted one
    """
    kept_docs, kept_values = [np.empty(0, np.int64)], list[bytes]()
    local: list[tuple[np.ndarray, Sequence[bytes]]] = []
    for column, numbers in zip(columns, new_numbers, strict=True):
        if column is None:
            continue
        entries = np.flatnonzero(column.entries != MISSING)
        docs = numbers[column.documents_of(entries)]
        ordinals = column.entries[entries[docs >= 0]]
        used = np.unique(ordinals)
        kept_docs.append(docs[docs >= 0].astype(np.int64))
        local.append((np.searchsorted(used, ordinals), [column.values[one] for one in used.tolist()]))
        kept_values += local[-1][1]
    values = sorted(set(kept_values))
    place = {value: number for number, value in enumerate(values)}
    ordinals = [
        np.array([place[value] for value in own], np.int64)[numbers] if own else np.empty(0, np.int64)
        for numbers, own in local
    ]
    n_docs = sum(int(np.count_nonzero(numbers >= 0)) for numbers in new_numbers)
    return column_of(values, np.concatenate(kept_docs), np.concatenate([np.empty(0, np.int64), *ordinals]), n_docs)
