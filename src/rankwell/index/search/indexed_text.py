"""Long texts whose words the forward index has: a query's words are found without looking at all others.

The forward index gives the numbers of the words that are wanted, and the kernel that cut the text for the index gives
the places of words by their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankwell.index.segments.forward_index import find_terms

if TYPE_CHECKING:
    from rankwell.index.reader import Index
    from rankwell.index.search.caption import Hit, WantedTerms
    from rankwell.index.text.analysis import Analysis

LEAST_INDEXED = 1000
"""The characters of a text from which on words are found by the forward index.

Microseconds a text of processor time, by the text and by the forward index: the first time 18 and 17 at 300 characters,
46 and 23 at 1,000, 139 and 43 at 4,000, 670 and 128 at 20,000; again, with what was kept of the text, 3 and 9, 5 and
10, 11 and 13, 66 and 25 (CISI's texts, ten documents a query). From here on the first time saves more than four further
times cost. `python -m benchmarks forward_index` measures all that a node shows of documents.
"""


class DocumentWords:
    """Where a document has terms, by the forward index."""

    def __init__(self, index: Index, doc: int) -> None:
        # Not the index: who keeps this does so for as long as the index lives.
        self.segment, self._doc = index.locate(doc)
        self._streams = {index.schema.streams[number]: number for number in self.segment.forward_streams}

    def stream_of(self, name: str) -> int | None:
        """The number of a stream, None if the forward index does not have it."""
        return self._streams.get(name)

    def find(self, wanted: WantedTerms, stream: int) -> tuple[np.ndarray, list[int]]:
        """The positions of the words that are wanted, int32, ascending, and the numbers of their terms."""
        numbers = wanted.numbers(self.segment)
        found = find_terms(self.segment, self._doc, numbers).get(stream)
        if found is None:
            return np.empty(0, np.int32), []
        return found.positions, numbers[found.places].tolist()


class IndexedText:
    """A text that is a stream of the forward index: one line, with all words that were indexed."""

    # Nothing is kept by terms.
    n_terms = 0

    def __init__(self, text: str, stream: int, words: DocumentWords, analysis: Analysis) -> None:
        self.text, self._stream, self._words, self._analysis = text, stream, words, analysis
        self._places: WordPlaces | None = None

    def hits(self, wanted: WantedTerms, enough: int = 0) -> list[Hit] | None:
        """The words that are wanted, in their order; none if they have no more than `enough` different terms, None if
        the text does not have the words that were indexed."""
        positions, numbers = self._words.find(wanted, self._stream)
        if len(set(numbers)) <= enough:
            return []
        places = self._places
        if places is None:
            places = self._places = WordPlaces(self.text, self._analysis)
        if positions[-1] >= places.n_words:
            return None
        spans = places.of(positions)
        if not self.text.isascii() and not self._agree(spans, numbers):
            return None
        return [(start, stop, number) for (start, stop), number in zip(spans, numbers, strict=True)]

    def _agree(self, spans: list[tuple[int, int]], numbers: list[int]) -> bool:
        """Whether words have the terms of those numbers: another version of Unicode may cut other words."""
        terms = {number: self._words.segment.term(number) for number in set(numbers)}
        words = (self.text[start:stop].encode() for start, stop in spans)
        return [self._analysis.memory.term(word) for word in words] == [terms[number] for number in numbers]


class WordPlaces:
    """Where the words of a text are, by their numbers."""

    def __init__(self, text: str, analysis: Analysis) -> None:
        data = text.encode()
        self._spans = analysis.word_places(data).astype(np.int32)
        # The bytes that do not begin a character: the characters before a byte are so many less.
        self._inner = np.empty(0, np.int32)
        if not text.isascii():
            self._inner = np.flatnonzero((np.frombuffer(data, np.uint8) & 0xC0) == 0x80).astype(np.int32)

    @property
    def n_words(self) -> int:
        return len(self._spans)

    def of(self, words: np.ndarray) -> list[tuple[int, int]]:
        """The first character of each word and the one after its last."""
        spans = self._spans[words]
        if len(self._inner):
            spans -= np.searchsorted(self._inner, spans).astype(np.int32)
        found: list[tuple[int, int]] = spans.tolist()
        return found
