"""Requests and answers of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankwell.errors import ParameterError
from rankwell.index.query.tree import Match
from rankwell.index.search.facets import Facets
from rankwell.serving.deadline import Deadline
from rankwell.serving.named_rankers import BM25_ALONE, NamedRankers


@dataclass(frozen=True)
class SearchRequest:
    """A query, which documents of its ranking are wanted, and until when.

    ranker : its name, None for the node's default
    plain : whether the query is words and nothing else
    query_id : the id under which the features are logged, if the node has a log
    captions : whether titles, captions and stored fields are wanted
    filter : what documents must meet besides
    typos : whether words that are written nearly as the query's are found too
    match : whether documents need "any" or "all" of the words
    sort : fields that order documents, in place of a ranker
    facets : fields to count, with the edges of their ranges or None
    stop_after : as of `rankwell.index.search.selection.search`
    like : the id of a document, in place of a query: those that are like it are wanted
    """

    query: str
    deadline: Deadline
    k: int = 10
    offset: int = 0
    ranker: str | None = None
    plain: bool = False
    query_id: str | None = None
    captions: bool = True
    filter: str | None = None
    sort: tuple[str, ...] = ()
    facets: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    stop_after: int | None = None
    like: str | None = None
    typos: bool = False
    match: Match = "any"

    def ranker_of(self, rankers: NamedRankers) -> str:
        """The name of the ranker; documents that are sorted by fields, or like another one, have none of their own."""
        if not self.sort and self.like is None:
            return rankers.ranker(self.ranker)
        if rankers.ranker(self.ranker or BM25_ALONE) != BM25_ALONE:
            parameter = "sort" if self.sort else "like"
            raise ParameterError(
                f"cannot be used with the ranker {self.ranker!r}, which gives another order: leave one of them out.",
                parameter=parameter,
            )
        return BM25_ALONE


# Not frozen: an answer has a hundred of them, and a frozen one takes three times as long to make.
@dataclass(slots=True)
class CaptionPart:
    """A piece of a caption; hit : whether it is a word of the query."""

    text: str
    hit: bool


@dataclass(slots=True)
class Result:
    """One document; rank is its place from 1, first_score its score in selection."""

    rank: int
    id: str
    score: float
    first_score: float
    title: str | None = None
    url: str | None = None
    caption: tuple[CaptionPart, ...] = ()
    fields: dict[str, Any] | None = None


@dataclass(frozen=True)
class Answer:
    """The answer to a request.

    version : of the snapshot that gave it; ranker : None for BM25 alone
    n_ranked : how many documents the ranker scored, of the `n_kept` that it was to score
    is_partial : whether the deadline ended that early: the others come last, in the order of the stage before
    is_late : whether the answer was made after the deadline
    seconds : by stage; stages that a batch shares are counted whole
    device : where it was ranked; fallback : why it was not the device that should have been used
    missing : the shards that did not answer, of n_shards; unranked : those that answered, and did not rank all of their
        documents in time
    n_matches : None if the search stopped before all were known; n_examined : how many documents it looked at then
    is_partly_counted : whether a shard was missing when words were counted that scores are made of
    facets : the counts of fields; words : what was searched for, if that is not a query of the request
    """

    version: int
    ranker: str | None
    n_matches: int | None
    n_candidates: int
    n_ranked: int
    n_kept: int
    is_partial: bool
    seconds: dict[str, float]
    results: tuple[Result, ...]
    device: str = "cpu"
    fallback: str | None = None
    n_shards: int = 1
    missing: tuple[str, ...] = ()
    unranked: tuple[str, ...] = ()
    is_late: bool = False
    n_examined: int | None = None
    facets: Facets = field(default_factory=dict)
    words: tuple[str, ...] = ()
    is_partly_counted: bool = False

    @property
    def is_degraded(self) -> bool:
        """Whether it is less than an answer with more time and all shards would be; one that is only late is not."""
        return self.is_partial or self.is_partly_counted or bool(self.missing)
