"""What clients send and get over HTTP: parameters, bodies and answers, with their limits."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from rankwell.serving.answer import Result

LONGEST_QUERY = 2000
MOST_RESULTS = 1000
MOST_ROWS = 10_000
MOST_FACETS = 16
MOST_FACET_VALUES = 100
LONGEST_TIMEOUT_MS = 60_000

QueryText = Annotated[str, Meta(max_length=LONGEST_QUERY, description="The query.")]
DocumentId = Annotated[str, Meta(min_length=1, max_length=1000, description="The id of a document.")]
RankerName = Annotated[str, Meta(max_length=200, description="The name of a ranker; bm25 is selection alone.")]
Count = Annotated[int, Meta(ge=1, le=MOST_RESULTS, description="How many results.")]
Offset = Annotated[int, Meta(ge=0, le=MOST_RESULTS, description="How many results are left out before them.")]
Milliseconds = Annotated[float, Meta(gt=0, le=LONGEST_TIMEOUT_MS, description="The time the answer may take.")]
Plain = Annotated[bool, Meta(description="Whether the query is words and nothing else, without operators.")]
Typos = Annotated[bool, Meta(description="Whether words that are written nearly as the query's are found too.")]
MatchRule = Annotated[Literal["any", "all"], Meta(description="Whether documents need any or all of the words.")]
Filter = Annotated[
    str, Meta(max_length=LONGEST_QUERY, description="What documents must meet besides, as year:>2000 kind:book.")
]
Facet = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=500,
        description="A field to count over all documents that match: its values, or FIELD=EDGE,EDGE,... for ranges.",
    ),
]
Vote = Annotated[Literal[1, -1, 0], Meta(description="1 is good, -1 is bad, 0 takes the vote back.")]


class QueryParameters(Struct, forbid_unknown_fields=True):
    """What is searched for: the same in all calls, so that what is explained is what was shown."""

    q: QueryText
    plain: Plain = False
    filter: Filter | None = None
    typos: Typos = False
    match: MatchRule = "any"


class SearchParameters(QueryParameters, kw_only=True):
    k: Count = 10
    offset: Offset = 0
    ranker: RankerName | None = None
    timeout_ms: Milliseconds | None = None
    sort: (
        Annotated[
            str,
            Meta(
                min_length=1, max_length=500, description="Order by fields, as year:desc,brand, in place of a ranker."
            ),
        ]
        | None
    ) = None
    facet: Annotated[list[Facet], Meta(max_length=MOST_FACETS)] = []
    stop_after: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=1_000_000_000,
                description="Look only at the first documents in the index's static order: about so many match.",
            ),
        ]
        | None
    ) = None


class SimilarParameters(Struct, forbid_unknown_fields=True):
    id: DocumentId
    k: Count = 10
    offset: Offset = 0
    filter: Filter | None = None
    timeout_ms: Milliseconds | None = None


class DocumentParameters(QueryParameters, kw_only=True):
    id: DocumentId
    ranker: RankerName | None = None


class CompareParameters(QueryParameters, kw_only=True):
    rankers: Annotated[str, Meta(max_length=1000, description="Names of two to four rankers, separated by commas.")]
    k: Count = 10


class NoParameters(Struct, forbid_unknown_fields=True):
    pass


class RankBody(Struct, forbid_unknown_fields=True):
    """Either a query and documents, or features of the documents of one query.

    A ranker that normalises features within a query compares the documents that are sent: send all that it is to
    order, since their scores depend on which others are sent, and one alone has nothing to be compared with.
    """

    query: QueryText | None = None
    documents: Annotated[list[DocumentId], Meta(min_length=1, max_length=MOST_RESULTS)] | None = None
    features: Annotated[list[list[float | None]], Meta(min_length=1, max_length=MOST_ROWS)] | None = None
    ranker: RankerName | None = None
    plain: Plain = False
    filter: Filter | None = None
    typos: Typos = False
    match: MatchRule = "any"


class ClickBody(Struct, forbid_unknown_fields=True):
    impression: Annotated[str, Meta(max_length=100)]
    document: DocumentId


class VoteBody(Struct, forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1, max_length=LONGEST_QUERY)]
    document: DocumentId
    vote: Vote


class RankerBody(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(min_length=1, max_length=4096, description="A ranker file on the server.")]


class Coverage(Struct):
    """How many shards there are, how many of them answered, and the addresses of the others.

    unranked : the addresses of those that answered, and did not rank all of their documents in time
    """

    shards: int = 1
    answered: int = 1
    missing: list[str] = []
    unranked: list[str] = []


class Degraded(Struct):
    reason: Annotated[
        str,
        Meta(
            description="shards: some are missing; deadline: it ended ranking early; counts: words were counted while "
            "a shard was missing; late: the answer is whole, and came after the deadline."
        ),
    ]
    text: str


FacetValue = str | int | float


class FacetCount(Struct):
    value: Annotated[
        FacetValue | tuple[FacetValue, FacetValue], Meta(description="A value, or the two edges of a range.")
    ]
    n_docs: int


class FacetAnswer(Struct):
    """The most frequent values of a field, or all its ranges in their order; n_values : how many there are"""

    values: list[FacetCount]
    n_values: int


class SearchAnswer(Struct):
    query: Annotated[str, Meta(description="The query; of similar documents, the words that they were found by.")]
    ranker: str | None
    impression: str | None
    n_matches: Annotated[int | None, Meta(description="null if the search stopped before all were known.")]
    n_candidates: int
    n_ranked: Annotated[int, Meta(description="How many documents the ranker scored; the others are below them.")]
    n_kept: Annotated[int, Meta(description="How many it would have scored with enough time.")]
    took_ms: float
    stages_ms: dict[str, float]
    cached: bool
    coverage: Coverage
    degraded: Degraded | None
    device: Annotated[str, Meta(description="Where it was ranked: cpu, cuda, or cpu+cuda by nodes that differ.")]
    fallback: Annotated[str | None, Meta(description="Why the CPU ranked it instead of the device.")]
    results: list[Result]
    n_examined: Annotated[
        int | None, Meta(description="With stop_after: the results are the best of so many documents.")
    ] = None
    facets: dict[str, FacetAnswer] = {}


class Transform(Struct):
    """An input that the ranker made of a feature or is a formula, and what it added to the score."""

    kind: Annotated[str, Meta(description="linear, log-linear, bucket or expression.")]
    output: Annotated[float, Meta(description="The input itself: what the transform gave.")]
    contribution: float


class FeaturePart(Struct):
    name: Annotated[str, Meta(description="A feature, or a formula that the ranker computes.")]
    value: Annotated[float | None, Meta(description="As it was extracted; null of a formula.")]
    input: Annotated[float | None, Meta(description="As the ranker read it, after normalisation; null of a formula.")]
    contribution: float
    transforms: Annotated[
        list[Transform],
        Meta(description="The inputs made of it alone. What trees added, which read several, is in contribution only."),
    ] = []


class ExplainAnswer(Struct):
    id: str
    rank: int
    score: Annotated[float, Meta(description="The score of the result: bias, contributions and offset sum to it.")]
    bias: float
    features: list[FeaturePart]
    ranking_pass: Annotated[
        Literal["first", "second"] | None,
        Meta(
            description="Of a ranker with two passes: first if the document was not kept for the second, and is below "
            "all that were, in the order of the first pass, which is explained."
        ),
    ] = None
    offset: Annotated[
        float | None,
        Meta(
            description="Of a document that was not kept for the second pass: what takes its score in the first pass "
            "down to its place below all that were."
        ),
    ] = None


class Ranking(Struct):
    ranker: str
    results: list[Result]


class Move(Struct, rename={"before": "from", "after": "to"}):
    """The places of a document in the first and the last ranking; null where it is not shown."""

    before: int | None
    after: int | None


class CompareAnswer(Struct):
    """coverage, degraded : of all rankings together; a shard that is missing from one of them is missing"""

    rankings: list[Ranking]
    moved: dict[str, Move]
    coverage: Coverage
    degraded: Degraded | None


class RankerAnswer(Struct):
    name: str
    kind: str
    features: int
    cascade: bool
    default: bool


class NodeAnswer(Struct):
    """A node and its state: up, down, or resting after failures."""

    address: str
    state: str


class ShardAnswer(Struct):
    documents: int
    generation: int
    nodes: list[NodeAnswer]


class IndexAnswer(Struct):
    documents: int
    segments: int
    streams: list[str]
    statics: list[str]
    keywords: list[str]
    language: str | None
    generation: int
    bytes: int
    clicks: bool
    votes: bool
    dates: Annotated[list[str], Meta(description="Those of the statics that are dates.")] = []
    static_order: Annotated[str | None, Meta(description="The static by which documents are ordered.")] = None
    shards: list[ShardAnswer] = []


class ScoresAnswer(Struct):
    scores: Annotated[
        list[float],
        Meta(
            description="In the order of the documents; comparable among them alone if the ranker normalises by query."
        ),
    ]


class FeaturesAnswer(Struct):
    features: dict[str, float | None]


class StateAnswer(Struct):
    status: str


class ErrorAnswer(Struct):
    error: str
    parameter: str | None = None
