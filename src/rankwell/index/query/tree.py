"""What a query asks for, as a tree: leaves that a document has or has not, joined by And, Or, Not and Group.

Words, phrases, prefixes and near words count in the score unless they are inside a Not or excluded; the other leaves
only decide which documents match. `field` is the stream, static or keyword field that a leaf reads; None for words:
the streams that the model reads. `place` is where a leaf's first word is in the query, counted in words.

Trees are keys: a node equals one of its own kind only. Tuples would not do, And(parts) and Or(parts) would be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

Match = Literal["any", "all"]


@dataclass(frozen=True, slots=True)
class Word:
    """A term.

    is_typed : whether it is a term of its query; one that is searched for as a synonym is not
    """

    term: bytes
    place: int = 0
    field: str | None = None
    boost: float = 1.0
    is_typed: bool = True


@dataclass(frozen=True, slots=True)
class Phrase:
    """Terms, and the place of each counted from the first; stop words leave gaps.

    slop : by how much the words may be moved, in all: 0 is the phrase itself
    is_typed : whether its words are terms of its query; of a synonym only the phrase counts
    """

    terms: tuple[bytes, ...]
    places: tuple[int, ...]
    slop: int = 0
    place: int = 0
    field: str | None = None
    boost: float = 1.0
    is_typed: bool = True

    @property
    def is_term(self) -> bool:
        """Whether the phrase counts in the score as a term, beside its words; with slop it is a condition only."""
        return self.slop == 0 and len(self.terms) > 1


@dataclass(frozen=True, slots=True)
class Prefix:
    """Any term that begins so."""

    start: bytes
    field: str | None = None
    boost: float = 1.0


@dataclass(frozen=True, slots=True)
class Near:
    """A term, or one that is at most `distance` edits away: `expansion.with_near_words` looks up which there are."""

    term: bytes
    distance: int
    place: int = 0
    field: str | None = None
    boost: float = 1.0


@dataclass(frozen=True, slots=True)
class Similar:
    """Any of some terms, which count as one: pairs of a term and what its occurrences count, the best one first."""

    terms: tuple[tuple[bytes, float], ...]
    place: int = 0
    field: str | None = None
    boost: float = 1.0


@dataclass(frozen=True, slots=True)
class Range:
    """A number or date between two values; the ends are part of it where `with_low`, `with_high` say so."""

    field: str
    low: float
    high: float
    with_low: bool = True
    with_high: bool = True


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword field that has this value, or one that begins so."""

    field: str
    value: bytes
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    """A field that has a value, or any word."""

    field: str


@dataclass(frozen=True, slots=True)
class Everything:
    """Every document."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No document."""


@dataclass(frozen=True, slots=True)
class And:
    """All of them."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of them."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The documents without it."""

    part: Node


@dataclass(frozen=True, slots=True)
class Group:
    """Clauses one after another: all of `required`, none of `excluded`; `optional` ones as `match` says.

    With "any", one of the optional clauses is enough, and none is needed where a clause with words is required; with
    "all" each is required.
    """

    required: tuple[Node, ...] = ()
    optional: tuple[Node, ...] = ()
    excluded: tuple[Node, ...] = ()


Scoring = Word | Phrase | Prefix | Near | Similar
Leaf = Scoring | Range | Keyword | Exists | Everything | Nothing
Node = Leaf | And | Or | Not | Group


def condition_of(node: Node, match: Match) -> Node:
    """The tree without groups: And, Or, Not and leaves that say the same."""
    if isinstance(node, And):
        return both(*(condition_of(part, match) for part in node.parts))
    if isinstance(node, Or):
        return either(*(condition_of(part, match) for part in node.parts))
    if isinstance(node, Not):
        return Not(condition_of(node.part, match))
    if not isinstance(node, Group):
        return _bare(node)
    parts = [condition_of(part, match) for part in node.required]
    optional = [condition_of(part, match) for part in node.optional]
    if match == "all":
        parts += optional
    elif optional and not any(map(has_words, node.required)):
        parts.append(either(*optional))
    return both(*parts, *(Not(condition_of(part, match)) for part in node.excluded))


def _bare(leaf: Leaf) -> Leaf:
    """A leaf without what only the score depends on, so that equal conditions are equal."""
    if isinstance(leaf, Phrase):
        if len(leaf.terms) == 1:
            return Word(leaf.terms[0], field=leaf.field)
        return replace(leaf, place=0, boost=1.0, is_typed=True)
    if isinstance(leaf, Word):
        return Word(leaf.term, field=leaf.field)
    if isinstance(leaf, Near | Similar):
        return replace(leaf, place=0, boost=1.0)
    return replace(leaf, boost=1.0) if isinstance(leaf, Prefix) else leaf


def changed(node: Node, change: Callable[[Scoring], Node], *, also_excluded: bool = False) -> Node:
    """The tree with other nodes in place of its leaves that count in the score.

    also_excluded : whether leaves of their kinds inside a Not, or excluded, are replaced too
    """

    def within(part: Node) -> Node:
        return changed(part, change, also_excluded=also_excluded)

    if isinstance(node, Word | Phrase | Prefix | Near | Similar):
        return change(node)
    if isinstance(node, And | Or):
        return type(node)(tuple(map(within, node.parts)))
    if isinstance(node, Not):
        return Not(within(node.part)) if also_excluded else node
    if isinstance(node, Group):
        excluded = tuple(map(within, node.excluded)) if also_excluded else node.excluded
        return Group(tuple(map(within, node.required)), tuple(map(within, node.optional)), excluded)
    return node


def both(*parts: Node) -> Node:
    """And, of one part the part itself; an And among the parts is taken apart, and of equal parts one is kept."""
    flat = list(dict.fromkeys(inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))))
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def either(*parts: Node) -> Node:
    """Or, of one part the part itself; an Or among the parts is taken apart, and of equal parts one is kept."""
    flat = list(dict.fromkeys(inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))))
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def scoring_leaves(node: Node | None) -> Iterator[Scoring]:
    """The leaves that count in the score, from left to right among those of one kind in a group."""
    if isinstance(node, Word | Phrase | Prefix | Near | Similar):
        yield node
    elif isinstance(node, And | Or):
        for part in node.parts:
            yield from scoring_leaves(part)
    elif isinstance(node, Group):
        for part in (*node.required, *node.optional):
            yield from scoring_leaves(part)


def near_leaves(node: Node) -> Iterator[Near]:
    """The near words of a tree, also those that are excluded: all of them must be looked up before a search."""
    if isinstance(node, Near):
        yield node
    elif isinstance(node, And | Or):
        for part in node.parts:
            yield from near_leaves(part)
    elif isinstance(node, Not):
        yield from near_leaves(node.part)
    elif isinstance(node, Group):
        for part in (*node.required, *node.optional, *node.excluded):
            yield from near_leaves(part)


def has_words(node: Node) -> bool:
    """Whether any leaf of a tree counts in the score."""
    return next(scoring_leaves(node), None) is not None


def only_words_match(node: Node) -> bool:
    """Whether every document that matches has one of the tree's words; `node` has no groups."""
    if isinstance(node, And):
        return any(only_words_match(part) for part in node.parts)
    if isinstance(node, Or):
        return all(only_words_match(part) for part in node.parts)
    return isinstance(node, Word | Phrase | Prefix | Near | Similar | Nothing)
