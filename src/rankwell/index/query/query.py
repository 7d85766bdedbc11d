"""Queries: a text, cut into the words that score and the conditions that a document must meet.

`index/query/parser.py` has the rules of the query language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rankwell.errors import ParameterError
from rankwell.index.query.tree import (
    Group,
    Near,
    Node,
    Nothing,
    Phrase,
    Prefix,
    Scoring,
    Similar,
    Word,
    condition_of,
    scoring_leaves,
)
from rankwell.index.search.phrase_lists import PhraseTerms

if TYPE_CHECKING:
    from rankwell.index.schema import Schema
    from rankwell.index.text.analysis import Analysis

MOST_TERMS = 1024

# Without any of these, a text is words and nothing else in the query language, too.
_OPERATORS = re.compile(r"""["+\-:()\[\]{}^~*?!\\/&|]|[<>](?==?-?\.?\d)|\b(?:AND|OR|NOT)\b""")


@dataclass(frozen=True)
class Query:
    """A query, cut into terms.

    Attributes
    ----------
    terms : tuple of bytes
        Different terms in the order of their first occurrence, without excluded ones: those that score, and that
        features are computed from.
    frequencies : tuple of int
        How often the query has each of `terms`.
    words, places : tuple of int
        The words in order, as numbers of `terms`, and the place of each; stop words leave gaps.
    tree : Node or None
        What a document must have; None: any of the terms (or all, as the search says).
    is_shortened : bool
        Whether the query has more than `MOST_TERMS` different terms; the rest was ignored.
    filter : Node or None
        What a document must meet besides.
    phrases : tuple of PhraseTerms
        Different phrases, without excluded ones and those with slop: they are terms too, after `terms`.
    phrase_frequencies : tuple of int
        How often the query has each of `phrases`.
    text : str
        As it was written; empty if it was not.
    """

    terms: tuple[bytes, ...]
    frequencies: tuple[int, ...]
    words: tuple[int, ...]
    places: tuple[int, ...]
    tree: Node | None = None
    is_shortened: bool = False
    filter: Node | None = None
    phrases: tuple[PhraseTerms, ...] = ()
    phrase_frequencies: tuple[int, ...] = ()
    text: str = field(default="", compare=False)

    def as_tree(self) -> Node:
        """What a document must have, as a tree in every case."""
        if self.tree is not None:
            return self.tree
        if not self.terms:
            return Nothing()
        words = zip(self.words, self.places, strict=True)
        return Group(optional=tuple(Word(self.terms[number], place) for number, place in words))


def parse_query(text: str, analysis: Analysis, schema: Schema | None = None, *, plain: bool = False) -> Query:
    """Parse a text of the query language; words are cut as `analysis` cuts documents.

    A query keeps its first `MOST_TERMS` different terms, and phrases of as many words together: the clause that brings
    one more, and all after it, is ignored (of plain words, only from that word on), and `is_shortened` says so.

    Parameters
    ----------
    schema : Schema, optional
        The fields that a query may name; None: none.
    plain : bool
        Whether the text is words and nothing else: nothing in it has a special meaning and nothing is an error.
    """
    if not isinstance(text, str):
        raise ParameterError(f"a query must be a text, got {text!r} of type {type(text).__name__}.")
    if plain or _OPERATORS.search(text) is None:
        words, cut, common = _Words(), analysis.cut(text), analysis.common_terms
        words.add([word for word in cut if word[0] not in common] or cut if common else cut)
        return words.query(None, words.is_full, text)
    from rankwell.index.query.parser import parse_tree

    tree, is_shortened = parse_tree(text, analysis, schema, MOST_TERMS)
    return replace(query_of(tree, is_shortened), text=text)


def parse_filter(filter: str | Mapping[str, Any], analysis: Analysis, schema: Schema) -> Node:
    """What documents must meet: a text of the query language, all of its clauses required, or values by field.

    Words with a tilde are as they are written: `expansion.with_near_words` looks up which are near.
    """
    from rankwell.index.query.parser import parse_tree
    from rankwell.index.query.values import filter_of

    if isinstance(filter, Mapping):
        return filter_of(schema, filter)
    if not isinstance(filter, str):
        raise ParameterError(f"must be a text or a mapping of fields to values, got {filter!r}.", parameter="filter")
    return condition_of(parse_tree(filter, analysis, schema, MOST_TERMS, is_filter=True)[0], "all")


def query_of(tree: Node, is_shortened: bool = False) -> Query:
    """The query of a tree."""
    words = _Words()
    if isinstance(tree, Group) and tree == Group(optional=tree.optional) and all(map(_is_plain, tree.optional)):
        words.add((leaf.term, leaf.place) for leaf in tree.optional if isinstance(leaf, Word))
        return words.query(None, is_shortened)
    for place, leaf in sorted(_placed(scoring_leaves(tree)), key=itemgetter(0)):
        if isinstance(leaf, Phrase):
            words.add(zip(leaf.terms, leaf.places, strict=True), place)
        elif isinstance(leaf, Similar):
            words.add([(leaf.terms[0][0], 0)], place)
        else:
            words.add([(leaf.term, 0)], place)
    phrases = Counter(
        PhraseTerms(leaf.terms, leaf.places)
        for leaf in scoring_leaves(tree)
        if isinstance(leaf, Phrase) and leaf.is_term and leaf.is_typed
    )
    return replace(
        words.query(tree, is_shortened),
        phrases=tuple(phrases),
        phrase_frequencies=tuple(phrases.values()),
    )


def without_operators(text: str) -> str:
    """A text whose words are searched as they are: operators become blanks, and AND, OR and NOT small letters."""
    return _OPERATORS.sub(lambda found: found[0].lower() if found[0].isalpha() else " ", text)


def _is_plain(leaf: Node) -> bool:
    return isinstance(leaf, Word) and leaf.field is None and leaf.boost == 1.0


def _placed(leaves: Iterable[Scoring]) -> Iterator[tuple[int, Word | Phrase | Near | Similar]]:
    """Leaves that have a place among the words of the query; a prefix has none, nor has a synonym."""
    for leaf in leaves:
        if not isinstance(leaf, Prefix) and (not isinstance(leaf, Word | Phrase) or leaf.is_typed):
            yield leaf.place, leaf


@dataclass
class _Words:
    """The words of a query while they are collected."""

    numbers: dict[bytes, int] = field(default_factory=dict)
    frequencies: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    is_full: bool = False

    def add(self, words: Iterable[tuple[bytes, int]], start: int = 0) -> None:
        numbers = self.numbers
        for term, place in words:
            number = numbers.get(term)
            if number is None:
                number = len(numbers)
                if number == MOST_TERMS:
                    self.is_full = True
                    return
                numbers[term] = number
                self.frequencies.append(0)
            self.frequencies[number] += 1
            self.words.append(number)
            self.places.append(start + place)

    def query(self, tree: Node | None, is_shortened: bool, text: str = "") -> Query:
        words, places = tuple(self.words), tuple(self.places)
        return Query(tuple(self.numbers), tuple(self.frequencies), words, places, tree, is_shortened, text=text)
