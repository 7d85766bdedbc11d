"""Queries as they are served: of every call and every shard the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rankwell.errors import QueryError
from rankwell.index.query.query import Query, parse_filter, query_of
from rankwell.index.query.tree import And, Group, Match, Node, Not, Or
from rankwell.index.reader import Index
from rankwell.index.text.synonyms import Synonyms


def parse_served(
    index: Index,
    text: str,
    *,
    plain: bool = False,
    filter: str | None = None,
    typos: bool = False,
    match: Match = "any",
    synonyms: Synonyms | None = None,
) -> Query:
    """A query as `index` understands it; parameters as those of `rankwell.index.search.selection.search`.

    That all words are needed is written into the query, as who writes +oil +prices does: selection, features and
    captions need not know.
    """
    query = index.parse(text, plain=plain, synonyms=synonyms, typos=typos)
    if match == "all":
        query = replace(query_of(_all_required(query.as_tree()), query.is_shortened), text=query.text)
    return query if filter is None else replace(query, filter=parse_served_filter(index, filter))


def _all_required(node: Node) -> Node:
    """The tree whose condition for any of its words is that of `node` for all of them."""
    if isinstance(node, Group):
        required = (_all_required(part) for part in (*node.required, *node.optional))
        return Group(required=tuple(required), excluded=tuple(map(_all_required, node.excluded)))
    if isinstance(node, And | Or):
        return type(node)(tuple(map(_all_required, node.parts)))
    return Not(_all_required(node.part)) if isinstance(node, Not) else node


def parse_served_filter(index: Index, filter: str | None) -> Node | None:
    """What documents must meet besides; a mistake in it is one of the parameter `filter`, and not of the query."""
    if filter is None:
        return None
    with _mistakes_of_the_filter():
        return index.parse("", filter=filter).filter


def written_filter(index: Index, filter: str) -> Node:
    """A filter before its words with a tilde are looked up."""
    with _mistakes_of_the_filter():
        return parse_filter(filter, index.analysis, index.schema)


@contextmanager
def _mistakes_of_the_filter() -> Iterator[None]:
    try:
        yield
    except QueryError as error:
        error.parameter = "filter"
        raise
