"""Requests and answers of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankwell.serving.deadline import Deadline


@dataclass(frozen=True)
class SearchRequest:
    """A query, which documents of its ranking are wanted, and until when.

    ranker : its name, None for the node's default
    plain : whether the query is words and nothing else
    query_id : the id under which the features are logged, if the node has a log
    captions : whether titles, captions and stored fields are wanted
    """

    query: str
    deadline: Deadline
    k: int = 10
    offset: int = 0
    ranker: str | None = None
    plain: bool = False
    query_id: str | None = None
    captions: bool = True


@dataclass(frozen=True)
class CaptionPart:
    """A piece of a caption; hit : whether it is a word of the query."""

    text: str
    hit: bool


@dataclass(frozen=True)
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
    is_partial : whether the deadline came before the ranker: the order is that of the stage before
    seconds : by stage; stages that a batch shares are counted whole
    device : where it was ranked; fallback : why it was not the device that should have been used
    missing : the shards that did not answer, of n_shards
    """

    version: int
    ranker: str | None
    n_matches: int
    n_candidates: int
    n_ranked: int
    is_partial: bool
    seconds: dict[str, float]
    results: tuple[Result, ...]
    device: str = "cpu"
    fallback: str | None = None
    n_shards: int = 1
    missing: tuple[str, ...] = ()

    @property
    def is_degraded(self) -> bool:
        """Whether it is less than an answer with more time and all shards would be."""
        return self.is_partial or bool(self.missing)
