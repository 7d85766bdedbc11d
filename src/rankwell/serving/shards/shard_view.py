"""A commit of a shard's index as one census counts it: what selects, shows and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import cast

from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.search.more_like import search_others
from rankwell.index.search.selection import SearchResult, search_first
from rankwell.index.search.static_order import falling_values
from rankwell.index.segments.document_counts import document_counts
from rankwell.index.statistics import Statistics
from rankwell.serving.ranking.ranker_passes import RankerPasses
from rankwell.serving.shards import messages
from rankwell.serving.shards.statistics import GivenStatistics, counted_index, parse_asked, synonyms_of
from rankwell.serving.shown_documents import shown_results


class ShardView:
    """A part of the collection that a census counts.

    Attributes
    ----------
    passes : by the digest of a ranker and the device
    """

    def __init__(self, index: Index, census: messages.Census) -> None:
        self.index = counted_index(index, census)
        self.passes: dict[tuple[str, str], RankerPasses] = {}
        self._synonyms = synonyms_of(census)

    @cached_property
    def statistics(self) -> GivenStatistics:
        return cast(GivenStatistics, Statistics.of(self.index))

    def parse(self, question: messages.Question) -> Query:
        self.statistics.take(question)
        return parse_asked(self.index, question.query, self._synonyms)

    def select(self, asked: messages.Select) -> SearchResult:
        """The documents that are asked for, with their facets."""
        query = self.parse(asked.question)
        if asked.first is not None:
            return search_first(self.index, query, asked.first, k=asked.k)
        if asked.without is not None:
            return search_others(self.index, query, asked.without, k=asked.k)
        return self.index.search(query, k=asked.k, sort=asked.sort, facets=asked.facets)

    def show(self, asked: messages.Show) -> messages.Shown:
        query, none = self.parse(asked.question), [0.0] * len(asked.docs)
        results = shown_results(self.index, query, asked.docs, none, none, 1)
        return messages.Shown(
            [
                messages.ShownDocument(doc, one.id, one.title, one.url, list(one.caption), one.fields or {})
                for doc, one in zip(asked.docs, results, strict=True)
            ]
        )

    def find(self, asked: messages.Find) -> messages.Found:
        return messages.Found([self.index.find(one) for one in asked.ids])

    def words(self, asked: messages.Words) -> messages.WordsOf:
        documents: list[dict[bytes, int]] = [{} for _ in asked.docs]
        counted = document_counts(self.index, asked.docs)
        for doc, number, frequency in zip(
            counted.doc.tolist(), counted.number.tolist(), counted.frequency.tolist(), strict=True
        ):
            documents[doc][counted.term(number)] = frequency
        return messages.WordsOf(documents)

    def static_order(self, asked: messages.StaticOrder) -> messages.Ordered:
        return messages.Ordered(falling_values(self.index).tobytes())


def selected(found: SearchResult, first: messages.Scored | None) -> messages.Selected:
    """What is told of a selection; first : what a first pass gave"""
    return messages.Selected(
        found.docs.tobytes(),
        found.scores.tobytes(),
        None if found.n_examined is not None else found.n_matches,
        first,
        list(found.sort_values),
        {field: list(cast("Mapping[messages.FacetValue, int]", own).items()) for field, own in found.facets.items()},
        found.n_examined,
    )
