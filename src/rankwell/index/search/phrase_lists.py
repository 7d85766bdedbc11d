"""Where phrases occur: a posting list for each stream, found from those of the words when a phrase is first asked for.

Lists are kept with their segment, the last ones up to `MOST_BYTES`.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.errors import DataError
from rankwell.index.segments.posting_arrays import posting_arrays
from rankwell.index.segments.segment import Segment

MOST_BYTES = 2**25


class PhraseTerms(NamedTuple):
    """A phrase as its terms, and the place of each counted from the first; stop words leave gaps."""

    terms: tuple[bytes, ...]
    places: tuple[int, ...]

    @property
    def name(self) -> bytes:
        """The phrase as one string of bytes, which is no term: terms have no quotes."""
        return b'"' + b" ".join(b"%d:%s" % pair for pair in zip(self.places, self.terms, strict=True))

    @classmethod
    def of_name(cls, name: bytes) -> PhraseTerms:
        """The phrase of that name; DataError if it is none."""
        parts = [part.partition(b":") for part in name.removeprefix(b'"').split(b" ")]
        if not name.startswith(b'"') or not all(place.isdigit() and len(place) < 10 for place, _, _ in parts):
            raise DataError(f"{name!r} is not the name of a phrase.")
        return cls(tuple(term for _, _, term in parts), tuple(int(place) for place, _, _ in parts))


class PhraseList(NamedTuple):
    """The occurrences of a phrase in a stream of a segment.

    docs : int32 (n,), ascending; frequencies : int32 (n,)
    start_ptr : int64 (n + 1,); starts : int32, where the first word is, ascending within a document
    """

    docs: np.ndarray
    frequencies: np.ndarray
    start_ptr: np.ndarray
    starts: np.ndarray

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self)

    def counts_in(self, docs: np.ndarray) -> np.ndarray:
        """How often documents of the segment have the phrase: int32 (n,)."""
        places = np.searchsorted(self.docs, docs)
        counts = np.zeros(len(docs), np.int32)
        inside = np.flatnonzero(places < len(self.docs))
        inside = inside[self.docs[places[inside]] == docs[inside]]
        counts[inside] = self.frequencies[places[inside]]
        return counts

    def starts_in(self, doc: int) -> np.ndarray:
        """Where a document of the segment has the phrase."""
        place = int(np.searchsorted(self.docs, doc))
        if place == len(self.docs) or self.docs[place] != doc:
            return self.starts[:0]
        return self.starts[self.start_ptr[place] : self.start_ptr[place + 1]]


NO_OCCURRENCES = PhraseList(np.empty(0, np.int32), np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.int32))
# Threads share segments.
_lock = Lock()
_known: WeakKeyDictionary[Segment, OrderedDict[PhraseTerms, tuple[PhraseList, ...]]] = WeakKeyDictionary()


def phrase_lists(segment: Segment, phrase: PhraseTerms) -> tuple[PhraseList, ...]:
    """The list of a phrase in each stream of a segment."""
    with _lock:
        known = _known.setdefault(segment, OrderedDict())
        found = known.get(phrase)
        if found is not None:
            known.move_to_end(phrase)
            return found
    numbers = [segment.term_number(term) for term in phrase.terms]
    if min(numbers) < 0:
        found = (NO_OCCURRENCES,) * segment.n_streams
    else:
        found = tuple(_find(segment, numbers, phrase.places, stream) for stream in range(segment.n_streams))
    with _lock:
        known[phrase] = found
        while len(known) > 1 and sum(one.n_bytes for lists in known.values() for one in lists) > MOST_BYTES:
            known.popitem(last=False)
    return found


def _find(segment: Segment, terms: list[int], places: tuple[int, ...], stream: int) -> PhraseList:
    from rankwell.kernels.selection.phrases import find_phrase

    numbers = np.array([term * segment.lists_per_term + stream for term in terms], np.int64)
    for number in numbers.tolist():
        segment.verify_list(number)
    arrays = posting_arrays(segment)
    most_docs = int(arrays.doc_freq[numbers].min())
    if most_docs == 0:
        return NO_OCCURRENCES
    docs, frequencies = np.empty((2, most_docs), np.int32)
    # If all words of a phrase have more occurrences than can be noted, no array of them fits in memory.
    starts = np.empty(int(segment.unverified("lists.occurrences")[numbers].min()), np.int32)
    n_docs, n_starts = find_phrase(arrays, numbers, np.array(places, np.int64), docs, frequencies, starts)
    frequencies = frequencies[:n_docs].copy()
    start_ptr = np.concatenate(([0], np.cumsum(frequencies, dtype=np.int64)))
    return PhraseList(docs[:n_docs].copy(), frequencies, start_ptr, starts[:n_starts].copy())
