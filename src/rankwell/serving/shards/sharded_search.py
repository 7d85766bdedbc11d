"""One query over the shards of a collection, in rounds.

    count   what is not known yet about the query's words; later queries with these words do without
    select  each shard's best candidates; the best of all go on
    words   of the first candidates, for rankers that read a relevance model
    terms   what is not known yet about the words of relevance models
    first   a cascade's first pass, over all candidates
    second  the ranker, over the candidates that the first pass keeps, wherever they are
    show    ids and captions of the results, from the shards that hold them
    replace those of other results, in place of what a shard that is lost now would have shown

A shard that did not select has no results, and candidates that were not ranked in time come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from rankwell.index.query.query import Query
from rankwell.index.search.more_like import telling_terms, weighted_query
from rankwell.index.search.selection import n_first_of
from rankwell.serving.deadline import Deadline
from rankwell.serving.ranking.ranker_passes import FIRST, RankerPasses
from rankwell.serving.shards import messages, replies
from rankwell.serving.shards.candidates import Candidates, Selection, joined_candidates
from rankwell.serving.shards.collection import ShardedCollection
from rankwell.serving.shards.node_link import NodeError
from rankwell.serving.shards.rounds import Rounds
from rankwell.serving.shards.shard import Shard


class ShardedSearch:
    """A query on its way.

    Attributes
    ----------
    rounds : which shards have answered so far
    question : the query for shards, with all counts that are known
    is_partly_counted : whether a shard was missing when words were counted that the answer is made of
    """

    def __init__(
        self, shards: Sequence[Shard], collection: ShardedCollection, asked: messages.AskedQuery, deadline: Deadline
    ) -> None:
        self.collection, self.asked = collection, asked
        self.rounds = Rounds(shards, collection, deadline)
        self.question = messages.Question(asked, {})
        self.is_partly_counted = False

    async def parse(self) -> Query:
        """The query, its words counted over all shards."""
        lacking = self.collection.expansions_lacking(self.asked)
        if lacking is not None:
            await self._count(lacking)
        query = self.collection.parse(self.asked)
        await self.know(self.collection.terms_of(query))
        self.question = self.collection.question(self.asked, self.collection.terms_of(query))
        self.is_partly_counted |= self.collection.has_partly_expanded(self.question)
        return query

    async def parse_like(self, place: tuple[int, int]) -> Query:
        """The query for documents that are like one, which is in the shard and has the number there that `place` says.

        The query of this search is that from now on.
        """
        shard, doc = place
        (counts,) = (await self.words({shard: [doc]}, "count")).get(shard, [{}])
        await self.know(list(counts))
        # The filter comes with the query below: its near words are not counted yet.
        self.collection.question(messages.AskedQuery(""), list(counts))
        words = telling_terms(counts, self.collection.statistics, self.collection.analysis.common_terms)
        self.asked = messages.AskedQuery("", filter=self.asked.filter, words=words)
        if not words:
            return weighted_query(())
        return await self.parse()

    async def know(self, terms: Sequence[bytes], stage: str = "count") -> None:
        """Have terms counted that were not counted before. Raises UnansweredError if no shard does."""
        lacking = self.collection.terms_lacking(terms)
        if lacking is not None:
            await self._count(lacking, stage)
        self.note_counts(terms)

    def note_counts(self, terms: Iterable[bytes]) -> None:
        """The answer is made of the counts of these terms."""
        self.is_partly_counted |= self.collection.has_partly_counted(terms)

    async def know_also(self, terms: Sequence[bytes]) -> None:
        """Tell the shards about more terms than the query's own."""
        await self.know(terms, "terms")
        self.question = self.collection.question(self.asked, [*self.question.terms, *terms])

    async def select(
        self, query: Query, asked: Selection, ranker: str | None = None, passes: RankerPasses | None = None
    ) -> Candidates:
        """The best documents of all shards.

        ranker, passes : of a cascade, whose first pass may be run in the same round
        """
        if asked.stop_after is None:
            return await self._select(asked, None, ranker, passes)
        n_numbers = self.collection.n_numbers
        n_wanted = min(asked.k, self.collection.census.n_docs)
        n_first = n_first_of(self.collection.index, query, asked.stop_after, n_numbers)
        while n_first < n_numbers:
            found = await self._select(asked, self._first_of_shards(n_first), ranker, passes)
            if len(found) >= n_wanted:
                return found
            n_first *= 2
        found = await self._select(asked, None, ranker, passes)
        return replace(found, n_examined=self.collection.census.n_docs)

    async def show(
        self, rows: Sequence[int], candidates: Candidates, stage: str = "show"
    ) -> dict[int, messages.ShownDocument]:
        """What is shown of candidates, by row; those of shards that are missing are not in it."""
        by_shard: dict[int, list[int]] = {}
        for row in rows:
            by_shard.setdefault(int(candidates.shard[row]), []).append(row)
        asked = {
            shard: candidates.doc[own].tolist() for shard, own in by_shard.items() if shard not in self.rounds.missing
        }
        version = self.collection.version
        found = await self.rounds.ask(
            stage,
            {shard: messages.Show(version(shard), self.question, docs) for shard, docs in asked.items()},
            {shard: replies.shown(docs) for shard, docs in asked.items()},
        )
        return {row: document for shard in found for row, document in zip(by_shard[shard], found[shard], strict=True)}

    async def find(self, ids: Sequence[str], stage: str = "select") -> dict[str, tuple[int, int]]:
        """The shard and the number there of documents, by id; those that no shard has are not in it."""
        facts, version, present = self.collection.facts, self.collection.version, self.rounds.present
        asked = list(ids)
        found = await self.rounds.ask(
            stage,
            {shard: messages.Find(version(shard), asked) for shard in present},
            {shard: replies.found(len(asked), facts[shard]) for shard in present},
        )
        places: dict[str, tuple[int, int]] = {}
        for shard, docs in sorted(found.items()):
            for name, doc in zip(asked, docs, strict=True):
                if doc >= 0:
                    places.setdefault(name, (shard, doc))
        return places

    async def words(self, docs: Mapping[int, Sequence[int]], stage: str = "words") -> dict[int, list[dict[bytes, int]]]:
        """The terms of documents and how often each has them, by shard; docs : numbers, by shard"""
        version = self.collection.version
        return await self.rounds.ask(
            stage,
            {shard: messages.Words(version(shard), list(own)) for shard, own in docs.items()},
            {shard: replies.words_of(len(own)) for shard, own in docs.items()},
        )

    async def _select(
        self, asked: Selection, first: Mapping[int, int] | None, ranker: str | None, passes: RankerPasses | None
    ) -> Candidates:
        """One round of selection; first : how many documents of each shard are looked at, None: all"""
        facts, version, present = self.collection.facts, self.collection.version, self.rounds.present
        sent, n_features, alone = None, 0, True
        if passes is not None and passes.first is not None:
            sent, n_features, alone = ranker, len(passes.first.feature_set), passes.scores_alone(FIRST)
        request = messages.Select(
            messages.Version("", ""),
            self.question,
            asked.k,
            sent,
            [f"{key.field}:{'desc' if key.is_descending else 'asc'}" for key in asked.sort],
            {field: None if edges is None else list(edges) for field, edges in asked.fields.items()},
        )
        without = {} if asked.without is None else dict([asked.without])
        found = await self.rounds.ask(
            "select",
            {
                shard: msgspec.structs.replace(
                    request,
                    version=version(shard),
                    first=None if first is None else first[shard],
                    without=without.get(shard),
                )
                for shard in present
            },
            {shard: replies.selected(asked, facts[shard], n_features, alone=alone) for shard in present},
            sent,
        )
        if not found:
            raise self.rounds.unanswered()
        candidates = joined_candidates(found, asked)
        if first is None:
            return candidates
        return replace(candidates, n_examined=sum(own.n_examined or 0 for own in found.values()))

    def _first_of_shards(self, n_first: int) -> dict[int, int]:
        """How many documents of each shard are among the first of the collection in its static order."""
        first = self.collection.first_of_shards(n_first)
        for shard in self.rounds.present:
            if shard not in first:
                self.rounds.missing[shard] = NodeError("connection", "the order of its documents is not known yet")
        return first

    async def _count(self, lacking: messages.Count, stage: str = "count") -> None:
        facts, present = self.collection.facts, self.rounds.present
        counted = await self.rounds.ask(
            stage,
            {
                shard: messages.Count(facts[shard].commit, lacking.terms, lacking.prefixes, lacking.near)
                for shard in present
            },
            {shard: replies.counted(lacking, facts[shard]) for shard in present},
        )
        if not counted:
            # Nothing is learnt: the shards have these words, and have no time.
            raise self.rounds.unanswered()
        self.collection.add_counts(lacking, counted)
