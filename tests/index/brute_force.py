"""Search as its rules say, without an index: every document is cut into words and asked whether it matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rankwell.index.query.plan import MOST_EXPANSIONS
from rankwell.index.query.query import Query
from rankwell.index.query.tree import (
    And,
    Everything,
    Exists,
    Group,
    Keyword,
    Node,
    Not,
    Or,
    Phrase,
    Prefix,
    Range,
    Similar,
    Word,
    has_words,
    scoring_leaves,
)
from rankwell.index.schema import Schema
from rankwell.index.search.bm25 import BM25, BM25F, ModelColumns
from rankwell.index.text.analysis import Analysis
from rankwell.kernels.selection.reference import (
    Alternative,
    Model,
    Scored,
    ScoredPhrase,
    has_phrase,
    search_documents,
)

READ = -2
Fields = Mapping[str, Any]


@dataclass
class BruteForce:
    """The live documents as their fields, and everything that a search needs from them."""

    documents: Sequence[Fields]
    schema: Schema
    analysis: Analysis

    def __post_init__(self) -> None:
        self.cut = [[self._words(fields, name) for name in self.schema.streams] for fields in self.documents]

    def _words(self, fields: Fields, stream: str) -> list[tuple[bytes, int]]:
        text = fields.get(stream)
        return self.analysis.cut(text) if isinstance(text, str) else []

    def search(self, query: Query, model: BM25 | BM25F, match: str, k: int) -> list[tuple[int, float]]:
        """(place among the documents, score) of the best k."""
        columns = model.columns(self.schema)
        matches = self.all_matches(query, columns, match)
        scored = self._scored(query.as_tree(), columns)
        numbers = {one.column for term in scored for one in term.alternatives if one.column >= 0}
        if numbers or any([one.weight for one in term.alternatives] != [1.0] for term in scored):
            columns = columns.summing(numbers)
        reference = Model(columns.k1, columns.columns, columns.b, columns.weights, columns.n_read, columns.counted)
        return search_documents(self.cut, matches, scored, reference, k, self._phrases(query.as_tree()))

    def all_matches(self, query: Query, columns: ModelColumns, match: str) -> list[bool]:
        whole = BM25().columns(self.schema)
        return [
            self.matches(doc, query.as_tree(), columns, match)
            and (query.filter is None or self.matches(doc, query.filter, whole, "all"))
            for doc in range(len(self.documents))
        ]

    def matches(self, doc: int, node: Node, model: ModelColumns, match: str) -> bool:
        def does(part: Node) -> bool:
            return self.matches(doc, part, model, match)

        if isinstance(node, Group):
            optional = all if match == "all" else any
            is_open = match == "any" and (any(map(has_words, node.required)) or not node.optional)
            return (
                all(map(does, node.required))
                and (is_open or optional(map(does, node.optional)))
                and not any(map(does, node.excluded))
            )
        if isinstance(node, And):
            return all(map(does, node.parts))
        if isinstance(node, Or):
            return any(map(does, node.parts))
        if isinstance(node, Not):
            return not does(node.part)
        return self._has(doc, node, model)

    def number(self, doc: int, field: str) -> float | None:
        value = self.documents[doc].get(field)
        if isinstance(value, str):
            return datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp()
        return value

    def _has(self, doc: int, leaf: Node, model: ModelColumns) -> bool:
        if isinstance(leaf, Word | Phrase | Prefix | Similar):
            streams = self._streams(doc, leaf.field, model)
            if isinstance(leaf, Word):
                return any(term == leaf.term for words in streams for term, _ in words)
            if isinstance(leaf, Similar):
                return any(term == wanted for words in streams for term, _ in words for wanted, _ in leaf.terms)
            if isinstance(leaf, Prefix):
                return any(term.startswith(leaf.start) for words in streams for term, _ in words)
            return any(has_phrase(words, leaf.terms, leaf.places, leaf.slop) for words in streams)
        if isinstance(leaf, Range):
            value = self.number(doc, leaf.field)
            if value is None:
                return False
            above = value >= leaf.low if leaf.with_low else value > leaf.low
            return above and (value <= leaf.high if leaf.with_high else value < leaf.high)
        if isinstance(leaf, Keyword):
            values = [value.encode() for value in _values(self.documents[doc].get(leaf.field))]
            return any(value.startswith(leaf.value) if leaf.is_prefix else value == leaf.value for value in values)
        if isinstance(leaf, Exists):
            if leaf.field in self.schema.streams:
                return bool(self._streams(doc, leaf.field, model)[0])
            if leaf.field in self.schema.keywords:
                return bool(_values(self.documents[doc].get(leaf.field)))
            return self.documents[doc].get(leaf.field) is not None
        return isinstance(leaf, Everything)

    def _streams(self, doc: int, field: str | None, model: ModelColumns) -> list[list[tuple[bytes, int]]]:
        if field is not None:
            return [self.cut[doc][self.schema.streams.index(field)]]
        if model.read == (-1,):
            return self.cut[doc]
        return [self.cut[doc][column] for column in model.read]

    def _scored(self, tree: Node, model: ModelColumns) -> list[Scored]:
        factors: dict[tuple[Any, ...], float] = {}
        for leaf in scoring_leaves(tree):
            if isinstance(leaf, Similar):
                key = (False, leaf.terms, leaf.field)
                factors[key] = factors.get(key, 0.0) + leaf.boost
                continue
            for text in _texts(leaf) if not isinstance(leaf, Phrase) or leaf.is_typed else ():
                key = (isinstance(leaf, Prefix), text, leaf.field)
                factors[key] = factors.get(key, 0.0) + leaf.boost
        scored = []
        for (is_prefix, text, field), factor in factors.items():
            column = READ if field is None else self.schema.streams.index(field)
            if isinstance(text, tuple):
                pairs = text
            else:
                terms = self._frequent_words(text, column, model) if is_prefix else [text]
                pairs = tuple((term, 1.0) for term in terms)
            scored.append(Scored([Alternative(term, column, weight) for term, weight in pairs], factor))
        return scored

    def _phrases(self, tree: Node) -> list[ScoredPhrase]:
        factors: dict[tuple[Any, ...], float] = {}
        for leaf in scoring_leaves(tree):
            if isinstance(leaf, Phrase) and leaf.slop == 0 and len(leaf.terms) > 1:
                key = (leaf.terms, leaf.places, READ if leaf.field is None else self.schema.streams.index(leaf.field))
                factors[key] = factors.get(key, 0.0) + leaf.boost
        return [ScoredPhrase(*key, factor) for key, factor in factors.items()]

    def _frequent_words(self, prefix: bytes, column: int, model: ModelColumns) -> list[bytes]:
        counted = model.counted if column == READ else column
        having: dict[bytes, int] = {}
        for streams in self.cut:
            words = streams[counted] if counted >= 0 else [word for stream in streams for word in stream]
            for term in {term for term, _ in words if term.startswith(prefix)}:
                having[term] = having.get(term, 0) + 1
        return sorted(having, key=lambda term: (-having[term], term))[:MOST_EXPANSIONS]


def _texts(leaf: Word | Phrase | Prefix) -> tuple[bytes, ...]:
    if isinstance(leaf, Phrase):
        return leaf.terms
    return (leaf.start if isinstance(leaf, Prefix) else leaf.term,)


def _values(value: Any) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)
