"""An index prepared to be searched with one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.index.query.plan import Alternative, ScoredTerm
from rankwell.index.search.allowed_documents import Allowed, live_documents
from rankwell.index.search.best_documents import BestDocuments
from rankwell.index.search.bm25 import ModelColumns, idf
from rankwell.index.search.pruning import SAMPLED, Pruning, choose_pruning, sample_size
from rankwell.index.search.segment_scoring import SegmentScoring
from rankwell.index.statistics import Statistics

if TYPE_CHECKING:
    from rankwell.index.reader import Index

_TERMS_REMEMBERED = 65_536
_MODELS_REMEMBERED = 16
_selectors: WeakKeyDictionary[Index, dict[ModelColumns, Selector]] = WeakKeyDictionary()
# Of a query whose terms have one list each: the lists of each term, and their rows of the norms.
_ONE_LIST_EACH = np.arange(1025, dtype=np.int64)
_FIRST_ROW = np.zeros(1025, np.int64)
_NO_WEIGHTS = np.empty(0, np.float64)


class _Term(NamedTuple):
    """A term of the index, or several that count as one.

    name : what terms of equal weight are ordered by
    doc_freq : how many documents have it; weight : idf · (k1 + 1)
    lists : in each segment the lists, the rows of their norms and what their occurrences count
    drivers : in each segment a list that has all its documents; -1: it has no document, -2: there is no such list
    """

    name: tuple[tuple[bytes, str], ...]
    doc_freq: int
    weight: float
    lists: tuple[tuple[tuple[int, int, float], ...], ...]
    drivers: tuple[int, ...]


# The place of a term that was not looked up yet; None is a term that no live document has.
_UNKNOWN = _Term((), 0, 0.0, (), ())

# (−weight in the query, name, the term, whether it is required), as they are sorted.
Asked = tuple[float, tuple[tuple[bytes, str], ...], _Term, bool]


class _SegmentSearch(NamedTuple):
    """A query in the first documents of a segment: the kernel's QueryArrays, and how it is searched."""

    number: int
    n_docs: int
    query: Any
    driver: int
    pruning: Pruning


class Selector:
    """An index prepared to be searched with one model: `Selector.of(index, model)` caches it.

    It keeps a norm for each document (8 bytes for each stream the model reads) and, of the lists that queries have
    used, the bounds of their blocks.
    """

    def __init__(self, index: Index, model: ModelColumns) -> None:
        # Not the index itself: it is the key under which this is cached for as long as the index lives.
        self.model, self._bases = model, index.bases.tolist()
        self.statistics = Statistics.of(index)
        self._stream_numbers = {name: number for number, name in enumerate(index.schema.streams)}
        self._parts = [SegmentScoring(segment, self.statistics, model) for segment in index.segments]
        self._live = live_documents(index)
        self._terms: dict[tuple[bytes, str | None], _Term | None] = {}

    @classmethod
    def of(cls, index: Index, columns: ModelColumns) -> Selector:
        of_index = _selectors.get(index)
        if of_index is None:
            of_index = _selectors[index] = {}
        known = of_index.get(columns)
        if known is None:
            if len(of_index) >= _MODELS_REMEMBERED:
                of_index.clear()
            known = of_index[columns] = cls(index, columns)
        return known

    def asked_words(self, terms: Sequence[bytes], frequencies: Sequence[int], must: bool) -> list[Asked]:
        """Words as `select` takes them, all of them required or none; no words if a document cannot have them all."""
        asked: list[Asked] = []
        for term, frequency in zip(terms, frequencies, strict=True):
            known = self._term(term, None)
            if known is not None:
                asked.append((-frequency * known.weight, known.name, known, must))
            elif must:
                return []
        asked.sort(key=itemgetter(0, 1))
        return asked

    def asked_terms(self, scored: Sequence[ScoredTerm]) -> list[Asked]:
        """A plan's terms as `select` takes them; none if no document has all the required ones."""
        asked: list[Asked] = []
        for term in scored:
            known = self._joined(term.alternatives)
            if known is not None:
                asked.append((-term.factor * known.weight, known.name, known, term.is_required))
            elif term.is_required:
                return []
        asked.sort(key=itemgetter(0, 1))
        return asked

    def select(
        self,
        asked: Sequence[Asked],
        allowed: Sequence[Allowed] | None,
        k: int,
        prune: bool,
        reach: Sequence[int] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best k of the allowed documents, and their scores; only those with a score above 0.

        asked : of `asked_words` or `asked_terms`; allowed : for each segment; None: all live documents
        reach : how many documents of each segment are searched, from its first on; None: all
        """
        return self.prepare(asked, allowed, k, prune, reach)()

    def prepare(
        self,
        asked: Sequence[Asked],
        allowed: Sequence[Allowed] | None,
        k: int,
        prune: bool,
        reach: Sequence[int] | None = None,
    ) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        """A `select` that is still to be called: most of that is done without the interpreter lock, in any thread."""
        among = self._live if allowed is None else allowed
        share = most_matches(asked) / max(self.statistics.n_docs, 1)
        searches: list[_SegmentSearch] = []
        for number, part in enumerate(self._parts):
            n_docs = part.segment.n_docs if reach is None else reach[number]
            prepared = self._prepare(number, asked, among[number]) if n_docs else None
            if prepared is not None:
                query, driver = prepared
                pruning = self._pruning(number, n_docs, share, k, query, driver) if prune else Pruning.NONE
                searches.append(_SegmentSearch(number, n_docs, query, driver, pruning))
        return partial(self._select, searches, k)

    def _select(self, searches: Sequence[_SegmentSearch], k: int) -> tuple[np.ndarray, np.ndarray]:
        best = BestDocuments(k)
        for one in searches:
            self._select_part(*one, best)
        return best.ranked()

    def _pruning(self, number: int, n_docs: int, share: float, k: int, query: Any, driver: int) -> Pruning:
        """What the search of a segment's first documents skips; share : of the documents that match, about."""
        from rankwell.kernels.selection.windows import WINDOW

        n_chosen = len(query.chosen)
        n_windows = 0 if n_chosen else -(-n_docs // WINDOW)
        return choose_pruning(k, share * self._bases[number], share * n_docs, n_windows, driver >= 0 or n_chosen > 0)

    def _select_part(
        self, number: int, n_docs: int, query: Any, driver: int, pruning: Pruning, best: BestDocuments
    ) -> None:
        """Offer a segment's first documents to `best`.

        An estimate is the score of a document of a sample, one that is very likely below the k-th best. With it as a
        threshold most of the segment is skipped. It was right if k documents beat it; otherwise the segment is searched
        again without it.
        """
        part, base, k = self._parts[number], self._bases[number], best.k
        start = (part.arrays, part.scoring, query, self.model.k1, driver, n_docs)
        if pruning is Pruning.ESTIMATE:
            sample = BestDocuments(sample_size(k), best.threshold)
            sample.search(start, SAMPLED, True, base)
            if sample.size >= sample.k:
                # Just below it, so that documents with an equal score are not lost.
                likely = BestDocuments(k, float(np.nextafter(sample.kth_score(), 0.0)))
                likely.search(start, 1, True, base)
                if likely.size >= k:
                    best.join(likely)
                    return
        best.search(start, 1, pruning is not Pruning.NONE, base)

    def _term(self, term: bytes, field: str | None) -> _Term | None:
        """What is known about a term in a field; None if no live document has it."""
        key = (term, field)
        # One look-up: between two, another thread may clear the dictionary.
        known: _Term | None = self._terms.get(key, _UNKNOWN)
        if known is not _UNKNOWN:
            return known
        column = None if field is None else self._stream_numbers[field]
        doc_freq = int(self.statistics.term(term).doc_freq[self.model.counted if column is None else column])
        known = None
        if doc_freq > 0:
            weights = self.model.weights or (1.0,)
            found = [part.lists_of(term, column) for part in self._parts]
            lists = tuple(tuple((one, row, weights[row]) for one, row in own) for own, _ in found)
            drivers = tuple(driver for _, driver in found)
            known = _Term(((term, field or ""),), doc_freq, self.weight(doc_freq), lists, drivers)
        if len(self._terms) >= _TERMS_REMEMBERED:
            self._terms.clear()
        self._terms[key] = known
        return known

    def saturated(self, number: int, docs: np.ndarray, rows: Sequence[int], counts: np.ndarray) -> np.ndarray:
        """What a term that occurs so often in documents of a segment adds to their scores, by weight: float64 (n,).

        rows : of the model's columns; counts : float64 (n_rows, n), the term's frequencies in these columns
        """
        norms = self._parts[number].scoring.norms
        if self.model.weights:
            total = np.zeros(len(docs))
            for row, own in zip(rows, counts, strict=True):
                total += self.model.weights[row] * (own * norms[row, docs])
            below = total + self.model.k1
        else:
            total, below = counts[0], counts[0] + norms[rows[0], docs]
        return np.divide(total, below, out=np.zeros(len(docs)), where=total > 0.0)

    def weight(self, doc_freq: int) -> float:
        """idf · (k1 + 1) of a term that so many documents have."""
        return idf(self.statistics.n_docs, doc_freq) * (self.model.k1 + 1.0)

    def _joined(self, alternatives: Sequence[Alternative]) -> _Term | None:
        """Terms that count as one; of their document frequencies the largest counts."""
        found = [(one.weight, known) for one in alternatives if (known := self._term(one.term, one.field)) is not None]
        if not found or (len(found) == 1 and found[0][0] == 1.0):
            return found[0][1] if found else None
        doc_freq = max(term.doc_freq for _, term in found)
        segments = range(len(self._parts))
        lists = tuple(
            tuple((one, row, weight * own) for weight, term in found for one, row, own in term.lists[number])
            for number in segments
        )
        drivers = tuple(_one_of([term.drivers[number] for _, term in found]) for number in segments)
        name = tuple(part for _, term in found for part in term.name)
        return _Term(name, doc_freq, self.weight(doc_freq), lists, drivers)

    def _prepare(self, number: int, asked: Sequence[Asked], allowed: Allowed) -> Any:
        """The kernel's QueryArrays for a segment, and the list that drives it (-1: none); None if nothing matches."""
        from rankwell.kernels.selection.windows import QueryArrays

        here = [entry for entry in asked if entry[2].drivers[number] != -1]
        if not here or any(must for _, _, term, must in asked if term.drivers[number] == -1):
            return None
        driver = -1
        drivers = [term.drivers[number] for _, _, term, must in here if must and term.drivers[number] >= 0]
        if drivers:
            driver = min(drivers, key=self._parts[number].arrays.doc_freq.__getitem__)
        weights = np.array([-negative for negative, _, _, _ in here], np.float64)
        required = np.array([must for _, _, _, must in here], np.uint8)
        arrays = QueryArrays(
            *self._lists_in([term.lists[number] for _, _, term, _ in here]), weights, required, *allowed
        )
        return arrays, driver

    def _lists_in(
        self, by_term: Sequence[tuple[tuple[int, int, float], ...]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The lists of terms in a segment: numbers, where each term's begin, rows and weights."""
        if not self.model.weights:
            lists = np.array([own[0][0] for own in by_term], np.int64)
            return lists, _ONE_LIST_EACH[: len(lists) + 1], _FIRST_ROW[: len(lists)], _NO_WEIGHTS
        numbers, rows, weights = zip(*(entry for own in by_term for entry in own), strict=True)
        list_ptr = np.zeros(len(by_term) + 1, np.int64)
        np.cumsum([len(own) for own in by_term], out=list_ptr[1:])
        return np.array(numbers, np.int64), list_ptr, np.array(rows, np.int64), np.array(weights, np.float64)


def most_matches(asked: Sequence[Asked]) -> int:
    """At most how many documents match, over all segments."""
    required = [term.doc_freq for _, _, term, must in asked if must]
    return min(required) if required else sum(term.doc_freq for _, _, term, _ in asked)


def _one_of(drivers: list[int]) -> int:
    """The list that has all documents of several terms: that of the only one that has any."""
    present = [driver for driver in drivers if driver != -1]
    return -1 if not present else present[0] if len(present) == 1 else -2
