"""The shards of a collection at one moment: which commit each has, and what is counted over all of them.

The collection is the index that has the documents of the first shard, then those of the second, and so on: equal scores
are in this order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from rankwell.errors import DataError
from rankwell.index.query.expansion import forgiving_tree
from rankwell.index.query.near_words import best_near
from rankwell.index.query.plan import MOST_EXPANSIONS
from rankwell.index.query.prefixes import most_frequent
from rankwell.index.query.query import Query, parse_query
from rankwell.index.query.tree import Phrase, Prefix, Similar, Word, near_leaves, scoring_leaves
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import WHOLE
from rankwell.index.search.phrase_lists import PhraseTerms
from rankwell.index.search.static_order import ranks_among_all
from rankwell.index.shards import joined_schema, listed
from rankwell.index.statistics import Statistics
from rankwell.index.text.analysis import Analysis
from rankwell.serving.ranking.ranker_passes import RankerPasses
from rankwell.serving.served_query import written_filter
from rankwell.serving.shards.messages import AskedQuery, Census, Count, Counted, Counts, Facts, Question, Version
from rankwell.serving.shards.statistics import GivenStatistics, digest, empty_index, parse_asked, synonyms_of

_TERMS_REMEMBERED = 262_144
# A prefix in a stream, and a word in a stream with how many edits are forgiven; None: in the whole document.
_Prefix = tuple[bytes, str | None]
_Near = tuple[bytes, int, str | None]


@dataclass(eq=False)
class ShardedCollection:
    """What queries are answered from until a shard has a new commit.

    Parameters
    ----------
    facts : by the number of the shard; shards that were never reached are not in it
    number : counts collections
    epoch, synonyms : as those of a census

    Attributes
    ----------
    is_incomplete : whether a shard was missing when words were counted
    """

    facts: Mapping[int, Facts]
    number: int = 1
    epoch: int = 0
    synonyms: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    passes: dict[str, RankerPasses] = field(default_factory=dict)
    is_incomplete: bool = False

    def __post_init__(self) -> None:
        first = next(iter(self.facts.values()))
        for facts in self.facts.values():
            if _without_release(facts.analysis) != _without_release(first.analysis):
                raise DataError(
                    f"{facts.folder} cuts text into words otherwise than {first.folder} ({_difference(facts, first)}). "
                    f"Build all shards with the same options."
                )
        self.census = Census(
            joined_schema([(facts.folder, facts.schema) for facts in self.facts.values()]),
            sum(facts.n_docs for facts in self.facts.values()),
            [],
            self.epoch,
        )
        n_streams = len(self.census.schema["streams"])
        tokens = sum(_padded(facts.tokens, n_streams) for facts in self.facts.values())
        self.census = Census(
            self.census.schema, self.census.n_docs, np.asarray(tokens).tolist(), self.epoch, self.synonyms
        )
        self._synonyms = synonyms_of(self.census)
        self.census_digest = digest(self.census)
        self.analysis = Analysis.from_json(first.analysis)
        self.index: Index = empty_index(self.census, self.analysis)
        self.statistics = cast(GivenStatistics, Statistics.of(self.index))
        self._partly_counted: set[Hashable] = set()
        self._static_ranks: dict[int, np.ndarray] = {}
        self._terms: dict[bytes, Counts] = {}
        self._prefixes: dict[_Prefix, tuple[list[bytes], bool]] = {}
        self._near: dict[_Near, tuple[tuple[bytes, float], ...]] = {}

    @property
    def n_numbers(self) -> int:
        """How many numbers of documents all shards have, deleted ones included."""
        return sum(facts.n_numbers for facts in self.facts.values())

    @property
    def is_full(self) -> bool:
        """Whether so many words are known that they are better forgotten."""
        return len(self._terms) + len(self._prefixes) + len(self._near) > _TERMS_REMEMBERED

    def version(self, shard: int) -> Version:
        return Version(self.facts[shard].commit, self.census_digest)

    def first_of_shards(self, n: int) -> dict[int, int]:
        """How many documents of each shard are among the first n in the static order; of shards whose order is known"""
        return {shard: int(np.searchsorted(ranks, n)) for shard, ranks in self._static_ranks.items()}

    def order_documents(self, values: Mapping[int, np.ndarray]) -> None:
        """Learn the static order; values : by shard, what orders its documents, falling"""
        ranks = ranks_among_all([own for _, own in sorted(values.items())])
        self._static_ranks = dict(zip(sorted(values), ranks, strict=True))

    def expansions_lacking(self, asked: AskedQuery) -> Count | None:
        """The prefixes and near words of a query that were not counted yet; None if there are none."""
        prefixes, near = self._expansions(asked)
        new = Count(
            "", [], sorted(prefixes - self._prefixes.keys(), key=str), sorted(near - self._near.keys(), key=str)
        )
        return new if new.prefixes or new.near else None

    def terms_lacking(self, terms: Sequence[bytes]) -> Count | None:
        """Terms that were not counted yet; None if there are none."""
        lacking = [term for term in dict.fromkeys(terms) if term not in self._terms]
        return Count("", lacking) if lacking else None

    def add_counts(self, asked: Count, counted: Mapping[int, Counted]) -> None:
        """Learn what the shards counted; those that are missing count nothing, until the next epoch."""
        if len(counted) < len(self.facts):
            self.is_incomplete = True
            self._partly_counted.update(asked.terms, asked.prefixes, asked.near)
        n_streams = len(self.census.schema["streams"])
        for place, term in enumerate(asked.terms):
            sums = np.zeros((2, n_streams + 1), np.int64)
            for one in counted.values():
                for row, values in enumerate(one.terms[place]):
                    sums[row] += _padded(np.frombuffer(values, np.int64), n_streams)
            self._terms[term] = sums[0].tobytes(), sums[1].tobytes()
        for place, prefix in enumerate(asked.prefixes):
            n_docs: dict[bytes, int] = {}
            for one in counted.values():
                for term, count in one.prefixes[place].items():
                    n_docs[term] = n_docs.get(term, 0) + count
            self._prefixes[prefix] = most_frequent(n_docs, MOST_EXPANSIONS)
        for place, (term, distance, stream) in enumerate(asked.near):
            found: dict[bytes, tuple[int, int]] = {}
            for one in counted.values():
                for near, (edits, count) in one.near[place].items():
                    found[near] = edits, found.get(near, (edits, 0))[1] + count
            self._near[term, distance, stream] = best_near(term, found)

    def has_partly_counted(self, terms: Iterable[bytes]) -> bool:
        """Whether a shard was missing when any of these terms was counted."""
        return bool(self._partly_counted) and not self._partly_counted.isdisjoint(terms)

    def has_partly_expanded(self, question: Question) -> bool:
        """Whether a shard was missing when the words for prefixes and near words of a question were found."""
        prefixes = {(start, stream) for start, stream, _, _ in question.prefixes}
        near = {(term, distance, stream) for term, distance, stream, _ in question.near}
        return not self._partly_counted.isdisjoint(prefixes | near)

    def parse(self, asked: AskedQuery) -> Query:
        """A query whose expansions are known."""
        self.statistics.take(self._question(asked, ()))
        return parse_asked(self.index, asked, self._synonyms)

    def question(self, asked: AskedQuery, terms: Sequence[bytes]) -> Question:
        """A query for nodes, with the counts of these terms."""
        question = self._question(asked, terms)
        self.statistics.take(question)
        return question

    def terms_of(self, query: Query) -> list[bytes]:
        """All terms that selection and features count for a query, and its phrases by their names."""
        terms = [*query.terms, *(phrase.name for phrase in query.phrases)]
        for leaf in scoring_leaves(query.tree):
            if isinstance(leaf, Word):
                terms.append(leaf.term)
            elif isinstance(leaf, Phrase):
                terms.extend(leaf.terms)
                if leaf.is_term:
                    terms.append(PhraseTerms(leaf.terms, leaf.places).name)
            elif isinstance(leaf, Similar):
                terms.extend(term for term, _ in leaf.terms)
            elif isinstance(leaf, Prefix):
                terms.extend(self._prefixes[leaf.start, leaf.field][0])
        return list(dict.fromkeys(terms))

    def _question(self, asked: AskedQuery, terms: Sequence[bytes]) -> Question:
        prefixes, near = self._expansions(asked)
        return Question(
            asked,
            {term: self._terms[term] for term in terms},
            [(*one, *self._prefixes[one]) for one in prefixes],
            [(*one, list(self._near[one])) for one in near],
        )

    def _expansions(self, asked: AskedQuery) -> tuple[set[_Prefix], set[_Near]]:
        """The prefixes of a query that count in its score, and all near words of it and its filter."""
        filter = asked.filter if asked.filter is not None and "~" in asked.filter else None
        is_as_written = not asked.typos and self._synonyms is None
        if is_as_written and filter is None and (asked.plain or not any(sign in asked.text for sign in "*~")):
            return set(), set()
        query = parse_query(asked.text, self.analysis, self.index.schema, plain=asked.plain)
        tree = forgiving_tree(query, self.index, self._synonyms, typos=asked.typos)
        near = [*near_leaves(tree), *(() if filter is None else near_leaves(written_filter(self.index, filter)))]
        return (
            {(leaf.start, leaf.field) for leaf in scoring_leaves(tree) if isinstance(leaf, Prefix)},
            {(leaf.term, leaf.distance, leaf.field) for leaf in near},
        )


def _padded(counts: Any, n_streams: int) -> np.ndarray:
    """Counts of a shard's streams and of the whole document, for all streams of the collection."""
    own = np.asarray(counts, np.int64)
    padded = np.zeros(n_streams + 1, np.int64)
    padded[: len(own) - 1] = own[:-1]
    padded[WHOLE] = own[-1]
    return padded


def _without_release(analysis: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in analysis.items() if name != "unicode"}


def _difference(one: Facts, other: Facts) -> str:
    names = [name for name in one.analysis if one.analysis.get(name) != other.analysis.get(name)]
    return listed(names)
