"""Facets: how many of the documents that match have each value of a field, or a value in each range."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwell.errors import ParameterError
from rankwell.index.query.values import number_of
from rankwell.index.segments.columns import keyword_column, number_column
from rankwell.index.segments.dates import date_span, date_text
from rankwell.index.segments.keyword_columns import MISSING
from rankwell.index.segments.segment import Segment
from rankwell.index.segments.structure import forged

if TYPE_CHECKING:
    from rankwell.index.reader import Index
    from rankwell.index.schema import Schema

Facets = dict[str, Counter[Hashable]]
# A field, and the edges of its ranges; None: each value by itself.
FacetKeys = Mapping[str, Sequence[Any] | None]


def written_facets(written: Iterable[str]) -> dict[str, list[str] | None]:
    """Fields with the edges of their ranges, from FIELD or FIELD=EDGE,EDGE,..."""
    keys: dict[str, list[str] | None] = {}
    for one in written:
        field, equals, edges = one.partition("=")
        keys[field] = edges.split(",") if equals else None
    return keys


def facet_keys(facets: Iterable[str] | Mapping[str, Sequence[Any] | None], schema: Schema) -> FacetKeys:
    """Fields with the edges of their ranges, checked; ParameterError if a field cannot be counted."""
    names = [facets] if isinstance(facets, str) else list(facets) if isinstance(facets, Iterable) else [facets]
    if not all(isinstance(name, str) for name in names):
        raise ParameterError(f"must be fields, or a mapping of fields to edges, got {facets!r}.", parameter="facets")
    keys = facets if isinstance(facets, Mapping) else dict.fromkeys(names)
    checked: dict[str, Sequence[Any] | None] = {}
    for field, edges in keys.items():
        kind = schema.kind_of(field)
        if kind is None or kind == "stream":
            what = "holds text" if kind else "does not exist"
            allowed = ", ".join([*schema.statics, *schema.keywords]) or "none"
            raise ParameterError(f"must be of {allowed}; {field!r} {what}.", parameter="facets")
        checked[field] = None if edges is None else _checked_edges(field, kind, edges)
    return checked


def _checked_edges(field: str, kind: str, edges: Sequence[Any]) -> list[float]:
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise ParameterError(f"of field {field!r} must have a list of edges, got {edges!r}.", parameter="facets")
    edges = list(edges)
    try:
        if kind == "keyword":
            raise ValueError("keywords have no ranges")
        numbers = [date_span(str(edge))[0] if kind == "date" else _edge(edge) for edge in edges]
    except (TypeError, ValueError) as cause:
        raise ParameterError(
            f"of field {field!r} cannot have the edges {edges!r}: {str(cause).removesuffix('.')}.", parameter="facets"
        ) from cause
    if len(numbers) < 2 or any(low >= high for low, high in pairwise(numbers)):
        raise ParameterError(
            f"of field {field!r} must have two edges or more that ascend, got {edges!r}.", parameter="facets"
        )
    return numbers


def _edge(written: Any) -> float:
    number = number_of(written)
    if math.isnan(number):
        raise ValueError(f"{written!r} is not a number")
    return number


def count_facets(index: Index, matches: Sequence[np.ndarray], keys: FacetKeys) -> Facets:
    """For each field the counts of all its values, the most frequent first, equal ones by value; or of its ranges.

    A document with several values counts for each of them.

    matches : for each segment the numbers of its documents that match
    """
    parts = (
        {field: _count(segment, docs, field, edges, index.schema) for field, edges in keys.items()}
        for segment, docs in zip(index.segments, matches, strict=True)
    )
    return joined_facets(parts, keys)


def joined_facets(parts: Iterable[Mapping[str, Mapping[Hashable, int]]], keys: FacetKeys) -> Facets:
    """The counts of the parts of a collection (segments, shards) as those of the whole."""
    joined: Facets = {field: Counter() for field in keys}
    for part in parts:
        for field, counts in part.items():
            joined[field].update(counts)
    for field, edges in keys.items():
        if edges is None:
            frequent_first: Any = sorted(joined[field].items(), key=lambda pair: (-pair[1], pair[0]))
            joined[field] = Counter(dict(frequent_first))
    return joined


def _count(
    segment: Segment, docs: np.ndarray, field: str, edges: Sequence[Any] | None, schema: Schema
) -> dict[Hashable, int]:
    if field in schema.keywords:
        return _count_keywords(segment, docs, schema.keyword_number(field))
    values = number_column(segment, schema.statics.index(field))
    present = np.empty(0) if values is None else values[docs]
    present = present[~np.isnan(present)]
    shown = date_text if field in schema.dates else _number
    if edges is None:
        different, counts = np.unique(present, return_counts=True)
        try:
            return {shown(value): count for value, count in zip(different.tolist(), counts.tolist(), strict=True)}
        except OverflowError as cause:
            raise forged(segment, f"field {field!r} has a date that does not exist") from cause
    # A range has its lower edge and not the upper one.
    places = np.searchsorted(np.array(edges), present, side="right") - 1
    counts = np.bincount(places[(places >= 0) & (places < len(edges) - 1)], minlength=len(edges) - 1)
    ranges = [(shown(low), shown(high)) for low, high in pairwise(edges)]
    return dict(zip(ranges, counts.tolist(), strict=True))


def _count_keywords(segment: Segment, docs: np.ndarray, field: int) -> dict[Hashable, int]:
    column = keyword_column(segment, field)
    if column is None:
        return {}
    if column.entry_ptr is None:
        entries = column.entries[docs]
    else:
        chosen = np.zeros(segment.n_docs, bool)
        chosen[docs] = True
        entries = column.entries[np.repeat(chosen, np.diff(column.entry_ptr))]
    counts = np.bincount(entries[entries != MISSING], minlength=len(column.values))
    return {column.values[one].decode(): int(counts[one]) for one in np.flatnonzero(counts).tolist()}


def _number(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value
