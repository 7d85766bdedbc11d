"""What is counted over the live documents of an index: documents, words, and how many documents have a term.

Deleted documents do not count, so an index ranks after deletions as one that never had them. Segments without deletions
answer from their arrays; in the others a term's lists are counted on its first use.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.index.search.phrase_lists import PhraseTerms, phrase_lists
from rankwell.index.segments.posting_arrays import posting_arrays
from rankwell.index.segments.segment import Segment
from rankwell.kernels.postings.rules import MOST_OCCURRENCES

if TYPE_CHECKING:
    from rankwell.index.reader import Index

_TERMS_REMEMBERED = 65_536
_of_index: WeakKeyDictionary[Index, Statistics] = WeakKeyDictionary()


class TermStatistics(NamedTuple):
    """Counts of one term: int64 (S + 1,) each, one number per stream and a last one for the whole document."""

    doc_freq: np.ndarray
    occurrences: np.ndarray


class Statistics:
    """Counts over the live documents; `Statistics.of(index)` caches them for as long as the index lives."""

    def __init__(self, index: Index) -> None:
        self._segments, self._live = index.segments, index.live
        self.n_docs = index.n_docs
        self.n_streams = len(index.schema.streams)
        self._terms: dict[bytes, TermStatistics] = {}
        self._phrases: dict[PhraseTerms, TermStatistics] = {}

    @classmethod
    def of(cls, index: Index) -> Statistics:
        known = _of_index.get(index)
        if known is None:
            known = _of_index[index] = cls(index)
        return known

    @cached_property
    def tokens(self) -> np.ndarray:
        """int64 (S + 1,): the indexed words of each stream, and of the whole documents."""
        total = np.zeros(self.n_streams + 1, np.int64)
        for segment, live in zip(self._segments, self._live, strict=True):
            if live is None:
                own = np.array(segment.tokens, np.int64)
            else:
                lengths = segment["documents.lengths"].reshape(segment.n_docs, segment.lists_per_term)
                own = lengths[live != 0].sum(axis=0, dtype=np.int64)
            total[: segment.n_streams] += own[: segment.n_streams]
            total[-1] += own[-1]
        return total

    def average_length(self, column: int) -> float:
        """The mean length of live documents in a stream (by number), or as a whole (-1); 1 if there are no words."""
        tokens = int(self.tokens[column])
        return tokens / self.n_docs if tokens else 1.0

    def term(self, term: bytes) -> TermStatistics:
        """How many live documents have a term, and how often."""
        known = self._terms.get(term)
        if known is None:
            known = self._count(term)
            if len(self._terms) >= _TERMS_REMEMBERED:
                self._terms.clear()
            self._terms[term] = known
        return known

    def named(self, name: bytes) -> TermStatistics:
        """The counts of a term, or of a phrase by its name."""
        return self.phrase(PhraseTerms.of_name(name)) if name.startswith(b'"') else self.term(name)

    def phrase(self, phrase: PhraseTerms) -> TermStatistics:
        """How many live documents have a phrase, and how often."""
        known = self._phrases.get(phrase)
        if known is None:
            known = self._count_phrase(phrase)
            if len(self._phrases) >= _TERMS_REMEMBERED:
                self._phrases.clear()
            self._phrases[phrase] = known
        return known

    def frequent_words(self, prefix: bytes, column: int, most: int) -> tuple[list[bytes], bool]:
        """The `most` terms that begin so and are in the most documents, and whether those are all: see `expansion`."""
        from rankwell.index.query.prefixes import most_frequent, prefix_counts

        return most_frequent(prefix_counts(self._segments, self, prefix, column), most)

    def near_words(self, term: bytes, distance: int, column: int) -> tuple[tuple[bytes, float], ...]:
        """The terms that are nearly written as a term, and what their occurrences count: see `near_words`."""
        from rankwell.index.query.near_words import best_near, near_counts

        return best_near(term, near_counts(self._segments, self, term, distance, column))

    def give(self, index: Index) -> None:
        """Make these the statistics of an index, in place of its own: it is a part of a larger collection."""
        _of_index[index] = self

    def live_documents(self, number: int, lists: range) -> list[int]:
        """How many live documents each of some lists of segment `number` has."""
        segment, live = self._segments[number], self._live[number]
        if live is not None:
            return [_count_list(segment, live, one)[0] for one in lists]
        end = lists[-1] + 1 if lists else lists.start
        segment.verify_rows("lists.doc_freq", lists.start, end)
        counts: list[int] = segment.unverified("lists.doc_freq")[lists.start : end : lists.step].tolist()
        return counts

    def _count(self, term: bytes) -> TermStatistics:
        counts = np.zeros((2, self.n_streams + 1), np.int64)
        for segment, live in zip(self._segments, self._live, strict=True):
            number = segment.term_number(term)
            if number >= 0:
                for column in range(segment.lists_per_term):
                    pair = _count_list(segment, live, number * segment.lists_per_term + column)
                    if column < segment.n_streams:
                        counts[:, column] += pair
                    if column == segment.lists_per_term - 1:
                        counts[:, -1] += pair
        return TermStatistics(counts[0], counts[1])

    def _count_phrase(self, phrase: PhraseTerms) -> TermStatistics:
        counts = np.zeros((2, self.n_streams + 1), np.int64)
        for segment, live in zip(self._segments, self._live, strict=True):
            anywhere = np.zeros(segment.n_docs, bool)
            for stream, own in enumerate(phrase_lists(segment, phrase)):
                alive = np.ones(len(own.docs), bool) if live is None else live[own.docs] != 0
                counts[0, stream] += np.count_nonzero(alive)
                counts[1, stream] += int(own.frequencies[alive].sum())
                anywhere[own.docs[alive]] = True
            counts[0, -1] += np.count_nonzero(anywhere)
        counts[1, -1] = counts[1, :-1].sum()
        return TermStatistics(counts[0], counts[1])


def _count_list(segment: Segment, live: np.ndarray | None, list_number: int) -> tuple[int, int]:
    """Live documents and occurrences of a list."""
    segment.verify_list(list_number, positions=False)
    occurrences = int(segment.unverified("lists.occurrences")[list_number])
    if live is None and occurrences < MOST_OCCURRENCES:
        return int(segment.unverified("lists.doc_freq")[list_number]), occurrences
    from rankwell.kernels.selection.filters import count_live

    counted = np.ones(segment.n_docs, np.uint8) if live is None else live
    doc_freq, occurrences = count_live(posting_arrays(segment), list_number, counted)
    return int(doc_freq), int(occurrences)
