"""Search: the best documents of an index for a query."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.errors import ParameterError
from rankwell.index.best_documents import BestDocuments
from rankwell.index.bm25 import BM25, BM25F, ModelColumns, idf
from rankwell.index.document_filter import allowed_documents
from rankwell.index.query import Query, parse_query
from rankwell.index.segment_scoring import SegmentScoring
from rankwell.index.statistics import Statistics

if TYPE_CHECKING:
    from rankwell.index.reader import Index

Match = Literal["any", "all"]
_TERMS_REMEMBERED = 65_536
_MODELS_REMEMBERED = 16
# One in this many windows of a segment is sampled, if the sample has at least this many.
_SAMPLED = 16
_SAMPLES = 3
_selectors: WeakKeyDictionary[Index, dict[ModelColumns, Selector]] = WeakKeyDictionary()
_EVERYTHING = np.empty(0, np.uint8)
_EVERYTHING.flags.writeable = False


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The documents found, best first; equal scores by document number.

    docs : int64 (n,), document numbers; scores : float64 (n,); query : as it was parsed
    """

    docs: np.ndarray
    scores: np.ndarray
    query: Query
    _index: Index = field(repr=False)

    def __len__(self) -> int:
        return len(self.docs)

    @cached_property
    def ids(self) -> list[str]:
        """The user's ids of the documents."""
        return [self._index.id_of(doc) for doc in self.docs.tolist()]


def search(
    index: Index,
    query: str | Query,
    *,
    k: int = 10,
    model: BM25 | BM25F | None = None,
    match: Match = "any",
    prune: bool = True,
) -> SearchResult:
    """The best k documents of an index for a query.

    Parameters
    ----------
    query : str or Query
        A text is cut by `parse_query`: words, "phrases", +required and -excluded ones.
    k : int
        How many documents at most.
    model : BM25 or BM25F
        By default BM25 over the whole document with k1 = 1.2 and b = 0.75.
    match : "any" or "all"
        Whether a document must have one of the words or all of them.
    prune : bool
        Skip documents that cannot be among the best k. Without it the result is the same, to the last bit, but slower.
    """
    if match not in ("any", "all"):
        raise ParameterError(f"must be 'any' or 'all', got {match!r}.", parameter="match")
    try:
        k = operator.index(k)
    except TypeError as cause:
        raise ParameterError(f"must be a whole number, got {k!r}.", parameter="k") from cause
    if k < 1:
        raise ParameterError(f"must be 1 or more, got {k}.", parameter="k")
    parsed = query if isinstance(query, Query) else parse_query(query, index.analysis)
    if model is not None and not isinstance(model, BM25 | BM25F):
        raise ParameterError(f"must be a BM25 or a BM25F, got {model!r}.", parameter="model")
    docs, scores = Selector.of(index, model or BM25()).select(parsed, min(k, max(index.n_docs, 1)), match, prune)
    return SearchResult(docs, scores, parsed, index)


def count(index: Index, query: str | Query, *, model: BM25 | BM25F | None = None, match: Match = "any") -> int:
    """How many live documents match a query; parameters as those of `search`.

    `search` skips documents that cannot be among the best, so it does not know the number. This reads which documents
    the query's lists have, and no frequencies.
    """
    if match not in ("any", "all"):
        raise ParameterError(f"must be 'any' or 'all', got {match!r}.", parameter="match")
    parsed = query if isinstance(query, Query) else parse_query(query, index.analysis)
    return Selector.of(index, model or BM25()).count(parsed, match)


class _Term(NamedTuple):
    """A term of the index: its idf · (k1 + 1), and in each segment its lists and the one that drives it if required."""

    weight: float
    lists: tuple[tuple[int, ...], ...]
    drivers: tuple[int, ...]


# The place of a term that was not looked up yet; None is a term that no live document has.
_UNKNOWN = _Term(0.0, (), ())


class Selector:
    """An index prepared to be searched with one model: `Selector.of(index, model)` caches it.

    It keeps a norm for each document (8 bytes for each stream the model reads) and, of the lists that queries have
    used, the bounds of their blocks.
    """

    def __init__(self, index: Index, model: ModelColumns) -> None:
        # Not the index itself: it is the key under which this is cached for as long as the index lives.
        self.model, self._bases = model, index.bases.tolist()
        self.statistics = Statistics.of(index)
        self._parts = [SegmentScoring(segment, self.statistics, model) for segment in index.segments]
        self._live = [None if live is None else _read_only(live) for live in index.live]
        self._terms: dict[bytes, _Term | None] = {}
        self._column_weights = np.array(model.weights, np.float64)

    @classmethod
    def of(cls, index: Index, model: BM25 | BM25F) -> Selector:
        columns = model.columns(index.schema)
        of_index = _selectors.get(index)
        if of_index is None:
            of_index = _selectors[index] = {}
        known = of_index.get(columns)
        if known is None:
            if len(of_index) >= _MODELS_REMEMBERED:
                of_index.clear()
            known = of_index[columns] = cls(index, columns)
        return known

    def select(self, query: Query, k: int, match: Match, prune: bool) -> tuple[np.ndarray, np.ndarray]:
        """The best k documents of a query, and their scores."""
        asked = self._asked_terms(query, match)
        best = BestDocuments(k)
        for number in range(len(self._parts)):
            prepared = self._prepare(number, query, asked)
            if prepared is not None:
                self._select_part(number, prepared[0], prepared[1], prune, best)
        return best.ranked()

    def count(self, query: Query, match: Match) -> int:
        """How many documents match a query."""
        asked = self._asked_terms(query, match)
        total = 0
        for number in range(len(self._parts)):
            prepared = self._prepare(number, query, asked)
            if prepared is not None:
                total += self._count_part(number, prepared[0])
        return total

    def _count_part(self, number: int, query: Any) -> int:
        """How many documents of a segment have all required terms, or one of the others if none is required."""
        from rankwell.kernels.selection.filters import mark_documents

        part = self._parts[number]
        n_docs = part.segment.n_docs
        matching = np.ones(n_docs, np.uint8) if len(query.allowed) == 0 else query.allowed.copy()
        any_of_them = np.zeros(n_docs, np.uint8)
        for lists, must in zip(query.numbers.reshape(len(query.required), -1), query.required, strict=True):
            own = np.zeros(n_docs, np.uint8) if must else any_of_them
            for one in lists[lists >= 0].tolist():
                mark_documents(part.arrays, one, 1, own)
            if must:
                matching &= own
        if not query.required.any():
            matching &= any_of_them
        return int(np.count_nonzero(matching))

    def _select_part(self, number: int, query: Any, driver: int, prune: bool, best: BestDocuments) -> None:
        """Offer a segment's documents to `best`.

        A large segment is sampled first. The k-th best score is very likely above that of the sample's r-th best
        document: of the best k about k / SAMPLED are in the sample, and r is three standard deviations more. With this
        guess as a threshold most of the segment is skipped. It was right if k documents beat it; otherwise the segment
        is searched again without it.
        """
        from rankwell.kernels.selection.windows import WINDOW

        part = self._parts[number]
        start = (part.arrays, part.scoring, query, self.model.k1, driver)
        base, n_docs, k = self._bases[number], part.segment.n_docs, best.k
        if prune and n_docs >= _SAMPLED * _SAMPLES * WINDOW and k * _SAMPLED <= n_docs:
            sample = BestDocuments(math.ceil(k / _SAMPLED + 3.0 * math.sqrt(k / _SAMPLED) + 1.0), best.threshold)
            sample.search(start, _SAMPLED, True, base)
            if sample.size >= sample.k:
                # Just below it, so that documents with an equal score are not lost.
                likely = BestDocuments(k, float(np.nextafter(sample.kth_score(), 0.0)))
                likely.search(start, 1, True, base)
                if likely.size >= k:
                    best.join(likely)
                    return
        best.search(start, 1, prune, base)

    def _asked_terms(self, query: Query, match: Match) -> list[tuple[float, bytes, _Term, bool]]:
        """(−weight, term, its data, whether it is required) by falling weight; empty if nothing can match."""
        required = set(query.terms if match == "all" else query.required)
        asked = []
        for term, frequency in zip(query.terms, query.frequencies, strict=True):
            known = self._term(term)
            if known is not None:
                asked.append((-frequency * known.weight, term, known, term in required))
            elif term in required:
                return []
        asked.sort(key=operator.itemgetter(0, 1))
        return asked

    def _term(self, term: bytes) -> _Term | None:
        """What is known about a term; None if no live document has it."""
        # One look-up: between two, another thread may clear the dictionary.
        known: _Term | None = self._terms.get(term, _UNKNOWN)
        if known is not _UNKNOWN:
            return known
        doc_freq = int(self.statistics.term(term).doc_freq[self.model.counted])
        known = None
        if doc_freq > 0:
            lists, drivers = zip(*(part.lists_of(term) for part in self._parts), strict=True)
            known = _Term(idf(self.statistics.n_docs, doc_freq) * (self.model.k1 + 1.0), lists, drivers)
        if len(self._terms) >= _TERMS_REMEMBERED:
            self._terms.clear()
        self._terms[term] = known
        return known

    def _prepare(self, number: int, query: Query, asked: Sequence[tuple[float, bytes, _Term, bool]]) -> Any:
        """The kernel's QueryArrays for a segment, and the list that drives it (-1: none); None if nothing matches."""
        from rankwell.kernels.selection.windows import QueryArrays

        here = [entry for entry in asked if entry[2].drivers[number] >= 0]
        if not here or any(must for _, _, known, must in asked if known.drivers[number] < 0):
            return None
        part, driver = self._parts[number], -1
        drivers = [known.drivers[number] for _, _, known, must in here if must]
        if drivers:
            driver = min(drivers, key=part.arrays.doc_freq.__getitem__)
        numbers = np.array([known.lists[number] for _, _, known, _ in here], np.int64).reshape(-1)
        weights = np.array([-negative for negative, _, _, _ in here], np.float64)
        required = np.array([must for _, _, _, must in here], np.uint8)
        allowed = allowed_documents(part.segment, self._live[number], query, self.model)
        arrays = QueryArrays(
            numbers, weights, required, self._column_weights, _EVERYTHING if allowed is None else allowed
        )
        return arrays, driver


def _read_only(live: np.ndarray) -> np.ndarray:
    """Kernels are compiled for arrays that are not written to."""
    view = live.view()
    view.flags.writeable = False
    return view
