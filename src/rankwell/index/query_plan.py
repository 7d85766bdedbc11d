"""How a query is searched: terms that score, which of them are required, and what is left to check otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rankwell.index.query_tree import (
    And,
    Match,
    Node,
    Or,
    Phrase,
    Prefix,
    Word,
    both,
    condition_of,
    has_words,
    only_words_match,
    scoring_leaves,
)

# A prefix counts in the score by this many of its most frequent words.
MOST_EXPANSIONS = 64


class Alternative(NamedTuple):
    """A term in a stream (None: those of the model), and how much its occurrences count."""

    term: bytes
    field: str | None = None
    weight: float = 1.0


class ScoredTerm(NamedTuple):
    """Terms that count as one: their occurrences are summed before they saturate.

    factor : how often the query has it, times its boosts
    """

    alternatives: tuple[Alternative, ...]
    factor: float
    is_required: bool


class Plan(NamedTuple):
    """
    scored : what the score is summed from
    rest : what a document must meet besides having a scored term and the required ones; None: nothing
    scores_all : whether every document that matches has a scored term
    """

    scored: tuple[ScoredTerm, ...]
    rest: Node | None = None
    scores_all: bool = True


# A prefix to its words that score, and whether those are all it has.
Expand = Callable[[Prefix], tuple[tuple[Alternative, ...], bool]]
_Key = tuple[bytes, str | None] | Prefix


def plan_tree(tree: Node, match: Match, expand: Expand) -> Plan:
    """The plan of a query's tree; `expand` knows the words of the index."""
    return _Planner(tree, match, expand).plan()


class _Planner:
    def __init__(self, tree: Node, match: Match, expand: Expand) -> None:
        self.condition = condition_of(tree, match)
        self._factors: dict[_Key, float] = {}
        for leaf in scoring_leaves(tree):
            for key in _keys(leaf):
                self._factors[key] = self._factors.get(key, 0.0) + leaf.boost
        prefixes = [key for key in self._factors if isinstance(key, Prefix)]
        self._expanded = {prefix: expand(prefix) for prefix in prefixes}

    def plan(self) -> Plan:
        parts = self.condition.parts if isinstance(self.condition, And) else (self.condition,)
        required: set[_Key] = set()
        rest: list[Node] = []
        scoring = [part for part in parts if has_words(part)]
        for part in parts:
            if self._is_found_by_score(part):
                required.update(_keys(part))
            elif isinstance(part, Phrase):
                required.update(_keys(part))
                rest.append(part)
            elif not (len(scoring) == 1 and isinstance(part, Or) and all(map(self._is_found_by_score, part.parts))):
                rest.append(part)
        scored = tuple(
            ScoredTerm(self._alternatives(key), factor, key in required) for key, factor in self._factors.items()
        )
        is_scored = only_words_match(self.condition) and all(is_whole for _, is_whole in self._expanded.values())
        return Plan(scored, both(*rest) if rest else None, is_scored)

    def _is_found_by_score(self, node: Node) -> bool:
        """Whether a document matches a node exactly if the node's term adds to its score."""
        return isinstance(node, Word) or (isinstance(node, Prefix) and self._expanded[node][1])

    def _alternatives(self, key: _Key) -> tuple[Alternative, ...]:
        return self._expanded[key][0] if isinstance(key, Prefix) else (Alternative(*key),)


def _keys(leaf: Node) -> list[_Key]:
    """What a leaf's words are counted under."""
    if isinstance(leaf, Word):
        return [(leaf.term, leaf.field)]
    if isinstance(leaf, Phrase):
        return [(term, leaf.field) for term in leaf.terms]
    return [leaf._replace(boost=1.0)] if isinstance(leaf, Prefix) else []
