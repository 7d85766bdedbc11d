"""A segment's columns: the values of a field, one or more for each document, to filter, sort and count by."""

from __future__ import annotations

from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.index.segments.keyword_columns import MISSING, KeywordColumn
from rankwell.index.segments.segment import Segment
from rankwell.index.segments.structure import forged

_numbers: WeakKeyDictionary[Segment, dict[int, np.ndarray]] = WeakKeyDictionary()
_keywords: WeakKeyDictionary[Segment, dict[int, KeywordColumn]] = WeakKeyDictionary()


def number_column(segment: Segment, static: int) -> np.ndarray | None:
    """The values of a static (by its number), float64 (n_docs,), NaN where one is missing; None if all are.

    Segments keep the statics of a document together; a column that is used is kept as an array of its own.
    """
    if static >= segment.n_statics:
        return None
    known = _numbers.setdefault(segment, {})
    if static not in known:
        table = segment["documents.statics"].reshape(segment.n_docs, segment.n_statics)
        known[static] = np.ascontiguousarray(table[:, static])
    return known[static]


def keyword_column(segment: Segment, field: int) -> KeywordColumn | None:
    """A keyword field (by its number), checked; None if the segment has no values of it. Entries stay mapped."""
    if field >= segment.n_keywords:
        return None
    known = _keywords.setdefault(segment, {})
    if field not in known:
        known[field] = _read_keywords(segment, field)
    return known[field]


def _read_keywords(segment: Segment, field: int) -> KeywordColumn:
    text, offsets = segment["keywords.text"].tobytes(), segment["keywords.offsets"]
    first_value, first_entry = segment["keywords.first_value"], segment["keywords.first_entry"]
    bounds = offsets[first_value[field] : first_value[field + 1] + 1].tolist()
    values = [text[start:stop] for start, stop in pairwise(bounds)]
    if not all(_is_text(value) for value in values):
        raise forged(segment, f"a value of keyword field {field} is not text")
    entries = segment["keywords.entries"][first_entry[field] : first_entry[field + 1]]
    sizes = np.diff(first_entry)
    pointer = None
    if len(entries) != segment.n_docs:
        # The fields before this one that have pointers, too.
        start = int(np.count_nonzero(sizes[:field] != segment.n_docs)) * (segment.n_docs + 1)
        pointer = segment["keywords.entry_ptr"][start : start + segment.n_docs + 1]
        sound = len(pointer) == segment.n_docs + 1 and pointer[0] == 0 and pointer[-1] == len(entries)
        if not sound or (pointer[1:] <= pointer[:-1]).any():
            raise forged(segment, f"the documents of keyword field {field} do not have entries in order")
    if len(entries) and (entries.min() < MISSING or entries.max() >= len(values)):
        raise forged(segment, f"an entry of keyword field {field} is not the number of a value")
    return KeywordColumn(values, entries, pointer)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
