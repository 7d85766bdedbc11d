"""Statistics of all shards together, for an index that is one of them.

Counts add up exactly over shards, so that a shard that is given the sums ranks its documents as one index with all
documents would.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from rankwell.errors import RankwellError
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.search.more_like import weighted_query
from rankwell.index.search.phrase_lists import PhraseTerms
from rankwell.index.statistics import Statistics, TermStatistics
from rankwell.index.text.synonyms import Synonyms
from rankwell.serving.served_query import parse_served, parse_served_filter
from rankwell.serving.shards.messages import AskedQuery, Census, Question

if TYPE_CHECKING:
    from rankwell.index.text.analysis import Analysis

_TERMS_REMEMBERED = 65_536


class MissingCountError(RankwellError, LookupError):
    """A term whose counts were not given. term : bytes"""

    def __init__(self, term: bytes) -> None:
        self.term = term
        super().__init__(f"the counts of {term!r} over all shards are not known.")


class GivenStatistics(Statistics):
    """Counts that were made elsewhere, over more documents than the index has."""

    def __init__(self, census: Census) -> None:
        self.n_docs = census.n_docs
        self.n_streams = len(census.schema["streams"])
        self.tokens = np.array(census.tokens, np.int64)
        self._streams = {name: number for number, name in enumerate(census.schema["streams"])} | {None: -1}
        self._terms: dict[bytes, TermStatistics] = {}
        self._prefixes: dict[tuple[bytes, int], tuple[list[bytes], bool]] = {}
        self._near: dict[tuple[bytes, int, int], tuple[tuple[bytes, float], ...]] = {}

    def take(self, question: Question) -> None:
        """Learn what a question says about its words."""
        for known in (self._terms, self._prefixes, self._near):
            if len(known) > _TERMS_REMEMBERED:
                known.clear()
        for term, (doc_freq, occurrences) in question.terms.items():
            if term not in self._terms:
                self._terms[term] = TermStatistics(
                    np.frombuffer(doc_freq, np.int64), np.frombuffer(occurrences, np.int64)
                )
        for start, field, words, are_all in question.prefixes:
            self._prefixes[start, self._streams[field]] = words, are_all
        for term, distance, field, near in question.near:
            self._near[term, distance, self._streams[field]] = tuple(near)

    def term(self, term: bytes) -> TermStatistics:
        known = self._terms.get(term)
        if known is None:
            raise MissingCountError(term)
        return known

    def phrase(self, phrase: PhraseTerms) -> TermStatistics:
        return self.term(phrase.name)

    def frequent_words(self, prefix: bytes, column: int, most: int) -> tuple[list[bytes], bool]:
        known = self._prefixes.get((prefix, column))
        if known is None:
            raise MissingCountError(prefix)
        return known

    def near_words(self, term: bytes, distance: int, column: int) -> tuple[tuple[bytes, float], ...]:
        known = self._near.get((term, distance, column))
        if known is None:
            raise MissingCountError(term)
        return known


def counted_index(index: Index, census: Census) -> Index:
    """The same documents, as a part of the collection that was counted."""
    view = Index(
        index.segments, index.live, Schema.from_json(census.schema), index.analysis, generation=index.generation
    )
    GivenStatistics(census).give(view)
    return view


def synonyms_of(census: Census) -> Synonyms | None:
    """The synonyms of a collection; None if it has none."""
    return Synonyms(census.synonyms) if census.synonyms else None


def parse_asked(index: Index, asked: AskedQuery, synonyms: Synonyms | None) -> Query:
    """A query as an index of the collection understands it."""
    if not asked.words:
        return parse_served(
            index,
            asked.text,
            plain=asked.plain,
            filter=asked.filter,
            typos=asked.typos,
            match=asked.match,
            synonyms=synonyms,
        )
    return replace(weighted_query(asked.words), filter=parse_served_filter(index, asked.filter))


def empty_index(census: Census, analysis: Analysis) -> Index:
    """An index without documents that knows the fields and counts of a collection: it parses queries."""
    return counted_index(Index((), (), Schema.from_json(census.schema), analysis), census)


def digest(census: Census) -> str:
    """The name of a census: equal ones have the same."""
    return hashlib.blake2b(msgspec.msgpack.encode(census), digest_size=8).hexdigest()
