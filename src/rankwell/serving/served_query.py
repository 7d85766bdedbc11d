"""Queries as they are served: of every call and every shard the same."""

from __future__ import annotations

from dataclasses import replace

from rankwell.errors import QueryError
from rankwell.index.query.query import Query
from rankwell.index.query.tree import Node
from rankwell.index.reader import Index


def parse_served(index: Index, text: str, *, plain: bool = False, filter: str | None = None) -> Query:
    """A query as `index` understands it; parameters as those of `rankwell.index.search.selection.search`."""
    return replace(index.parse(text, plain=plain), filter=parse_served_filter(index, filter))


def parse_served_filter(index: Index, filter: str | None) -> Node | None:
    """What documents must meet besides; a mistake in it is one of the parameter `filter`, and not of the query."""
    if filter is None:
        return None
    try:
        return index.parse("", filter=filter).filter
    except QueryError as error:
        error.parameter = "filter"
        raise
