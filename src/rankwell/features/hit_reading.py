"""Hits from an index: where the terms of queries occur in the documents that were chosen as their candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankwell.errors import DataError
from rankwell.features.forward_counting import count_forward
from rankwell.features.hits import Hits, cell_bases, check_streams
from rankwell.features.phrase_hits import with_phrases
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.segments.posting_arrays import posting_arrays
from rankwell.index.segments.segment import Segment
from rankwell.index.statistics import Statistics
from rankwell.kernels.threads import kernel_threads

if TYPE_CHECKING:
    from rankwell.kernels.extraction.cpu.candidates import DocumentColumns
    from rankwell.kernels.extraction.cpu.hits import CellSources


def collect_hits(
    index: Index,
    queries: Sequence[Query],
    candidates: Sequence[np.ndarray],
    *,
    places: bool = True,
    n_jobs: int | None = None,
) -> Hits:
    """The hits of a batch of queries in their candidates.

    Parameters
    ----------
    queries : sequence of Query
    candidates : for each query, int64 (n,), numbers of documents of the index in any order
    places : bool
        Whether positions are read; features that do not read places (`FeatureSet.reads_places`) do without them.
    n_jobs : int, optional
        Threads; None is every core. The result does not depend on it.
    """
    from rankwell.kernels.extraction.cpu.hits import cell_offsets, cells_for_now, decode_hits

    with kernel_threads(n_jobs):
        batch = _Batch(index, queries, candidates)
        cells = cells_for_now(batch.n_cells)
        parts = _find(batch, cells)
        cell_ptr = cell_offsets(cells.frequency)
        positions = np.empty(int(cell_ptr[-1]) if places else 0, np.int32)
        for part in parts if places else ():
            encoded = part.segment.unverified("postings")
            decode_hits(encoded, cells, part.first_cell, part.n_cells, cell_ptr, positions)
        hits = batch.hits(parts, cell_ptr, positions)
    return with_phrases(hits, index, queries, candidates) if any(query.phrases for query in queries) else hits


def count_hits(
    index: Index, queries: Sequence[Query], candidates: Sequence[np.ndarray], *, n_jobs: int | None = None
) -> list[np.ndarray]:
    """Per query, how often each term occurs in each stream of its candidates: int32 (n, n_terms, n_streams).

    From the forward index where that is quicker, else from posting lists.
    """
    docs = [_checked_docs(index, own) for own in candidates]
    counted = [count_forward(index, query, own) for query, own in zip(queries, docs, strict=True)]
    rest = [number for number, counts in enumerate(counted) if counts is None]
    if rest:
        from_lists = _count_in_lists(index, [queries[one] for one in rest], [docs[one] for one in rest], n_jobs)
        for number, counts in zip(rest, from_lists, strict=True):
            counted[number] = counts
    return [counts for counts in counted if counts is not None]


def _count_in_lists(
    index: Index, queries: Sequence[Query], candidates: Sequence[np.ndarray], n_jobs: int | None
) -> list[np.ndarray]:
    from rankwell.kernels.extraction.cpu.hits import make_cells

    with kernel_threads(n_jobs):
        batch = _Batch(index, queries, candidates)
        cells = make_cells(batch.n_cells)
        _find(batch, cells)
    by_query = np.split(cells.frequency, batch.cell_base[1:-1])
    shapes = [
        (len(docs), len(query.terms), len(batch.streams)) for query, docs in zip(queries, candidates, strict=True)
    ]
    return [own.reshape(shape) for own, shape in zip(by_query, shapes, strict=True)]


def _numbers(docs: np.ndarray) -> np.ndarray:
    return np.asarray(docs, np.int64)


def _checked_docs(index: Index, docs: np.ndarray) -> np.ndarray:
    """Numbers of documents, int64; DataError if there is no such document."""
    docs = _numbers(docs)
    if len(docs) and (docs.min() < 0 or docs.max() >= index.bases[-1]):
        outside = docs[(docs < 0) | (docs >= index.bases[-1])][0]
        raise DataError(f"candidates must be documents 0 to {index.bases[-1] - 1}, got {outside}.")
    return docs


def _find(batch: _Batch, cells: CellSources) -> list[_SegmentPart]:
    """Store in `cells` where the hits of a batch come from; returns its parts by segment."""
    from rankwell.kernels.extraction.cpu.hits import Candidates, ListTasks, find_hits

    parts = [_SegmentPart(batch, number, places) for number, places in batch.by_segment()]
    for part in parts:
        candidates = Candidates(part.query_ptr, part.docs, part.within)
        find_hits(posting_arrays(part.segment), ListTasks(*part.tasks()), candidates, cells)
    return parts


class _Batch:
    """Queries and candidates as flat arrays."""

    def __init__(self, index: Index, queries: Sequence[Query], candidates: Sequence[np.ndarray]) -> None:
        from rankwell.kernels.extraction.cpu.candidates import order_candidates

        if len(queries) != len(candidates):
            raise DataError(f"each query needs its candidates: {len(queries)} queries, {len(candidates)} lists.")
        check_streams(index.schema.streams)
        self.index, self.queries = index, queries
        self.streams = tuple(index.schema.streams)
        self.docs = _checked_docs(index, np.concatenate([np.empty(0, np.int64), *map(_numbers, candidates)]))
        self.query_ptr = _offsets([len(docs) for docs in candidates])
        self.term_ptr = _offsets([len(query.terms) for query in queries])
        self.cell_base = cell_bases(self.query_ptr, self.term_ptr, len(self.streams))
        self.query_of_row = np.repeat(np.arange(len(queries)), np.diff(self.query_ptr))
        self.order = order_candidates(self.query_ptr, self.docs)

    @property
    def n_cells(self) -> int:
        return int(self.cell_base[-1])

    def by_segment(self) -> Iterator[tuple[int, np.ndarray | slice]]:
        """The segments that have candidates, and which places of `order` are theirs."""
        if len(self.index.segments) == 1:
            if len(self.order):
                yield 0, slice(None)
            return
        segments = self.index.bases.searchsorted(self.docs[self.order], side="right") - 1
        for number in np.flatnonzero(np.bincount(segments)).tolist():
            yield number, np.flatnonzero(segments == number)

    def hits(self, parts: Sequence[_SegmentPart], cell_ptr: np.ndarray, positions: np.ndarray) -> Hits:
        """All of it together, with the statistics of the collection and the data of the documents."""
        from rankwell.kernels.extraction.cpu.candidates import CandidateColumns, read_documents

        n_rows, n_streams, statics = len(self.docs), len(self.streams), tuple(self.index.schema.statics)
        columns = CandidateColumns(
            lengths=np.empty((n_rows, n_streams), np.int32),
            distinct=np.empty((n_rows, n_streams + 1), np.int32),
            statics=np.empty((n_rows, len(statics)), np.float32),
        )
        for part in parts:
            read_documents(part.documents(), part.rows, part.docs, columns)
        statistics = Statistics.of(self.index)
        terms = [statistics.term(term) for query in self.queries for term in query.terms]
        none = np.empty(0, np.int64)
        return Hits(
            streams=self.streams,
            static_names=statics,
            n_docs=statistics.n_docs,
            stream_tokens=statistics.tokens,
            query_ptr=self.query_ptr,
            term_ptr=self.term_ptr,
            query_frequency=np.array([count for query in self.queries for count in query.frequencies], np.int32),
            word_ptr=_offsets([len(query.words) for query in self.queries]),
            words=np.array([word for query in self.queries for word in query.words], np.int32),
            word_places=np.array([place for query in self.queries for place in query.places], np.int32),
            doc_freq=np.concatenate([none, *(term.doc_freq for term in terms)]),
            occurrences=np.concatenate([none, *(term.occurrences for term in terms)]),
            lengths=columns.lengths.reshape(-1),
            distinct=columns.distinct.reshape(-1),
            statics=columns.statics.reshape(-1),
            cell_base=self.cell_base,
            cell_ptr=cell_ptr,
            positions=positions,
        )


class _SegmentPart:
    """The candidates of one segment, ascending by document within each query: lists are read forwards."""

    def __init__(self, batch: _Batch, number: int, places: np.ndarray | slice) -> None:
        self.batch = batch
        self.segment: Segment = batch.index.segments[number]
        self.rows = batch.order[places]
        self.docs = (batch.docs[self.rows] - int(batch.index.bases[number])).astype(np.int32)
        queries = batch.query_of_row[places]
        self.within = self.rows - batch.query_ptr[queries]
        self.n_cells = np.diff(batch.term_ptr)[queries] * len(batch.streams)
        self.first_cell = batch.cell_base[queries] + self.within * self.n_cells
        self.query_ptr = _offsets(np.bincount(queries, minlength=len(batch.queries)))

    def tasks(self) -> tuple[np.ndarray, ...]:
        """The arrays of ListTasks: every list that a query's terms have here, checked against its checksums."""
        segment, n_streams = self.segment, len(self.batch.streams)
        found = []
        for query in np.flatnonzero(np.diff(self.query_ptr)).tolist():
            terms, first_cell = self.batch.queries[query].terms, int(self.batch.cell_base[query])
            for term, text in enumerate(terms):
                number = segment.term_number(text)
                if number >= 0:
                    first = number * segment.lists_per_term
                    segment.verify_lists(first, first + segment.n_streams)
                    found.append((first, query, first_cell + term * n_streams, len(terms) * n_streams))
        first_list, query_of, first_cells, steps = np.array(found, np.int64).reshape(-1, 4).T
        own = np.arange(segment.n_streams)
        by_stream = (np.add.outer(first_list, own), np.add.outer(first_cells, own))
        lists, cells = (array.reshape(-1) for array in by_stream)
        return lists, np.repeat(query_of, len(own)), cells, np.repeat(steps, len(own))

    def documents(self) -> DocumentColumns:
        """What the segment knows of its documents."""
        from rankwell.kernels.extraction.cpu.candidates import DocumentColumns

        segment = self.segment
        return DocumentColumns(
            segment["documents.lengths"],
            segment["documents.distinct"],
            segment["documents.statics"],
            segment.n_streams,
            segment.lists_per_term,
            segment.n_statics,
        )


def _offsets(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
