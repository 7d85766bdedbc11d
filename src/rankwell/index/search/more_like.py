"""More like this: documents that share the words which describe a document best.

Of a document's terms t, occurring tf times, the `terms` with the largest

    tf / (tf + 1.2) · log(1 + (N − df + 0.5) / (df + 0.5))

are the words of a query, in which each counts 2.2 · tf / (tf + 1.2). Common words, and terms that no other document
has, are not among them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from heapq import nsmallest
from typing import TYPE_CHECKING

from rankwell.errors import DataError, ParameterError
from rankwell.index.query.query import Query, query_of
from rankwell.index.query.tree import Group, Word
from rankwell.index.search.selection import Filter, SearchResult, search
from rankwell.index.segments.document_counts import document_counts
from rankwell.index.statistics import Statistics

if TYPE_CHECKING:
    from rankwell.index.reader import Index
    from rankwell.index.search.bm25 import BM25, BM25F

TERMS = 25
MOST_TERMS = 1024
SATURATION = 1.2


def more_like(
    index: Index,
    document_id: str | int,
    *,
    k: int = 10,
    terms: int = TERMS,
    model: BM25 | BM25F | None = None,
    filter: Filter | None = None,
) -> SearchResult:
    """The k documents that are most like a document of the index, without itself.

    Parameters
    ----------
    document_id : str or int
    terms : int
        How many of the document's terms are searched.
    k, model, filter : as those of `rankwell.index.search.selection.search`
    """
    doc = index.find(document_id)
    if doc < 0:
        raise DataError(
            f"there is no document with the id {document_id!r}. Ids are as they were given when the index was built."
        )
    found = search(index, like_query(index, doc, terms), k=_one_more(k), model=model, filter=filter)
    others = found.docs != doc
    return replace(found, docs=found.docs[others][:k], scores=found.scores[others][:k])


def like_query(index: Index, doc: int, terms: int = TERMS) -> Query:
    """The query for documents that are like document number `doc`: its terms, the most telling ones first."""
    if not 1 <= terms <= MOST_TERMS:
        raise ParameterError(f"must be from 1 to {MOST_TERMS:,}, got {terms}.", parameter="terms")
    statistics, common = Statistics.of(index), index.analysis.common_terms
    counted = document_counts(index, [doc])
    weighed = []
    for number, frequency in zip(counted.number.tolist(), counted.frequency.tolist(), strict=True):
        term = counted.term(number)
        df = 0 if term in common else int(statistics.term(term).doc_freq[-1])
        if df > 1:
            idf = math.log(1.0 + (statistics.n_docs - df + 0.5) / (df + 0.5))
            share = frequency / (frequency + SATURATION)
            weighed.append((-share * idf, term, (1.0 + SATURATION) * share))
    words = [Word(term, place, boost=boost) for place, (_, term, boost) in enumerate(nsmallest(terms, weighed))]
    return query_of(Group(optional=tuple(words)))


def _one_more(k: int) -> int:
    """The document itself is found, too."""
    return k + 1 if isinstance(k, int) and k > 0 else k
