"""The words of an index that a prefix means."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rankwell.index.segments.posting_arrays import segment_column
from rankwell.index.segments.segment import Segment
from rankwell.index.statistics import Statistics


def prefix_counts(segments: Sequence[Segment], statistics: Statistics, prefix: bytes, column: int) -> Counter[bytes]:
    """How many live documents have each term that begins with `prefix` in a column (a stream's number, or WHOLE)."""
    n_docs: Counter[bytes] = Counter()
    for number, segment in enumerate(segments):
        own = segment_column(segment, column)
        if own is not None:
            for term, count in zip(*_terms_and_counts(segment, number, statistics, prefix, own), strict=True):
                n_docs[term] += count
    return n_docs


def most_frequent(n_docs: Mapping[bytes, int], most: int) -> tuple[list[bytes], bool]:
    """The `most` terms that are in the most documents, and whether those are all that are in any.

    Of equal ones the first by their bytes.
    """
    found = [(-count, term) for term, count in n_docs.items() if count]
    return [term for _, term in heapq.nsmallest(most, found)], len(found) <= most


def _terms_and_counts(
    segment: Segment, number: int, statistics: Statistics, prefix: bytes, column: int
) -> tuple[Iterator[bytes], list[int]]:
    """The terms of a segment that begin with a prefix, and how many live documents have each in a list column."""
    first, stop = segment.terms_with_prefix(prefix)
    lists = range(
        first * segment.lists_per_term + column, stop * segment.lists_per_term + column, segment.lists_per_term
    )
    return segment.terms_between(first, stop), statistics.live_documents(number, lists)
