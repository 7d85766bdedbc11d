"""Candidates of a batch of queries: their order in the lists that are read, and what their segment knows of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.threads import run_ranges

# Candidates that are worth a thread: to order them, and to read what is known of them, takes some tenths of a
# millisecond.
_LEAST_ORDERED = 2**14
_LEAST_READ = 2**13
_RADIX_BITS = 8
_RADIX = 1 << _RADIX_BITS


class DocumentColumns(NamedTuple):
    """What a segment knows of its documents, document after document.

    lengths, distinct : int32, `n_lists` numbers each: of its streams, and of the whole document last
    statics : float64, `n_statics` numbers each
    """

    lengths: np.ndarray
    distinct: np.ndarray
    statics: np.ndarray
    n_streams: int
    n_lists: int
    n_statics: int


class CandidateColumns(NamedTuple):
    """The same of the candidates of a batch, as in `rankwell.features.hits.Hits`.

    lengths : int32 (N, S); distinct : int32 (N, S + 1); statics : float32 (N, n_statics)
    """

    lengths: np.ndarray
    distinct: np.ndarray
    statics: np.ndarray


def order_candidates(query_ptr: np.ndarray, docs: np.ndarray) -> np.ndarray:
    """The rows of `docs` by document within each query, equal ones in the order they have: int64 (n,).

    query_ptr : int64 (Q + 1,); docs : int64 (n,), 0 or more
    """
    order, n_queries = np.empty(len(docs), np.int64), len(query_ptr) - 1
    run_ranges(
        lambda first, last: order_queries(first, last, query_ptr, docs, order),
        n_queries,
        least_items=-(-n_queries * _LEAST_ORDERED // max(1, len(docs))),
    )
    return order


@kernel
def order_queries(first, last, query_ptr, docs, order):
    """`order_candidates` of the queries first, ..., last − 1: by their last digits first."""
    most = np.int64(0)
    for query in range(first, last):
        most = max(most, query_ptr[query + 1] - query_ptr[query])
    spare, ends = np.empty(most, np.int64), np.empty(_RADIX, np.int64)
    for query in range(first, last):
        start, stop = query_ptr[query], query_ptr[query + 1]
        largest = np.int64(0)
        for row in range(start, stop):
            order[row] = row
            largest = max(largest, docs[row])
        shift = np.int64(0)
        while largest >> shift > 0:
            for digit in range(_RADIX):
                ends[digit] = 0
            for row in range(start, stop):
                ends[docs[row] >> shift & (_RADIX - 1)] += 1
            total = np.int64(0)
            for digit in range(_RADIX):
                total += ends[digit]
                ends[digit] = total - ends[digit]
            for place in range(start, stop):
                row = order[place]
                digit = docs[row] >> shift & (_RADIX - 1)
                spare[ends[digit]] = row
                ends[digit] += 1
            for place in range(stop - start):
                order[start + place] = spare[place]
            shift += _RADIX_BITS


def read_documents(segment: DocumentColumns, rows: np.ndarray, docs: np.ndarray, candidates: CandidateColumns) -> None:
    """Fill in what a segment knows of some candidates: no words in a stream that it lacks, NaN for such a static.

    rows : int64 (n,), of `candidates`; docs : int32 (n,), their numbers in the segment
    """
    run_ranges(
        lambda first, last: read_rows(first, last, segment, rows, docs, candidates),
        len(rows),
        least_items=_LEAST_READ,
    )


@kernel(allocates=False)
def read_rows(first, last, segment, rows, docs, candidates):
    """`read_documents` of the rows first, ..., last − 1."""
    n_streams, n_statics = candidates.lengths.shape[1], candidates.statics.shape[1]
    for i in range(first, last):
        row, doc = rows[i], np.int64(docs[i])
        own, static = doc * segment.n_lists, doc * segment.n_statics
        for stream in range(n_streams):
            is_known = stream < segment.n_streams
            candidates.lengths[row, stream] = segment.lengths[own + stream] if is_known else 0
            candidates.distinct[row, stream] = segment.distinct[own + stream] if is_known else 0
        candidates.distinct[row, n_streams] = segment.distinct[own + segment.n_lists - 1]
        for number in range(n_statics):
            value = segment.statics[static + number] if number < segment.n_statics else np.nan
            candidates.statics[row, number] = value
