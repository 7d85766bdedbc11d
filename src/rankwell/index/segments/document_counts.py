"""How often documents have their terms: from the forward index where there is one, else from their stored text.

Of a text without a forward index only the beginning is read (`document_terms.LONGEST_TEXT`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.index.segments.document_terms import DocumentTerms
from rankwell.index.segments.forward_index import has_every_stream, term_counts
from rankwell.index.segments.segment import Segment

if TYPE_CHECKING:
    from rankwell.index.reader import Index

_common: WeakKeyDictionary[Index, CommonNumbers] = WeakKeyDictionary()


def _unknown(numbers: np.ndarray) -> np.ndarray:
    return np.zeros(len(numbers), np.int32)


class DocumentCounts(NamedTuple):
    """Each different term of each document once: documents in order, their terms in any.

    doc : int64 (n,), places in the documents asked for
    number : int64 (n,), numbers of terms
    frequency : int64 (n,)
    term : gives a number's term
    is_ordered : whether numbers ascend as the terms' bytes do
    least_docs : gives at least how many live documents have terms, by their numbers; 0 where that is not known
    """

    doc: np.ndarray
    number: np.ndarray
    frequency: np.ndarray
    term: Callable[[int], bytes]
    is_ordered: bool = False
    least_docs: Callable[[np.ndarray], np.ndarray] = _unknown


def document_counts(index: Index, docs: Sequence[int] | np.ndarray) -> DocumentCounts:
    """The terms of documents, by their numbers in the index."""
    wanted = np.asarray(docs, np.int64)
    segments = np.searchsorted(index.bases, wanted, side="right") - 1
    used = np.unique(segments).tolist()
    if not used or not all(has_every_stream(index.segments[number]) for number in used):
        return _from_text(index, wanted.tolist())
    if len(used) == 1:
        segment, least = index.segments[used[0]], partial(least_docs, index.segments[used[0]], index.live[used[0]])
        doc, terms, counts = _of_segment(segment, wanted - index.bases[used[0]])
        return DocumentCounts(doc, terms, counts, segment.term, is_ordered=True, least_docs=least)
    common = _common.get(index)
    if common is None:
        common = _common[index] = CommonNumbers(index)
    parts = []
    for number in used:
        places = np.flatnonzero(segments == number)
        doc, terms, counts = _of_segment(index.segments[number], wanted[places] - index.bases[number])
        parts.append((places[doc], common.of(number, terms), counts))
    doc, numbers, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    # Numbers of 16 bits are sorted by counting.
    order = np.argsort(doc.astype(np.int16) if len(wanted) < 2**15 else doc, kind="stable")
    return DocumentCounts(
        doc[order], numbers[order], counts[order], common.terms.__getitem__, least_docs=common.least_docs
    )


class CommonNumbers:
    """Numbers of terms that all segments of an index share, given to a term when it is first seen."""

    def __init__(self, index: Index) -> None:
        self._segments, self._live = index.segments, index.live
        self._lock = Lock()
        self._of_term: dict[bytes, int] = {}
        self._of_segment: dict[int, np.ndarray] = {}
        self._least_docs = np.zeros(1024, np.int64)
        self.terms: list[bytes] = []

    def least_docs(self, numbers: np.ndarray) -> np.ndarray:
        """At least how many live documents have terms: those of the segments in which they were seen."""
        return self._least_docs[numbers]

    def of(self, segment: int, terms: np.ndarray) -> np.ndarray:
        """The numbers of a segment's terms, int64; terms : int32"""
        with self._lock:
            known = self._of_segment.get(segment)
            if known is None:
                known = self._of_segment[segment] = np.full(self._segments[segment].n_terms, -1, np.int64)
            numbers = known[terms]
            if numbers.min(initial=0) < 0:
                self._number(segment, np.unique(terms[numbers < 0]), known)
                numbers = known[terms]
            return numbers

    def _number(self, segment: int, terms: np.ndarray, known: np.ndarray) -> None:
        for one in terms.tolist():
            term = self._segments[segment].term(one)
            if term not in self._of_term:
                self._of_term[term] = len(self.terms)
                self.terms.append(term)
            known[one] = self._of_term[term]
        if len(self.terms) > len(self._least_docs):
            self._least_docs = np.concatenate((self._least_docs, np.zeros(len(self.terms), np.int64)))
        self._least_docs[known[terms]] += least_docs(self._segments[segment], self._live[segment], terms)


def least_docs(segment: Segment, live: np.ndarray | None, terms: np.ndarray) -> np.ndarray:
    """At least how many live documents have terms of a segment: the deleted ones are not known."""
    if live is not None:
        return np.zeros(len(terms), np.int32)
    whole: np.ndarray = segment["lists.doc_freq"][(terms.astype(np.int64) + 1) * segment.lists_per_term - 1]
    return whole


def _of_segment(segment: Segment, docs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of documents, numbers of terms and counts of a segment's documents."""
    counted = term_counts(segment, docs)
    doc = np.repeat(np.arange(len(docs)), np.diff(counted.term_ptr))
    return doc, counted.terms.astype(np.int64), counted.counts.astype(np.int64)


def _from_text(index: Index, docs: list[int]) -> DocumentCounts:
    words, terms = DocumentTerms.of(index).read(index, docs)
    lengths = np.array([len(own) for own in words], np.int64)
    if not lengths.any():
        none = np.empty(0, np.int64)
        return DocumentCounts(none, none, none, terms.__getitem__)
    # Each term of each document once, documents in order: a sum does not depend on what else was read.
    pairs, counts = np.unique(
        np.concatenate(words) + np.repeat(np.arange(len(docs)), lengths) * len(terms), return_counts=True
    )
    doc, number = np.divmod(pairs, len(terms))
    return DocumentCounts(doc, number, counts, terms.__getitem__)
