"""Searches in the query language find what every document, asked one by one, says."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.index.searching import expected, make_index, pairs

from rankwell.index.query.plan import MOST_EXPANSIONS
from rankwell.index.reader import Index
from rankwell.index.search import allowed_documents
from rankwell.index.search.allowed_documents import forget_filters
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.text.synonyms import Synonyms

WORDS = st.sampled_from([*"abcd", "ab", "abc", "rare"])
TEXT = st.lists(WORDS, max_size=9).map(" ".join)
DOCUMENT = st.fixed_dictionaries(
    {},
    optional={
        "title": TEXT,
        "body": TEXT,
        "year": st.integers(2000, 2004),
        "price": st.sampled_from([0.5, 1.0]),
        "kind": st.sampled_from(["book", "Book", "film", "film noir", "über"]),
        "tags": st.lists(st.sampled_from(["new", "old", "rare"]), max_size=3),
        "day": st.sampled_from(["2020-01-31", "2020-02-01T10:00:00", "2020-02-01T10:30:59", "2021-12-31"]),
    },
)
FIELDS = {
    "streams": ["title", "body"],
    "statics": ["year", "price"],
    "keywords": ["kind", "tags"],
    "dates": ["day"],
}
VALUE = st.integers(1999, 2005)
ENDS = st.tuples(VALUE, VALUE).map(sorted)
LEAVES = st.one_of(
    WORDS,
    WORDS,
    st.tuples(st.sampled_from(["title", "body"]), WORDS).map(":".join),
    st.tuples(WORDS, st.sampled_from(["2", "0.5", "10"])).map("^".join),
    st.sampled_from(["rara~", "abd~", "title:rar~1", "ax~2", "zzz~"]),
    st.sampled_from(["a*", "ab*", "title:a*", "r*", "x*", "absent", "*", "price:*", "body:*"]),
    st.tuples(st.lists(WORDS, min_size=1, max_size=3), st.integers(0, 4)).map(lambda p: f'"{" ".join(p[0])}"~{p[1]}'),
    st.lists(WORDS, min_size=2, max_size=2).map(lambda words: f'title:"{" ".join(words)}"'),
    ENDS.map(lambda ends: f"year:[{ends[0]} TO {ends[1]}]"),
    st.sampled_from(["kind:book", "kind:fil*", "tags:new", "tags:*", "day:2020"]),
    ENDS.map(lambda ends: f"year:{{{ends[0]} TO {ends[1]}}}"),
    st.tuples(st.sampled_from([">", ">=", "<", "<=", ""]), VALUE).map(lambda pair: f"year:{pair[0]}{pair[1]}"),
)


def _larger(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    clause = st.tuples(st.sampled_from(["", "", "", "+", "-", "NOT "]), part).map("".join)
    return st.one_of(
        st.lists(clause, min_size=1, max_size=4).map(lambda parts: f"({' '.join(parts)})"),
        st.lists(clause, min_size=2, max_size=3).map(lambda parts: f"({' AND '.join(parts)})"),
        st.lists(clause, min_size=2, max_size=3).map(lambda parts: f"({' OR '.join(parts)})"),
        part.map("(a {})^3".format),
    )


RULES = Synonyms.of(["a, d", "ab => rare, c d", "b c => abc", "# a comment", ""])
FILTERS = st.sampled_from(
    [
        "kind:book",
        'kind:"film noir"',
        "kind:fil*",
        "tags:(new OR old)",
        "tags:new tags:old",
        "-tags:rare",
        "kind:*",
        "-kind:* year:>2001",
        "day:2020-02",
        "day:[2020-01 TO 2020-02-01T10:00]",
        "day:{2020-01-31 TO 2021}",
        "day:<2020-02-01",
        "day:>=2021",
        "a -b",
        "",
        {"kind": ["book", "über"]},
        {"tags": "rare", "year": (2001, 2003)},
        {"year": 2002},
        {"day": ("2020-02", None)},
        {"day": date(2020, 2, 1)},
        {"kind": []},
        {},
    ]
)
QUERY = st.recursive(LEAVES, _larger, max_leaves=6).map(
    lambda text: text[1:-1] if text.startswith("(") and text.endswith(")") else text
)
MODELS = [
    BM25(),
    BM25(k1=0.0),
    BM25(stream="title"),
    BM25F(),
    BM25F({"title": 3.5, "body": 0.5}, k1=0.9, b={"title": 0.2}),
    BM25F({"body": 2.0}, b=1.0),
]


@settings(max_examples=200)
@given(
    documents=st.lists(DOCUMENT, min_size=1, max_size=12),
    copies=st.sampled_from([1, 2, 11, 33]),
    query=QUERY,
    k=st.sampled_from([1, 3, 10, 1000]),
    model=st.sampled_from(MODELS),
    match=st.sampled_from(["any", "any", "all"]),
    filter=st.one_of(st.none(), FILTERS),
    synonyms=st.one_of(st.none(), st.just(RULES)),
    typos=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@example([{"body": "ab"}, {"body": "abc d"}, {"body": "d"}], 11, "+a* d", 10, BM25(), "any", None, None, False, 0)
@example([{"body": "ab"}, {"body": "abc d"}, {"body": "d"}], 2, "+abd~ d", 10, BM25F(), "any", None, None, False, 0)
@example([{"body": "ab"}, {"body": "rare d"}, {"body": "d"}], 2, "+ab d", 10, BM25(), "any", None, RULES, False, 0)
def test_search_is_the_reference_to_the_last_bit(
    documents, copies, query, k, model, match, filter, synonyms, typos, seed
) -> None:
    """Copies make ties, and few or many documents that match; deletions and segments by chance."""
    random = np.random.default_rng(seed)
    documents = documents * copies
    cuts = np.flatnonzero(random.random(len(documents)) < random.choice([0.0, 2 / len(documents)])).tolist()
    deleted = np.flatnonzero(random.random(len(documents)) < random.choice([0.0, 0.0, 0.1, 0.9])).tolist()
    index = make_index(documents, cuts=[cut for cut in cuts if cut], deleted=deleted, **FIELDS)
    asked = {"k": k, "model": model, "match": match, "filter": filter, "synonyms": synonyms, "typos": typos}
    wanted = expected(index, documents, query, deleted=deleted, **asked)
    found = index.search(query, **asked)
    assert pairs(found) == wanted
    assert pairs(index.search(query, **asked, prune=False)) == wanted
    everything = expected(index, documents, query, deleted=deleted, **(asked | {"k": len(documents)}))
    assert found.n_matches == len(everything)
    check_sorted_and_counted(index, documents, query, asked, dict(everything))


def check_sorted_and_counted(index: Index, documents, query: str, asked: dict, matching: dict[int, float]) -> None:
    """Sorted searches and facets, from the documents that match and their scores."""
    facets = index.search(query, **asked, facets={"kind": None, "tags": None, "year": [2000, 2002, 2004]}).facets
    assert facets["kind"] == Counter(documents[doc]["kind"] for doc in matching if "kind" in documents[doc])
    assert facets["tags"] == Counter(tag for doc in matching for tag in set(documents[doc].get("tags", [])))
    years = [documents[doc].get("year", 0) for doc in matching]
    assert facets["year"] == {
        (2000, 2002): sum(2000 <= year < 2002 for year in years),
        (2002, 2004): sum(2002 <= year < 2004 for year in years),
    }

    def place(doc: int, field: str, sign: int) -> tuple:
        value = documents[doc].get(field)
        return (value is None, 0 if value is None else sign * value, doc)

    for sort, order in (
        ("year", lambda doc: place(doc, "year", 1)),
        ("price:desc", lambda doc: place(doc, "price", -1)),
        (["kind", "year:desc"], lambda doc: (*_keyword_place(documents[doc].get("kind")), *place(doc, "year", -1))),
    ):
        result = index.search(query, **asked, sort=sort)
        assert result.docs.tolist() == sorted(matching, key=order)[: asked["k"]]
        np.testing.assert_allclose(result.scores, [matching[doc] for doc in result.docs.tolist()], rtol=1e-12)


def _keyword_place(value: str | None) -> tuple:
    return (value is None, (value or "").encode())


@pytest.fixture(scope="module")
def films() -> Index:
    return make_index(
        [
            {"title": "Metropolis", "body": "a city of the future", "year": 1927},
            {"title": "Stalker", "body": "a guide leads two men to the zone", "year": 1979},
            {"title": "The Conversation", "body": "a city and two people recorded", "year": 1974},
            {"title": "City Lights", "body": "a tramp in the city"},
        ],
        cuts=[2],
    )


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("city AND two NOT people", []),
        ("city NOT two", ["d3", "d0"]),
        ("title:city", ["d3"]),
        ("(guide OR future) AND a", ["d0", "d1"]),
        ('"city future"', []),
        ('"city future"~2', ["d0"]),
        ('"people city"~3', []),
        ('"people city"~4', ["d2"]),  # the other way round: one word more to pass, and two between them
        ("metro*", ["d0"]),
        ("city year:[1970 TO *]", ["d2"]),
        ("year:<1975", ["d0", "d2"]),  # in the order of the documents, all with score 0
        ("* -year:*", ["d3"]),
        ("stalker^0.1 city title:metropolis^9", ["d0", "d3", "d2", "d1"]),
    ],
)
def test_films(films: Index, query: str, ids: list[str]) -> None:
    assert films.search(query).ids == ids


def test_what_looks_like_a_query_can_be_searched_as_text(films: Index) -> None:
    assert films.search("city AND (two", plain=True).ids == ["d2", "d1", "d3", "d0"]
    assert films.search("year:[1970 TO *]", plain=True).ids == ["d1"]  # which has the word "to"


def test_a_prefix_of_very_many_words() -> None:
    """Words above `MOST_EXPANSIONS` are found, but do not score."""
    documents = [{"body": f"w{number} {'w0' * (number == 150)}"} for number in range(3 * MOST_EXPANSIONS)]
    index = make_index(documents, cuts=[100])
    result = index.search("w*", k=1000)
    assert len(result) == len(documents)
    assert np.count_nonzero(result.scores) == MOST_EXPANSIONS
    assert pairs(result) == expected(index, documents, "w*", k=1000)


def test_threads_share_filters(films: Index) -> None:
    """With room for few filters, each search drops those of others."""
    wanted = {year: films.search("*", filter=f"year:>{year}").ids for year in range(1900, 1980)}

    def ask(seed: int) -> None:
        for year in np.random.default_rng(seed).integers(1900, 1980, 100).tolist():
            assert films.search("*", filter=f"year:>{year}").ids == wanted[year]

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4) as pool:
        patch.setattr(allowed_documents, "MOST_BYTES", 10)
        list(pool.map(ask, range(4)))


CONDITION = st.recursive(
    st.sampled_from(["kind:book", "kind:fil*", "tags:new", "tags:rare", "year:>2001", "title:a", "b", "*"]),
    lambda part: st.tuples(st.sampled_from([" AND ", " OR "]), st.lists(part, min_size=2, max_size=3)).map(
        lambda joined: f"({joined[0].join(joined[1])})"
    ),
    max_leaves=5,
)


@given(
    documents=st.lists(DOCUMENT, min_size=1, max_size=8),
    filters=st.lists(st.one_of(FILTERS, CONDITION, CONDITION.map("-{}".format)), min_size=2, max_size=8),
)
@example([{"kind": "book"}, {"tags": ["new"]}], ["kind:book AND tags:new", "kind:book OR tags:new"])
@example([{"kind": "book"}, {"kind": "film"}], ["(kind:book OR kind:film)", "(kind:book AND kind:film)"])
@example([{"body": "a"}], [{"kind": []}, {}])
def test_a_filter_finds_what_it_finds_first_of_all(documents, filters) -> None:
    """Whatever filters were used before it."""
    index, alone = make_index(documents, **FIELDS), []
    for filter in filters:
        forget_filters(index)
        alone.append(index.search("*", k=100, filter=filter).ids)
    forget_filters(index)
    for filter, wanted in [*zip(filters, alone, strict=True)] * 2:
        assert index.search("*", k=100, filter=filter).ids == wanted
        assert index.count("*", filter=filter) == len(wanted)


@given(
    documents=st.lists(DOCUMENT, min_size=1, max_size=8),
    conditions=st.permutations(["a AND b", "a OR b", "kind:book AND tags:new", "kind:book OR tags:new"]),
    signs=st.lists(st.sampled_from(["+", "-"]), min_size=4, max_size=4),
)
@example([{"body": "a"}, {"body": "a b"}], ["a AND b", "a OR b", "*", "*"], ["-", "-", "+", "+"])
def test_conditions_of_one_query_are_told_apart(documents, conditions, signs) -> None:
    index = make_index(documents, **FIELDS)
    query = " ".join(["*", *(f"{sign}({condition})" for sign, condition in zip(signs, conditions, strict=True))])
    wanted = expected(index, documents, query, k=100)
    assert index.count(query) == len(wanted)
    assert sorted(index.search(query, k=100).docs.tolist()) == sorted(doc for doc, _ in wanted)
