"""One query in an index with one model: the best documents, all that match, their scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rankwell.index.query.plan import MOST_EXPANSIONS, Alternative, Plan, ScoredTerm, plan_tree
from rankwell.index.query.query import Query
from rankwell.index.query.tree import Match, Node, Prefix, condition_of
from rankwell.index.search.allowed_documents import (
    Allowed,
    allowed_documents,
    count_documents,
    filtered_documents,
    marked_documents,
    only_these,
)
from rankwell.index.search.bm25 import ModelColumns
from rankwell.index.search.matching import Matching
from rankwell.index.search.selector import Asked, Selector, most_matches
from rankwell.index.search.static_order import Examined, first_of_segments, live_among
from rankwell.index.statistics import Statistics

if TYPE_CHECKING:
    from rankwell.index.reader import Index


class QuerySearch:
    """A query as it is asked of an index."""

    def __init__(self, index: Index, query: Query, model: ModelColumns, match: Match) -> None:
        self.index, self.query, self.match = index, query, match
        self._model = model

    def best(self, k: int, prune: bool, reach: Sequence[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The best k documents, and their scores: those without a scored term come last, in their order.

        reach : how many documents of each segment are searched, from its first on; None: all
        """
        if self.query.tree is None:
            return self.prepare(k, prune, reach)()
        docs, scores = self._select(self._allowed, k, prune, reach)
        if self._plan.scores_all or len(docs) == k:
            return docs, scores
        first = self._all_matches(reach)[:k]
        more = first[~np.isin(first, docs)][: k - len(docs)]
        return np.concatenate((docs, more)), np.concatenate((scores, np.zeros(len(more))))

    def prepare(
        self, k: int, prune: bool, reach: Sequence[int] | None = None
    ) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        """`best` of words without conditions on them, still to be called: see `Selector.prepare`."""
        wanted = self.query.filter
        among = None if wanted is None else filtered_documents(self.index, wanted)
        return self._selector.prepare(self._asked, among, k, prune, reach)

    def best_of_first(self, k: int, stop_after: int) -> Examined:
        """The best k of the first documents in the index's static order: of so many that about `stop_after` match."""
        n_numbers = int(self.index.bases[-1])
        n_first = self.n_first(stop_after, n_numbers)
        while True:
            found = self.best_among(k, n_first)
            if len(found.docs) == k or not found.stopped:
                return found
            n_first = min(2 * n_first, n_numbers)

    def best_among(self, k: int, n_first: int) -> Examined:
        """The best k of the first `n_first` documents in the index's static order."""
        reach = first_of_segments(self.index, n_first)
        docs, scores = self.best(k, True, reach)
        return Examined(docs, scores, live_among(self.index, reach), n_first < int(self.index.bases[-1]))

    def n_first(self, stop_after: int, n_numbers: int) -> int:
        """Of how many documents in the static order, of `n_numbers` of the collection, about `stop_after` match."""
        share = min(most_matches(self._asked) / max(n_numbers, 1), 1.0)
        return n_numbers if share == 0.0 else min(math.ceil(stop_after / share), n_numbers)

    def is_match(self, doc: int) -> bool:
        """Whether a document matches."""
        number, local = self._place_of(doc)
        matches = self.matches[number]
        place = int(np.searchsorted(matches, local))
        return place < len(matches) and int(matches[place]) == local

    @cached_property
    def matches(self) -> list[np.ndarray]:
        """For each segment the numbers of its documents that match, ascending."""
        return list(map(np.flatnonzero, self._marks()))

    def matches_without(self, doc: int) -> list[np.ndarray]:
        """The matches of each segment, without a document."""
        number, local = self._place_of(doc)
        return [docs[docs != local] if place == number else docs for place, docs in enumerate(self.matches)]

    def _place_of(self, doc: int) -> tuple[int, int]:
        """The segment of a document, and its number there."""
        number = int(np.searchsorted(self.index.bases, doc, side="right")) - 1
        return number, doc - int(self.index.bases[number])

    def count(self) -> int:
        """How many documents match."""
        if "matches" in vars(self):
            return sum(map(len, self.matches))
        # Marks are not kept: those of a batch of queries would be new memory each time, which takes longer to get than
        # to use.
        among = filtered_documents(self.index, self.query.filter)
        return count_documents(self.index, among, self._condition, self._matching)

    def _marks(self) -> Iterator[np.ndarray]:
        """For each segment bool (n_docs,): which of its documents match."""
        among = filtered_documents(self.index, self.query.filter)
        return marked_documents(self.index, among, self._condition, self._matching)

    @property
    def _condition(self) -> Node:
        return condition_of(self.query.as_tree(), self.match)

    def scores_of(self, docs: np.ndarray) -> np.ndarray:
        """The scores of documents that match, float64, 0 for those without a scored term."""
        scores = np.zeros(len(docs))
        if len(docs):
            order = np.argsort(docs)
            found, values = self._select(self._only(docs), len(docs), True)
            scores[order[np.searchsorted(docs[order], found)]] = values
        return scores

    def _only(self, docs: np.ndarray) -> list[Allowed]:
        """These documents and no others."""
        only = []
        for number, segment in enumerate(self.index.segments):
            base = int(self.index.bases[number])
            own = np.sort(docs[(docs >= base) & (docs < base + segment.n_docs)] - base).astype(np.int32)
            only.append(only_these(own, segment.n_docs))
        return only

    def _all_matches(self, reach: Sequence[int] | None) -> np.ndarray:
        bases = self.index.bases.tolist()
        parts = [docs + base for docs, base in zip(self.matches, bases, strict=False)]
        if reach is not None:
            parts = [
                docs[: np.searchsorted(docs, base + n)] for docs, base, n in zip(parts, bases, reach, strict=False)
            ]
        return np.concatenate((np.empty(0, np.int64), *parts))

    @cached_property
    def _allowed(self) -> list[Allowed]:
        """The documents of each segment that meet the filter and what is not checked by scores."""
        among = filtered_documents(self.index, self.query.filter)
        return allowed_documents(self.index, among, self._plan.rest, self._matching)

    @cached_property
    def _matching(self) -> Matching:
        return Matching(self.index.schema, self._model.read)

    @cached_property
    def _plan(self) -> Plan:
        return plan_tree(self.query.as_tree(), self.match, self._expand)

    def _select(
        self, allowed: list[Allowed], k: int, prune: bool, reach: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        selector = self._selector
        if not self._plan.phrases:
            return selector.select(self._asked, allowed, k, prune, reach)
        from rankwell.index.search.phrase_scoring import PhraseScoring

        needs_word = any(term.is_required for term in self._plan.scored)
        scoring = PhraseScoring(self.index, selector, self._plan.phrases)
        return scoring.select(self._asked, allowed, k, prune, reach, needs_word=needs_word)

    @cached_property
    def _asked(self) -> list[Asked]:
        """The terms that score."""
        query = self.query
        if query.tree is None:
            return self._selector.asked_words(query.terms, query.frequencies, self.match == "all")
        return self._selector.asked_terms(self._plan.scored)

    @property
    def _selector(self) -> Selector:
        """The index prepared for the terms that score."""
        model = self._model
        if self.query.tree is not None:
            scored = self._plan.scored
            fields = {one.field for term in scored for one in term.alternatives if one.field is not None}
            if fields or not all(map(_is_one_list, scored)):
                model = model.summing([self.index.schema.streams.index(field) for field in fields])
        return Selector.of(self.index, model)

    def _expand(self, prefix: Prefix) -> tuple[tuple[Alternative, ...], bool]:
        """The words that a prefix is scored by, and whether those are all it has."""
        column = self._model.counted if prefix.field is None else self.index.schema.streams.index(prefix.field)
        words, are_all = Statistics.of(self.index).frequent_words(prefix.start, column, MOST_EXPANSIONS)
        return tuple(Alternative(word, prefix.field) for word in words), are_all


def _is_one_list(term: ScoredTerm) -> bool:
    """Whether a term's occurrences count as they are; those of a near word, the only one too, count less."""
    return len(term.alternatives) == 1 and term.alternatives[0].weight == 1.0
