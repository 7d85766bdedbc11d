"""What a node's reply must be like; a node that replies otherwise is broken, whatever it says about itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rankwell.errors import RankwellError
from rankwell.index.schema import Schema
from rankwell.index.search.sorting import SortKey, SortValue, comparable
from rankwell.index.text.analysis import Analysis
from rankwell.serving.shards import messages
from rankwell.serving.shards.candidates import Selection

_DEVICES = ("cpu", "cuda")
# More documents, words or bytes than an index has; sums over all shards still fit int64.
_TOO_MANY = 1 << 48


class RubbishError(RankwellError):
    """A reply that cannot be true."""


def described(reply: Any) -> messages.Facts:
    """Facts that a collection can be made of: a schema and an analysis that can be read, and counts that fit them."""
    own: messages.Facts = _of(reply, messages.Facts)
    try:
        Analysis.from_json(own.analysis)
        streams = Schema.from_json(own.schema).streams
    except RankwellError as cause:
        raise RubbishError(f"an index that this release cannot read: {cause}") from cause
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as cause:
        raise RubbishError(f"a schema or an analysis that is none ({type(cause).__name__}: {cause})") from cause
    names = [own.schema.get(kind, []) for kind in ("streams", "statics", "keywords", "dates")]
    if not all(isinstance(part, list) and all(isinstance(name, str) for name in part) for part in names):
        raise RubbishError("a schema whose fields are not names")
    counts = (own.generation, own.n_docs, own.n_numbers, own.n_segments, own.n_bytes, *own.tokens)
    if not all(0 <= count < _TOO_MANY for count in counts) or own.n_docs > own.n_numbers:
        raise RubbishError("counts of an index that there cannot be")
    if len(own.tokens) != len(streams) + 1:
        raise RubbishError(f"{len(own.tokens)} counts of words for {len(streams)} streams and whole documents")
    return own


class SelectedDocuments(NamedTuple):
    """docs : int64 (n,), numbers in the shard; scores : float64 (n,); n_matches : int

    first : scores or features of the first pass, if it was run
    sort_values, facets, n_examined : as of `messages.Selected`
    """

    docs: np.ndarray
    scores: np.ndarray
    n_matches: int | None
    first: np.ndarray | None = None
    sort_values: Sequence[tuple[SortValue, ...]] = ()
    facets: Mapping[str, Mapping[Hashable, int]] = {}
    n_examined: int | None = None


def selected(
    asked: Selection, facts: messages.Facts, n_features: int = 0, *, alone: bool = True
) -> Callable[[Any], SelectedDocuments]:
    """At most k different documents of the shard in the order that was asked for, equal ones in their order.

    n_features, alone : as of `scored`, for the first pass
    """

    def check(reply: Any) -> SelectedDocuments:
        own = _of(reply, messages.Selected)
        docs, scores = _array(own.docs, np.int64), _array(own.scores, np.float64)
        n_matches = facts.n_docs if own.n_matches is None and own.n_examined is not None else own.n_matches
        if len(docs) != len(scores) or len(docs) > asked.k or not len(docs) <= (n_matches or 0) <= facts.n_docs:
            raise RubbishError(f"{len(docs)} documents, {len(scores)} scores and {n_matches} matches for k = {asked.k}")
        if len(docs):
            _check_docs(docs, facts)
            if asked.sort:
                _check_sorted(docs, own.sort_values, asked.sort)
            else:
                _check_order(docs, scores)
        if own.facets.keys() != asked.facets.keys():
            raise RubbishError("the counts of other fields than were asked for")
        first = None if own.first is None else scored(len(docs), n_features, alone=alone)(own.first).of_all(len(docs))
        facets = {field: dict(counts) for field, counts in own.facets.items()}
        return SelectedDocuments(docs, scores, own.n_matches, first, own.sort_values, facets, own.n_examined)

    return check


class ScoredDocuments(NamedTuple):
    """values : float64 (n,), scores, or float32 (n, n_features), rows of features; ids : if they were asked for

    device : where they were computed
    ranked : which documents the scores are of, ascending; None if of all
    """

    values: np.ndarray
    ids: list[str]
    device: str
    ranked: np.ndarray | None = None

    def of_all(self, n_docs: int) -> np.ndarray:
        """The values of all documents; NaN where there was no time for a score."""
        if self.ranked is None:
            return self.values
        scores = np.full(n_docs, np.nan)
        scores[self.ranked] = self.values
        return scores


def scored(n_docs: int, n_features: int, *, alone: bool, ids: bool = False) -> Callable[[Any], ScoredDocuments]:
    """A score of each document, or, if the node does not score, a row of features."""

    def check(reply: Any) -> ScoredDocuments:
        own = _of(reply, messages.Scored)
        if own.device not in _DEVICES:
            raise RubbishError(f"a device that there is not, {own.device!r:.40}")
        if len(own.ids) != (n_docs if ids else 0):
            raise RubbishError(f"{len(own.ids)} ids for {n_docs} documents")
        if (own.scores is None) == alone or (own.rows is None) != alone:
            raise RubbishError("features where scores are wanted, or the other way round")
        if own.rows is not None:
            rows = _array(own.rows, np.float32)
            if len(rows) != n_docs * n_features:
                raise RubbishError(f"{len(rows)} numbers for {n_docs} documents of {n_features} features")
            return ScoredDocuments(rows.reshape(n_docs, n_features), own.ids, own.device)
        ranked = None if own.ranked is None else _places(own.ranked, n_docs)
        scores, n_scores = _array(own.scores or b"", np.float64), n_docs if ranked is None else len(ranked)
        if len(scores) != n_scores or np.isnan(scores).any():
            raise RubbishError(f"{len(scores)} scores for {n_scores} documents, or one that is not a number")
        return ScoredDocuments(scores, own.ids, own.device, ranked)

    return check


def shown(docs: list[int]) -> Callable[[Any], list[messages.ShownDocument]]:
    """The documents that were asked for."""

    def check(reply: Any) -> list[messages.ShownDocument]:
        own = _of(reply, messages.Shown).documents
        if [one.doc for one in own] != docs or not all(one.id for one in own):
            raise RubbishError("other documents than were asked for")
        return own

    return check


def found(n_ids: int, facts: messages.Facts) -> Callable[[Any], list[int]]:
    """The number of each document, or -1."""

    def check(reply: Any) -> list[int]:
        own = _of(reply, messages.Found).docs
        if len(own) != n_ids or not all(-1 <= doc < facts.n_numbers for doc in own):
            raise RubbishError("numbers that are not documents of the shard")
        return own

    return check


def counted(asked: messages.Count, facts: messages.Facts) -> Callable[[Any], messages.Counted]:
    """Counts for each word that was asked for."""
    n_bytes = 8 * (len(facts.schema["streams"]) + 1)

    def check(reply: Any) -> messages.Counted:
        own = _of(reply, messages.Counted)
        sizes = (len(own.terms), len(own.prefixes), len(own.near))
        if sizes != (len(asked.terms), len(asked.prefixes), len(asked.near)):
            raise RubbishError("counts of other words than were asked for")
        for pair in own.terms:
            for counts in pair:
                if len(counts) != n_bytes or (np.frombuffer(counts, np.int64) < 0).any():
                    raise RubbishError("counts that are negative, or of other streams")
            if (np.frombuffer(pair[0], np.int64) > facts.n_docs).any():
                raise RubbishError("more documents have a term than there are")
        return own

    return check


def words_of(n_docs: int) -> Callable[[Any], list[dict[bytes, int]]]:
    """The terms of each document."""

    def check(reply: Any) -> list[dict[bytes, int]]:
        own = _of(reply, messages.WordsOf).documents
        if len(own) != n_docs or any(count < 1 for document in own for count in document.values()):
            raise RubbishError("terms of other documents than were asked for")
        return own

    return check


def ordered(facts: messages.Facts) -> Callable[[Any], np.ndarray]:
    """The values that order the shard's documents, falling."""

    def check(reply: Any) -> np.ndarray:
        values = _array(_of(reply, messages.Ordered).values, np.float64)
        falls = ~(values[:-1] < values[1:]) & ~(np.isnan(values[:-1]) & ~np.isnan(values[1:]))
        if len(values) != facts.n_numbers or not falls.all():
            raise RubbishError("values that do not fall, or not one for each document")
        return values

    return check


def _of(reply: Any, kind: type) -> Any:
    if not isinstance(reply, kind):
        raise RubbishError(f"{type(reply).__name__} where {kind.__name__} is wanted")
    return reply


def _array(content: bytes, kind: Any) -> np.ndarray:
    if len(content) % np.dtype(kind).itemsize:
        raise RubbishError(f"{len(content)} bytes are not an array of {np.dtype(kind).name}")
    return np.frombuffer(content, kind)


def _places(content: bytes, n_docs: int) -> np.ndarray:
    """Places of some of the documents, ascending."""
    places = _array(content, np.int64)
    if len(places) and (places[0] < 0 or places[-1] >= n_docs or (places[1:] <= places[:-1]).any()):
        raise RubbishError("scores of other documents than were asked for, or of one twice")
    return places


def _check_docs(docs: np.ndarray, facts: messages.Facts) -> None:
    ordered = np.sort(docs)
    if ordered[0] < 0 or ordered[-1] >= facts.n_numbers or (ordered[1:] == ordered[:-1]).any():
        raise RubbishError("documents that the shard does not have, or one twice")


def _check_sorted(docs: np.ndarray, values: Sequence[tuple[SortValue, ...]], keys: Sequence[SortKey]) -> None:
    """By ascending values, equal ones by number."""
    if len(values) != len(docs) or any(len(own) != len(keys) for own in values):
        raise RubbishError("not a value for each document and each field that it is sorted by")
    try:
        places = [(*comparable(own, keys), doc) for own, doc in zip(values, docs.tolist(), strict=True)]
        is_sorted = all(one < other for one, other in pairwise(places))
    except TypeError as cause:
        raise RubbishError("values of different kinds") from cause
    if not is_sorted:
        raise RubbishError("documents are not in the order of their values")


def _check_order(docs: np.ndarray, scores: np.ndarray) -> None:
    """By falling score, equal ones by number. NaN is neither above nor below anything."""
    falls = scores[:-1] > scores[1:]
    if not falls.all():
        falls |= (scores[:-1] == scores[1:]) & (docs[:-1] < docs[1:])
    if not falls.all() or not math.isfinite(scores[0]) or not math.isfinite(scores[-1]):
        raise RubbishError("documents are not in the order of their scores, or a score is not a number")
