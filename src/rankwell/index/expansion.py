"""The words of an index that a prefix means."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from rankwell.index.segment import Segment
from rankwell.index.statistics import Statistics


def frequent_words(
    segments: Sequence[Segment], statistics: Statistics, prefix: bytes, column: int, most: int
) -> tuple[list[bytes], bool]:
    """The `most` terms that begin with `prefix` and are in the most live documents, and whether those are all.

    Of equal ones the first by their bytes; a term that no live document has in that column (a stream's number, or
    WHOLE) is none.
    """
    terms = {segment.term(number) for segment in segments for number in range(*segment.terms_with_prefix(prefix))}
    counted = [(-int(statistics.term(term).doc_freq[column]), term) for term in terms]
    found = [pair for pair in counted if pair[0] < 0]
    return [term for _, term in heapq.nsmallest(most, found)], len(found) <= most
