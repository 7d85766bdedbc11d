"""Hits from an index: where the terms of queries occur in the documents that were chosen as their candidates."""

from __future__ import annotations

from collections.abc import Sequence
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
    from rankwell.kernels.extraction.cpu.hits import decode_hits

    batch = _Batch(index, queries, candidates)
    with kernel_threads(n_jobs):
        parts, cells = _find(batch)
        cell_ptr = _offsets(cells.frequency)
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
    batch = _Batch(index, queries, candidates)
    with kernel_threads(n_jobs):
        _, cells = _find(batch)
    by_query = np.split(cells.frequency, batch.cell_base[1:-1])
    shapes = [
        (len(docs), len(query.terms), len(batch.streams)) for query, docs in zip(queries, candidates, strict=True)
    ]
    return [own.reshape(shape) for own, shape in zip(by_query, shapes, strict=True)]


def _checked_docs(index: Index, docs: np.ndarray) -> np.ndarray:
    """Numbers of documents, int64; DataError if there is no such document."""
    docs = np.asarray(docs, np.int64)
    if len(docs) and (docs.min() < 0 or docs.max() >= index.bases[-1]):
        outside = docs[(docs < 0) | (docs >= index.bases[-1])][0]
        raise DataError(f"candidates must be documents 0 to {index.bases[-1] - 1}, got {outside}.")
    return docs


def _find(batch: _Batch) -> tuple[list[_SegmentPart], CellSources]:
    """The parts of a batch by segment, and where the hits of all its cells come from."""
    from rankwell.kernels.extraction.cpu.hits import Candidates, CellSources, ListTasks, find_hits

    n_cells = int(batch.cell_base[-1])
    cells = CellSources(np.zeros(n_cells, np.int32), np.empty(n_cells, np.int64), np.empty(n_cells, np.uint8))
    parts = [_SegmentPart(batch, number) for number in np.unique(batch.segment_of_row).tolist()]
    for part in parts:
        candidates = Candidates(part.query_ptr, part.docs, part.within)
        find_hits(posting_arrays(part.segment), ListTasks(*part.tasks()), candidates, cells)
    return parts, cells


class _Batch:
    """Queries and candidates as flat arrays."""

    def __init__(self, index: Index, queries: Sequence[Query], candidates: Sequence[np.ndarray]) -> None:
        if len(queries) != len(candidates):
            raise DataError(f"each query needs its candidates: {len(queries)} queries, {len(candidates)} lists.")
        check_streams(index.schema.streams)
        self.index, self.queries = index, queries
        self.streams = tuple(index.schema.streams)
        self.docs = np.concatenate([np.empty(0, np.int64), *(_checked_docs(index, docs) for docs in candidates)])
        self.query_ptr = _offsets([len(docs) for docs in candidates])
        self.term_ptr = _offsets([len(query.terms) for query in queries])
        self.cell_base = cell_bases(self.query_ptr, self.term_ptr, len(self.streams))
        self.query_of_row = np.repeat(np.arange(len(queries)), np.diff(self.query_ptr))
        self.segment_of_row = np.searchsorted(index.bases, self.docs, side="right") - 1

    def hits(self, parts: Sequence[_SegmentPart], cell_ptr: np.ndarray, positions: np.ndarray) -> Hits:
        """All of it together, with the statistics of the collection and the data of the documents."""
        n_rows, n_columns = len(self.docs), len(self.streams) + 1
        statics = tuple(self.index.schema.statics)
        lengths = np.zeros((n_rows, n_columns), np.int32)
        distinct = np.zeros((n_rows, n_columns), np.int32)
        numbers = np.full((n_rows, len(statics)), np.nan, np.float32)
        for part in parts:
            lengths[part.rows] = part.by_column("documents.lengths", n_columns)
            distinct[part.rows] = part.by_column("documents.distinct", n_columns)
            numbers[part.rows, : part.segment.n_statics] = part.statics()
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
            lengths=np.ascontiguousarray(lengths[:, :-1]).reshape(-1),
            distinct=distinct.reshape(-1),
            statics=numbers.reshape(-1),
            cell_base=self.cell_base,
            cell_ptr=cell_ptr,
            positions=positions,
        )


class _SegmentPart:
    """The candidates of one segment, ascending by document within each query: lists are read forwards."""

    def __init__(self, batch: _Batch, number: int) -> None:
        self.batch = batch
        self.segment: Segment = batch.index.segments[number]
        rows = np.flatnonzero(batch.segment_of_row == number)
        docs = batch.docs[rows] - int(batch.index.bases[number])
        # By query, then by document, as one number: to sort by two takes more than twice as long.
        order = np.argsort(batch.query_of_row[rows] * self.segment.n_docs + docs, kind="stable")
        self.rows, self.docs = rows[order], docs[order].astype(np.int32)
        queries = batch.query_of_row[self.rows]
        self.within = self.rows - batch.query_ptr[queries]
        self.n_cells = np.diff(batch.term_ptr)[queries] * len(batch.streams)
        self.first_cell = batch.cell_base[queries] + self.within * self.n_cells
        self.query_ptr = _offsets(np.bincount(queries, minlength=len(batch.queries)))

    def tasks(self) -> tuple[np.ndarray, ...]:
        """The arrays of ListTasks: every list that a query's terms have here, checked against its checksums."""
        segment, n_streams = self.segment, len(self.batch.streams)
        tasks = []
        for query in np.flatnonzero(np.diff(self.query_ptr)).tolist():
            terms = self.batch.queries[query].terms
            for term, text in enumerate(terms):
                number = segment.term_number(text)
                if number < 0:
                    continue
                for stream in range(segment.n_streams):
                    list_number = number * segment.lists_per_term + stream
                    segment.verify_list(list_number)
                    cell = int(self.batch.cell_base[query]) + term * n_streams + stream
                    tasks.append((list_number, query, cell, len(terms) * n_streams))
        return tuple(np.ascontiguousarray(column) for column in np.array(tasks, np.int64).reshape(-1, 4).T)

    def by_column(self, name: str, n_columns: int) -> np.ndarray:
        """Rows of an array that has a number for each list column: int32 (n, n_columns), the whole document last."""
        segment = self.segment
        own = segment[name].reshape(segment.n_docs, segment.lists_per_term)[self.docs]
        values = np.zeros((len(own), n_columns), np.int32)
        values[:, : segment.n_streams] = own[:, : segment.n_streams]
        values[:, -1] = own[:, -1]
        return values

    def statics(self) -> np.ndarray:
        segment = self.segment
        return segment["documents.statics"].reshape(segment.n_docs, segment.n_statics)[self.docs]


def _offsets(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
