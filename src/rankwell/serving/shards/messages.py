"""What an aggregator and its nodes say to each other: requests and replies, encoded as MessagePack.

Arrays travel as their bytes: int64 for numbers of documents and counts, float64 for scores, float32 for features.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from rankwell.index.query.tree import Match
from rankwell.serving.answer import CaptionPart

PROTOCOL = 4

Term = bytes
Field = str | None
# Documents and occurrences of a term: int64 (S + 1,) each, as bytes.
Counts = tuple[bytes, bytes]
SortValue = float | bytes | None
_Value = str | int | float
# A value of a field, or the edges of a range.
FacetValue = _Value | tuple[_Value, _Value]


class Census(Struct, frozen=True, array_like=True):
    """What is counted over all shards together, at one moment.

    schema : the fields of all shards, as an index records them
    tokens : the words of each stream, and of the whole documents
    synonyms : the rules by which queries are understood, as `Synonyms` has them
    epoch : changes when counts that a shard could not give are counted again
    """

    schema: dict[str, Any]
    n_docs: int
    tokens: list[int]
    epoch: int = 0
    synonyms: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()


class Version(Struct, frozen=True, array_like=True):
    """What a request is answered from: a commit of the shard's index, counted in a census (its digest)."""

    commit: str
    census: str


class AskedQuery(Struct, frozen=True, array_like=True):
    """What is searched for: a text, or terms with how much each counts; and what documents must meet besides.

    plain, filter, typos, match : as of `rankwell.serving.served_query.parse_served`
    """

    text: str
    plain: bool = False
    filter: str | None = None
    words: list[tuple[Term, float]] = []
    typos: bool = False
    match: Match = "any"


class Question(Struct, frozen=True, array_like=True):
    """A query, with what the other shards know about its words.

    prefixes : start, field, and the words that count for it with whether those are all
    near : term, edits and field, and the terms that count for it with their weights
    """

    query: AskedQuery
    terms: dict[Term, Counts]
    prefixes: list[tuple[bytes, Field, list[Term], bool]] = []
    near: list[tuple[Term, int, Field, list[tuple[Term, float]]]] = []


class Model(Struct, frozen=True, array_like=True):
    """A relevance model: its settings, and the weights of its terms in their order."""

    documents: int
    terms: int
    original: float
    weights: list[tuple[Term, float]]


class Hello(Struct, frozen=True, array_like=True, tag="hello"):
    """The first request of a connection."""

    protocol: int
    token: Annotated[str, Meta(max_length=1000)]


class Describe(Struct, frozen=True, array_like=True, tag="describe"):
    """Which index the node has now; also asked to see whether it lives."""


class Open(Struct, frozen=True, array_like=True, tag="open"):
    """To a spare: take the place of a node that had this index."""

    folder: Annotated[str, Meta(max_length=4096)]


class Prepare(Struct, frozen=True, array_like=True, tag="prepare"):
    """Get ready to answer by a census."""

    commit: str
    census: Census


class PutRanker(Struct, frozen=True, array_like=True, tag="put_ranker"):
    """A ranker file; it is called by the digest of its bytes."""

    content: bytes


class Count(Struct, frozen=True, array_like=True, tag="count"):
    """What this shard counts for words: terms, prefixes (with a field) and near words (with edits and a field)."""

    commit: str
    terms: list[Term] = []
    prefixes: list[tuple[bytes, Field]] = []
    near: list[tuple[Term, int, Field]] = []


class Select(Struct, frozen=True, array_like=True, tag="select"):
    """The best k documents of the shard for a query, or the first k by fields.

    ranker : of a cascade, whose first pass is run at once if it reads nothing but what selection knows
    sort : fields as "year" or "year:desc"
    facets : fields to count, with the edges of their ranges
    first : only so many documents are looked at, in the shard's static order; then matches are not counted
    without : the number of a document that is not to be found
    """

    version: Version
    question: Question
    k: int
    ranker: str | None = None
    sort: list[str] = []
    facets: dict[str, list[str] | None] = {}
    first: int | None = None
    without: int | None = None


class Score(Struct, frozen=True, array_like=True, tag="score"):
    """One pass of a ranker over some documents.

    ranker : the digest of its file; stage : "first", "second", or "whole" for all features
    docs, scores : what selection found of this shard, in the order in which it is to be ranked
    models : for features that read them
    ids : whether the documents' ids are wanted too
    """

    version: Version
    question: Question
    ranker: str
    stage: str
    docs: bytes
    scores: bytes
    models: list[Model] = []
    ids: bool = False


class Show(Struct, frozen=True, array_like=True, tag="show"):
    """Ids, captions and stored fields of documents."""

    version: Version
    question: Question
    docs: list[int]


class Find(Struct, frozen=True, array_like=True, tag="find"):
    """The numbers of documents by their ids; -1 where the shard has none."""

    version: Version
    ids: list[str]


class Words(Struct, frozen=True, array_like=True, tag="words"):
    """The terms of documents, and how often each has them."""

    version: Version
    docs: list[int]


class StaticOrder(Struct, frozen=True, array_like=True, tag="static_order"):
    """The values that order the shard's documents."""

    version: Version


Request = Hello | Describe | Open | Prepare | PutRanker | Count | Select | Score | Show | Find | Words | StaticOrder


class Done(Struct, frozen=True, array_like=True, tag="done"):
    pass


class Load(Struct, frozen=True, array_like=True):
    """What a node has done since it was started, and what waits.

    n_batches, n_requests : batches, and requests in them; n_ranked : passes over a query's documents, by device
    """

    n_batches: int = 0
    n_requests: int = 0
    n_waiting: int = 0
    n_ranked: dict[str, int] = {}


class Facts(Struct, frozen=True, array_like=True, tag="facts"):
    """The index of a node.

    n_numbers : how many numbers of documents there are, deleted ones included; sample : a few words of some document
    fallback : why rankers run on the CPU and not on the device that was asked for; empty if they do not
    """

    release: str
    folder: str
    commit: str
    generation: int
    schema: dict[str, Any]
    analysis: dict[str, Any]
    n_docs: int
    n_numbers: int
    n_segments: int
    n_bytes: int
    tokens: list[int]
    sample: str
    fallback: str = ""
    load: Load = Load()


class Counted(Struct, frozen=True, array_like=True, tag="counted"):
    """The answers to `Count`, in its order. near : for each term its edits and its documents"""

    terms: list[Counts]
    prefixes: list[dict[Term, int]]
    near: list[dict[Term, tuple[int, int]]]


class Scored(Struct, frozen=True, array_like=True, tag="scored"):
    """Scores, float64; or features, float32, if the ranker needs all documents of the query to score one.

    device : where they were computed
    ranked : which documents have scores, int64, ascending, if the deadline came before all had one
    """

    scores: bytes | None = None
    rows: bytes | None = None
    ids: list[str] = []
    device: str = "cpu"
    ranked: bytes | None = None


class Selected(Struct, frozen=True, array_like=True, tag="selected"):
    """docs : int64, best first; scores : float64; n_matches : of the whole shard

    first : what the first pass gives, if it was run
    sort_values : the values of each document that it is sorted by
    facets : the counts of all values or ranges; n_examined : live documents that were looked at, if not all were
    """

    docs: bytes
    scores: bytes
    n_matches: int | None
    first: Scored | None = None
    sort_values: list[tuple[SortValue, ...]] = []
    facets: dict[str, list[tuple[FacetValue, int]]] = {}
    n_examined: int | None = None


class ShownDocument(Struct, frozen=True, array_like=True):
    doc: int
    id: str
    title: str | None
    url: str | None
    caption: list[CaptionPart]
    fields: dict[str, Any]


class Shown(Struct, frozen=True, array_like=True, tag="shown"):
    documents: list[ShownDocument]


class Found(Struct, frozen=True, array_like=True, tag="found"):
    docs: list[int]


class WordsOf(Struct, frozen=True, array_like=True, tag="words_of"):
    """For each document its different terms and their counts."""

    documents: list[dict[Term, int]]


class Failure(Struct, frozen=True, array_like=True, tag="failure"):
    """Why there is no answer.

    kind : "commit", "census" or "ranker" if the node does not have what the request names; "overload" with
        retry_after, "deadline", "refused" (a wrong token or protocol), "mistake" (of the user) or "failed"
    """

    kind: str
    text: str
    parameter: str | None = None
    retry_after: float = 1.0


class Ordered(Struct, frozen=True, array_like=True, tag="ordered"):
    """values : float64, one for each number of a document, falling; NaN, for documents without one, comes last"""

    values: bytes


Reply = Done | Facts | Counted | Selected | Scored | Shown | Found | WordsOf | Ordered | Failure


class Sent(Struct, frozen=True, array_like=True):
    """A request on its way: its number on the connection, and how many seconds are left for it."""

    number: int
    seconds: float
    body: Request


class Received(Struct, frozen=True, array_like=True):
    """A reply on its way: the request's number, and how many seconds the node worked on it."""

    number: int
    seconds: float
    body: Reply
