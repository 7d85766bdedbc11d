"""More like this: documents that share the words which describe a document best.

Of a document's terms t, occurring tf times, the `terms` with the largest

    tf / (tf + 1.2) · log(1 + (N − df + 0.5) / (df + 0.5))

are the words of a query, in which each counts 2.2 · tf / (tf + 1.2). Common words, and terms that no other document
has, are not among them.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
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
        raise no_such_document(document_id)
    return search_others(index, like_query(index, doc, terms), doc, k=k, model=model, filter=filter)


def search_others(
    index: Index,
    query: Query,
    doc: int,
    *,
    k: int,
    model: BM25 | BM25F | None = None,
    filter: Filter | None = None,
) -> SearchResult:
    """The best k documents for a query, without document number `doc`."""
    found = search(index, query, k=_one_more(k), model=model, filter=filter)
    others = found.docs != doc
    return replace(found, docs=found.docs[others][:k], scores=found.scores[others][:k], left_out=doc)


def no_such_document(document_id: str | int) -> DataError:
    return DataError(
        f"there is no document with the id {document_id!r}. Ids are as they were given when the index was built."
    )


def like_query(index: Index, doc: int, terms: int = TERMS) -> Query:
    """The query for documents that are like document number `doc`."""
    counted = document_counts(index, [doc])
    counts = {
        counted.term(number): frequency
        for number, frequency in zip(counted.number.tolist(), counted.frequency.tolist(), strict=True)
    }
    return weighted_query(telling_terms(counts, Statistics.of(index), index.analysis.common_terms, terms))


def weighted_query(words: Iterable[tuple[bytes, float]]) -> Query:
    """The query of terms, each with how much it counts."""
    return query_of(Group(optional=tuple(Word(term, place, boost=boost) for place, (term, boost) in enumerate(words))))


def telling_terms(
    counts: Mapping[bytes, int], statistics: Statistics, common: Container[bytes], terms: int = TERMS
) -> list[tuple[bytes, float]]:
    """The terms that describe a document best, and how much each counts in a query.

    counts : how often the document has its terms; common : terms that say nothing
    """
    if not 1 <= terms <= MOST_TERMS:
        raise ParameterError(f"must be from 1 to {MOST_TERMS:,}, got {terms}.", parameter="terms")
    weighed = []
    for term, frequency in counts.items():
        df = 0 if term in common else int(statistics.term(term).doc_freq[-1])
        if df > 1:
            idf = math.log(1.0 + (statistics.n_docs - df + 0.5) / (df + 0.5))
            share = frequency / (frequency + SATURATION)
            weighed.append((-share * idf, term, (1.0 + SATURATION) * share))
    return [(term, boost) for _, term, boost in nsmallest(terms, weighed)]


def _one_more(k: int) -> int:
    """The document itself is found, too."""
    return k + 1 if isinstance(k, int) and k > 0 else k
