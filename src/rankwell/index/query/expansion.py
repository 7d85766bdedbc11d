"""Words of a query together with their synonyms and with words that are written nearly so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rankwell.errors import ParameterError
from rankwell.index.query.near_words import tolerance
from rankwell.index.query.query import Query, query_of
from rankwell.index.query.tree import (
    And,
    Group,
    Near,
    Node,
    Or,
    Phrase,
    Scoring,
    Similar,
    Word,
    changed,
    scoring_leaves,
)
from rankwell.index.search.bm25 import WHOLE
from rankwell.index.statistics import Statistics
from rankwell.index.text.synonyms import Synonyms

if TYPE_CHECKING:
    from rankwell.index.reader import Index
    from rankwell.index.text.analysis import Analysis

# Typing errors are forgiven in this many of a query's words: for each the dictionary is searched.
MOST_FORGIVEN = 32
# The terms of a text, and the places of each, to the texts that are found too.
_Terms = tuple[tuple[bytes, int], ...]
_tables: WeakKeyDictionary[Index, dict[Synonyms, Mapping[_Terms, tuple[_Terms, ...]]]] = WeakKeyDictionary()


def expanded(query: Query, index: Index, synonyms: Synonyms | None, *, typos: bool) -> Query:
    """A query whose words find their synonyms too, and (`typos`, or a tilde) words that are written nearly so.

    Phrases are taken as they are written, and so are excluded words without a tilde. The terms of the query stay those
    that were typed; a word that the index lacks becomes the best of those that are near.
    """
    tree = with_near_words(forgiving_tree(query, index, synonyms, typos=typos), index)
    if tree == query.as_tree():
        return query
    return replace(query_of(tree, query.is_shortened), filter=query.filter, text=query.text)


def forgiving_tree(query: Query, index: Index, synonyms: Synonyms | None, *, typos: bool) -> Node:
    """A query's tree with synonyms, and (`typos`) a Near in place of each word in which typing errors are forgiven."""
    tree = query.as_tree()
    if synonyms is not None:
        if not isinstance(synonyms, Synonyms):
            raise ParameterError(
                f"must be Synonyms, as Synonyms.of(['tv, television']) or Synonyms.read(path), got {synonyms!r}.",
                parameter="synonyms",
            )
        tree = _with_synonyms(tree, _table_of(index, synonyms))
    words = (leaf for leaf in islice(scoring_leaves(tree), MOST_FORGIVEN) if typos and isinstance(leaf, Word))
    forgiven = {word for word in words if word.is_typed}
    return changed(tree, lambda leaf: _near(leaf) if isinstance(leaf, Word) and leaf in forgiven else leaf)


def with_near_words(tree: Node, index: Index) -> Node:
    """A tree (of a query or a filter) with the words that are near in place of each Near, in exclusions too."""
    return changed(tree, lambda leaf: _similar(leaf, index), also_excluded=True)


def _near(leaf: Word) -> Near:
    return Near(leaf.term, tolerance(leaf.term), leaf.place, leaf.field, leaf.boost)


def _similar(leaf: Scoring, index: Index) -> Node:
    """In place of a Near, the words that are near; other leaves as they are."""
    if not isinstance(leaf, Near):
        return leaf
    column = WHOLE if leaf.field is None else index.schema.streams.index(leaf.field)
    terms = Statistics.of(index).near_words(leaf.term, leaf.distance, column)
    if len(terms) == 0 or terms == ((leaf.term, 1.0),):
        return Word(leaf.term, leaf.place, leaf.field, leaf.boost)
    return Similar(terms, leaf.place, leaf.field, leaf.boost)


def _with_synonyms(tree: Node, table: Mapping[_Terms, tuple[_Terms, ...]]) -> Node:
    tree = _with_runs(tree, table)
    return changed(tree, lambda leaf: _alternatives(leaf, table))


def _alternatives(leaf: Scoring, table: Mapping[_Terms, tuple[_Terms, ...]]) -> Node:
    """A word and its synonyms: single words count as one with it, several are a phrase, which counts as one term."""
    found = table.get(((leaf.term, 0),), ()) if isinstance(leaf, Word) else ()
    if not isinstance(leaf, Word) or not found:
        return leaf
    single = dict.fromkeys([leaf.term, *(terms[0][0] for terms in found if len(terms) == 1)])
    similar = tuple((term, 1.0) for term in single)
    word = leaf if len(single) == 1 else Similar(similar, leaf.place, leaf.field, leaf.boost)
    phrases = [_phrase(terms, leaf) for terms in found if len(terms) > 1]
    return Or((word, *phrases)) if phrases else word


def _phrase(terms: _Terms, leaf: Word) -> Phrase:
    words, places = zip(*terms, strict=True)
    return Phrase(words, places, 0, leaf.place, leaf.field, leaf.boost, is_typed=False)


def _with_runs(node: Node, table: Mapping[_Terms, tuple[_Terms, ...]]) -> Node:
    """Words one after another that have synonyms together: the words, or one of the synonyms."""
    if isinstance(node, And | Or):
        return type(node)(tuple(_with_runs(part, table) for part in node.parts))
    if not isinstance(node, Group):
        return node
    longest = max((len(terms) for terms in table), default=0)
    words, optional, place = node.optional, list[Node](), 0
    while place < len(words):
        for size in range(min(longest, len(words) - place), 1, -1):
            run = words[place : place + size]
            found = table.get(_terms_of(run), ())
            if found:
                first = run[0]
                assert isinstance(first, Word)
                others = [
                    _phrase(terms, first) if len(terms) > 1 else replace(first, term=terms[0][0], is_typed=False)
                    for terms in found
                ]
                optional.append(Or((Group(optional=run), *others)))
                place += size
                break
        else:
            optional.append(_with_runs(words[place], table))
            place += 1
    required = tuple(_with_runs(part, table) for part in node.required)
    return Group(required, tuple(optional), node.excluded)


def _terms_of(run: tuple[Node, ...]) -> _Terms:
    """The terms of words in a row, with their places from the first on; empty if not all are words of one field."""
    words = [leaf for leaf in run if isinstance(leaf, Word) and leaf.field == getattr(run[0], "field", None)]
    return tuple((leaf.term, leaf.place - words[0].place) for leaf in words) if len(words) == len(run) else ()


def _table_of(index: Index, synonyms: Synonyms) -> Mapping[_Terms, tuple[_Terms, ...]]:
    """The rules in the terms of an index."""
    known = _tables.setdefault(index, {})
    if synonyms not in known:
        known[synonyms] = _make_table(synonyms, index.analysis)
    return known[synonyms]


def _make_table(synonyms: Synonyms, analysis: Analysis) -> dict[_Terms, tuple[_Terms, ...]]:
    table: dict[_Terms, dict[_Terms, None]] = {}
    for words, found in synonyms.rules:
        others = [terms for text in found if (terms := _cut(text, analysis))]
        for text in words:
            terms = _cut(text, analysis)
            if terms:
                table.setdefault(terms, {}).update((other, None) for other in others if other != terms)
    return {terms: tuple(others) for terms, others in table.items() if others}


def _cut(text: str, analysis: Analysis) -> _Terms:
    cut = analysis.cut(text)
    return tuple((term, place - cut[0][1]) for term, place in cut)
