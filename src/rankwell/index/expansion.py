"""The words of an index that a prefix means."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence

from rankwell.index.posting_arrays import segment_column
from rankwell.index.segment import Segment
from rankwell.index.statistics import Statistics


def frequent_words(
    segments: Sequence[Segment], statistics: Statistics, prefix: bytes, column: int, most: int
) -> tuple[list[bytes], bool]:
    """The `most` terms that begin with `prefix` and are in the most live documents, and whether those are all.

    Of equal ones the first by their bytes; a term that no live document has in that column (a stream's number, or
    WHOLE) is none.
    """
    n_docs: Counter[bytes] = Counter()
    for number, segment in enumerate(segments):
        own = segment_column(segment, column)
        if own is not None:
            for term, count in zip(*_terms_and_counts(segment, number, statistics, prefix, own), strict=True):
                n_docs[term] += count
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
