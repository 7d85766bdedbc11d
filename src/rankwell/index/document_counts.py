"""How often documents have their terms: from the forward index where there is one, else from their stored text.

Of a text without a forward index only the beginning is read (`document_terms.LONGEST_TEXT`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.index.document_terms import DocumentTerms
from rankwell.index.forward_index import has_every_stream, term_counts
from rankwell.index.segment import Segment

if TYPE_CHECKING:
    from rankwell.index.reader import Index

_common: WeakKeyDictionary[Index, CommonNumbers] = WeakKeyDictionary()


class DocumentCounts(NamedTuple):
    """Each different term of each document once: documents in order, their terms in any.

    doc : int64 (n,), places in the documents asked for
    number : int64 (n,), numbers of terms
    frequency : int64 (n,)
    term : gives a number's term
    is_ordered : whether numbers ascend as the terms' bytes do
    segment : which they are the term numbers of, if all documents are in one and it has a forward index
    """

    doc: np.ndarray
    number: np.ndarray
    frequency: np.ndarray
    term: Callable[[int], bytes]
    is_ordered: bool = False
    segment: int | None = None


def document_counts(index: Index, docs: Sequence[int] | np.ndarray) -> DocumentCounts:
    """The terms of documents, by their numbers in the index."""
    wanted = np.asarray(docs, np.int64)
    segments = np.searchsorted(index.bases, wanted, side="right") - 1
    used = np.unique(segments).tolist()
    if not used or not all(has_every_stream(index.segments[number]) for number in used):
        return _from_text(index, wanted.tolist())
    if len(used) == 1:
        segment = index.segments[used[0]]
        doc, terms, counts = _of_segment(segment, wanted - index.bases[used[0]])
        return DocumentCounts(doc, terms, counts, segment.term, is_ordered=True, segment=used[0])
    common = _common.get(index)
    if common is None:
        common = _common[index] = CommonNumbers(index)
    parts = []
    for number in used:
        places = np.flatnonzero(segments == number)
        doc, terms, counts = _of_segment(index.segments[number], wanted[places] - index.bases[number])
        parts.append((places[doc], common.of(number, terms), counts))
    doc, numbers, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(doc, kind="stable")
    return DocumentCounts(doc[order], numbers[order], counts[order], common.terms.__getitem__)


class CommonNumbers:
    """Numbers of terms that all segments of an index share, given to a term when it is first seen."""

    def __init__(self, index: Index) -> None:
        self._segments = index.segments
        self._lock = Lock()
        self._of_term: dict[bytes, int] = {}
        self._of_segment: dict[int, np.ndarray] = {}
        self.terms: list[bytes] = []

    def of(self, segment: int, terms: np.ndarray) -> np.ndarray:
        """The numbers of a segment's terms, int64; terms : int32"""
        with self._lock:
            known = self._of_segment.get(segment)
            if known is None:
                known = self._of_segment[segment] = np.full(self._segments[segment].n_terms, -1, np.int64)
            unknown = terms[known[terms] < 0]
            for number in np.unique(unknown).tolist() if len(unknown) else ():
                term = self._segments[segment].term(number)
                if term not in self._of_term:
                    self._of_term[term] = len(self.terms)
                    self.terms.append(term)
                known[number] = self._of_term[term]
            return known[terms]


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
