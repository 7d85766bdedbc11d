"""How a query is searched: terms that score, which of them are required, and what is left to check otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from rankwell.index.query.tree import (
    And,
    Match,
    Node,
    Or,
    Phrase,
    Prefix,
    Similar,
    Word,
    both,
    condition_of,
    only_words_match,
    scoring_leaves,
)
from rankwell.index.search.phrase_lists import PhraseTerms

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


class ScoredPhrase(NamedTuple):
    """A phrase in a stream (None: those of the model) that counts as a term.

    factor : how often the query has it, times its boosts
    """

    phrase: PhraseTerms
    field: str | None
    factor: float


class Plan(NamedTuple):
    """
    scored : what the score is summed from; phrases : and what is added to it
    rest : what a document must meet besides having a scored term and the required ones; None: nothing
    scores_all : whether every document that matches has a scored term
    """

    scored: tuple[ScoredTerm, ...]
    rest: Node | None = None
    scores_all: bool = True
    phrases: tuple[ScoredPhrase, ...] = ()


# A prefix to its words that score, and whether those are all it has.
Expand = Callable[[Prefix], tuple[tuple[Alternative, ...], bool]]
_Key = tuple[bytes, str | None] | Prefix | Similar


def plan_tree(tree: Node, match: Match, expand: Expand) -> Plan:
    """The plan of a query's tree; `expand` knows the words of the index."""
    return _Planner(tree, match, expand).plan()


class _Planner:
    def __init__(self, tree: Node, match: Match, expand: Expand) -> None:
        self.condition = condition_of(tree, match)
        self._factors: dict[_Key, float] = {}
        self._phrases: dict[tuple[PhraseTerms, str | None], float] = {}
        for leaf in scoring_leaves(tree):
            # The words of a synonym that is a phrase do not count, only the phrase does.
            for key in _keys(leaf) if not isinstance(leaf, Phrase) or leaf.is_typed else ():
                self._factors[key] = self._factors.get(key, 0.0) + leaf.boost
            if isinstance(leaf, Phrase) and leaf.is_term:
                phrase = PhraseTerms(leaf.terms, leaf.places), leaf.field
                self._phrases[phrase] = self._phrases.get(phrase, 0.0) + leaf.boost
        self._has_lone_phrases = any(isinstance(leaf, Phrase) and not leaf.is_typed for leaf in scoring_leaves(tree))
        prefixes = [key for key in self._factors if isinstance(key, Prefix)]
        self._expanded = {prefix: expand(prefix) for prefix in prefixes}

    def plan(self) -> Plan:
        parts = self.condition.parts if isinstance(self.condition, And) else (self.condition,)
        required: set[_Key] = set()
        rest: list[Node] = []
        for part in parts:
            if isinstance(part, Word | Phrase):
                required.update(_keys(part))
            # A required word is found by its list. Other words that match exactly if the score is above 0 are found by
            # that, unless there is more that adds to it.
            is_found = self._has_all_words(part) and not self._has_lone_phrases and self._is_found_by_score(part)
            if not isinstance(part, Word) and not is_found:
                rest.append(part)
        scored = tuple(
            ScoredTerm(self._alternatives(key), factor, key in required) for key, factor in self._factors.items()
        )
        is_scored = only_words_match(self.condition) and all(is_whole for _, is_whole in self._expanded.values())
        phrases = tuple(ScoredPhrase(*key, factor) for key, factor in self._phrases.items())
        return Plan(scored, both(*rest) if rest else None, is_scored, phrases)

    def _has_all_words(self, part: Node) -> bool:
        """Whether everything that scores is in this part."""
        return self._factors.keys() == {key for leaf in scoring_leaves(part) for key in _keys(leaf)}

    def _is_found_by_score(self, node: Node) -> bool:
        """Whether a document matches a node exactly if the node's terms add to its score."""
        if isinstance(node, Or):
            return all(map(self._is_found_by_score, node.parts))
        return isinstance(node, Word | Similar) or (isinstance(node, Prefix) and self._expanded[node][1])

    def _alternatives(self, key: _Key) -> tuple[Alternative, ...]:
        if isinstance(key, Prefix):
            return self._expanded[key][0]
        if isinstance(key, Similar):
            return tuple(Alternative(term, key.field, weight) for term, weight in key.terms)
        return (Alternative(*key),)


def _keys(leaf: Node) -> list[_Key]:
    """What a leaf's words are counted under."""
    if isinstance(leaf, Word):
        return [(leaf.term, leaf.field)]
    if isinstance(leaf, Phrase):
        return [(term, leaf.field) for term in leaf.terms]
    if isinstance(leaf, Similar):
        return [replace(leaf, place=0, boost=1.0)]
    return [replace(leaf, boost=1.0)] if isinstance(leaf, Prefix) else []
