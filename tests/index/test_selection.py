from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.index.searching import expected, make_index, pairs

from rankwell import ParameterError
from rankwell.index.query.query import MOST_TERMS
from rankwell.index.reader import Index
from rankwell.index.search import selector as selector_module
from rankwell.index.search.best_documents import BestDocuments
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.pruning import SAMPLED, Pruning
from rankwell.index.search.selector import Selector
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter
from rankwell.kernels.selection.windows import DRIFT, WINDOW

WORDS = st.sampled_from([*"abcde", "rare"])
TEXT = st.lists(WORDS, max_size=9).map(" ".join)
DOCUMENT = st.fixed_dictionaries({}, optional={"title": TEXT, "body": TEXT})
CLAUSE = st.one_of(
    WORDS,
    WORDS,
    WORDS.map("+{}".format),
    WORDS.map("-{}".format),
    st.lists(WORDS, min_size=1, max_size=3).map(lambda words: f'"{" ".join(words)}"'),
    st.lists(WORDS, min_size=2, max_size=3).map(lambda words: f'-"{" ".join(words)}"'),
    st.just("absent"),
)
MODELS = [
    BM25(),
    BM25(k1=0.0),
    BM25(k1=3.0, b=1.0),
    BM25(stream="title"),
    BM25(stream="body", b=0.0),
    BM25F(),
    BM25F({"title": 3.5, "body": 0.5}, k1=0.9, b={"title": 0.2}),
    BM25F({"body": 2.0}, b=1.0),
]


@settings(max_examples=100)
@given(
    documents=st.lists(DOCUMENT, min_size=1, max_size=12),
    copies=st.sampled_from([1, 2, 11, 33, 65]),
    query=st.lists(CLAUSE, max_size=5).map(" ".join),
    k=st.sampled_from([1, 2, 10, 100, 1000]),
    model=st.sampled_from(MODELS),
    match=st.sampled_from(["any", "any", "all"]),
    seed=st.integers(0, 2**32 - 1),
)
@example([{"body": "a b"}, {"body": "a"}], 65, "a b", 10, BM25(), "any", 0)
@example([{"title": "a"}], 1, "a a", 1, BM25(), "any", 0)
def test_search_is_the_reference_to_the_last_bit(documents, copies, query, k, model, match, seed) -> None:
    """Copies make ties and lists around the edges of blocks; deletions and segments by chance."""
    random = np.random.default_rng(seed)
    documents = documents * copies
    cuts = np.flatnonzero(random.random(len(documents)) < random.choice([0.0, 2 / len(documents)])).tolist()
    deleted = np.flatnonzero(random.random(len(documents)) < random.choice([0.0, 0.0, 0.1, 0.9])).tolist()
    index = make_index(documents, cuts=[cut for cut in cuts if cut], deleted=deleted, streams=["title", "body"])
    wanted = expected(index, documents, query, k=k, model=model, match=match, deleted=deleted)
    assert pairs(index.search(query, k=k, model=model, match=match)) == wanted
    assert pairs(index.search(query, k=k, model=model, match=match, prune=False)) == wanted


@pytest.fixture(scope="module")
def large() -> Index:
    """250,000 short documents, most of them alike, so that windows are sampled and skipped and scores tie."""
    random = np.random.default_rng(5)
    words = np.minimum(random.zipf(1.2, 1_000_000), 3000)
    ends = np.cumsum(random.integers(0, 7, 250_000))
    text = [f"w{word}" for word in words.tolist()]
    documents = [
        {"title": text[end % 9999], "body": " ".join(text[start:end])}
        for start, end in zip([0, *ends.tolist()], ends.tolist(), strict=False)
    ]
    return make_index(documents, cuts=[230_000], streams=["title", "body"])


@pytest.mark.parametrize("model", [BM25(), BM25F({"title": 2.0, "body": 1.0}), BM25(stream="title")])
@pytest.mark.parametrize("match", ["any", "all"])
@pytest.mark.parametrize("k", [1, 10, 1000, 300_000])
def test_pruning_changes_nothing_in_a_large_index(large: Index, model: BM25 | BM25F, match: str, k: int) -> None:
    random = np.random.default_rng(k)
    for n_words in (1, 2, 3, 5, 8):
        # Common words and rare ones mixed.
        words = np.minimum(random.zipf(1.15, n_words), 3000)
        query = " ".join(f"w{word}" for word in words.tolist())
        pruned = large.search(query, k=k, model=model, match=match)
        whole = large.search(query, k=k, model=model, match=match, prune=False)
        assert pairs(pruned) == pairs(whole)
        assert (np.diff(pruned.scores) <= 0).all()
        ties = np.flatnonzero(np.diff(pruned.scores) == 0)
        assert (pruned.docs[ties] < pruned.docs[ties + 1]).all()


@pytest.mark.parametrize("filter", [None, "w1", "w900 OR w901", "w2 -w1"])
@pytest.mark.parametrize("query", ["title:w3 w5^2", "w10* w7", "+w2 (w3 AND title:w1) w40", '"w1 w2"~2 w5', "w7 w9 w1"])
def test_pruning_changes_nothing_with_fields_and_filters(large: Index, query: str, filter: str | None) -> None:
    """Filters that keep many documents, and few: those are looked up one by one."""
    for k in (10, 1000):
        for model in (BM25(), BM25F({"title": 2.0, "body": 1.0})):
            pruned = large.search(query, k=k, model=model, filter=filter)
            assert pairs(pruned) == pairs(large.search(query, k=k, model=model, filter=filter, prune=False))
            assert len(pruned) == min(k, pruned.n_matches)


@pytest.mark.parametrize("pruning", Pruning)
@pytest.mark.parametrize("match", ["any", "all"])
@pytest.mark.parametrize("model", [BM25(), BM25F({"title": 2.0, "body": 1.0})])
def test_every_way_of_pruning_finds_the_same(
    large: Index, model: BM25 | BM25F, match: str, pruning: Pruning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selector_module, "choose_pruning", lambda *situation: pruning)
    for k in (1, 30, 1000):
        for query in ("w1", "w2 w90", "w1 w3 w17 w400", "w1 w2 w3 w4 w5 w6 w7 w8"):
            found = large.search(query, k=k, model=model, match=match)
            assert pairs(found) == pairs(large.search(query, k=k, model=model, match=match, prune=False))


@pytest.mark.parametrize(("k", "n_searches"), [(300, 3), (1000, 3), (5000, 2)])
def test_a_wrong_guess_of_the_threshold_costs_nothing(k: int, n_searches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All good documents are in the windows that are sampled: the sample's estimate is too high for k up to 1,000."""
    documents = [{"body": "x"}] * 200_000
    for group in range(3):
        start = (16 * group + DRIFT * group % 16) * WINDOW
        documents[start : start + 30] = [{"body": "x y"}] * 30
    searched = []
    search = BestDocuments.search
    monkeypatch.setattr(BestDocuments, "search", lambda *asked: (searched.append(asked[2]), search(*asked)))
    index = make_index(documents)
    found = index.search("x y", k=k)
    assert searched == [SAMPLED, 1, 1][:n_searches]
    assert pairs(found) == pairs(index.search("x y", k=k, prune=False))


def test_bm25_by_hand() -> None:
    """Lengths 2 and 4, average 3; both have a: idf = ln(1 + 0.5/2.5); b is in one: ln(1 + 1.5/1.5) = ln 2."""
    index = make_index([{"body": "a b"}, {"body": "a a a c"}])
    result = index.search("b a", model=BM25(k1=1.0, b=0.5))
    first = math.log(2) * 2 / (1 + (0.5 + 0.5 * 2 / 3)) + math.log(1.2) * 2 / (1 + (0.5 + 0.5 * 2 / 3))
    second = math.log(1.2) * 3 * 2 / (3 + (0.5 + 0.5 * 4 / 3))
    assert result.ids == ["d0", "d1"]
    np.testing.assert_allclose(result.scores, [first, second], rtol=1e-14)


def test_bm25f_sums_streams_before_it_saturates() -> None:
    """x = 2·1 + 1·2 = 4 with b = 0, so the share is idf · 4·2/(4 + 1), not the sum of two saturated ones."""
    index = make_index([{"title": "a", "body": "a a"}, {"title": "b", "body": "b"}])
    result = index.search("a", model=BM25F({"title": 2.0, "body": 1.0}, k1=1.0, b=0.0))
    np.testing.assert_allclose(result.scores, [math.log(2) * 4 * 2 / 5], rtol=1e-14)


def test_bm25f_of_one_stream_is_bm25() -> None:
    documents = [{"body": text} for text in ("a b b", "b c", "a a c d")]
    index = make_index(documents)
    one, other = index.search("a b", model=BM25(k1=1.4, b=0.3)), index.search("a b", model=BM25F(k1=1.4, b=0.3))
    assert one.docs.tolist() == other.docs.tolist()
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-14)


def test_deleted_documents_do_not_count() -> None:
    documents = [{"body": text} for text in ("a b", "a", "c a a", "b b b b b b", "a c")]
    kept = [0, 1, 4]
    after = make_index(documents, deleted=[2, 3], cuts=[2])
    fresh = make_index([documents[doc] for doc in kept])
    for query in ("a", "a b", "c -b"):
        result = fresh.search(query)
        assert pairs(after.search(query)) == [
            (kept[doc], score) for doc, score in zip(result.docs.tolist(), result.scores.tolist(), strict=True)
        ]


def test_phrases_respect_the_gaps_of_stop_words() -> None:
    documents = [{"body": "bank of england"}, {"body": "bank england"}, {"body": "england bank of the"}]
    index = make_index(documents, analysis=Analysis(stop_words="english"))
    assert index.search('"bank of england"').ids == ["d0"]
    assert index.search('"bank the england"').ids == ["d0"]  # any stop word leaves the same gap
    assert index.search('"bank england"').ids == ["d1"]
    assert sorted(index.search("bank england").ids) == ["d0", "d1", "d2"]


def test_a_phrase_is_in_one_text_of_a_list(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "idx") as writer:
        writer.add([{"id": "apart", "tags": ["crude", "oil prices"]}, {"id": "together", "tags": ["x", "crude oil"]}])
        writer.commit()
    index = Index.open(tmp_path / "idx")
    assert index.search('"crude oil"').ids == ["together"]
    assert index.search('"oil prices"').ids == ["apart"]
    assert sorted(index.search("crude oil").ids) == ["apart", "together"]


def test_a_phrase_is_in_one_stream() -> None:
    index = make_index([{"title": "a", "body": "b"}, {"title": "c", "body": "a b"}, {"title": "a b"}])
    assert sorted(index.search('"a b"').ids) == ["d1", "d2"]
    assert index.search('"a b"', model=BM25(stream="title")).ids == ["d2"]
    assert index.search('"a b"', model=BM25F({"body": 1.0})).ids == ["d1"]
    assert index.search('a -"a b"').ids == ["d0"]


def test_nothing_to_find() -> None:
    index = make_index([{"body": "a"}, {"body": "b"}])
    for query in ("", "zzz", "-a", "+zzz a", "a -a", '"a b"', "..."):
        result = index.search(query)
        assert len(result) == 0
        assert result.ids == []
    assert len(make_index([]).search("a")) == 0
    assert len(make_index([{"body": "a"}], deleted=[0]).search("a")) == 0


def test_a_very_long_query() -> None:
    index = make_index([{"body": "w5 w3"}, {"body": "w9999"}, {"body": "w7 w7 w1023"}])
    result = index.search(" ".join(f"w{n}" for n in range(10_000)))
    assert result.query.is_shortened
    assert len(result.query.terms) == MOST_TERMS
    assert sorted(result.ids) == ["d0", "d2"]


def test_segments_that_lack_a_stream() -> None:
    """The stream 'title' came with the second segment."""
    index = make_index([{"body": "a"}, {"body": "a b"}, {"body": "a", "title": "a"}], cuts=[2])
    assert index.segments[0].n_streams == 1
    documents = [{"body": "a"}, {"body": "a b"}, {"body": "a", "title": "a"}]
    for model in (BM25(), BM25(stream="title"), BM25F({"title": 2.0, "body": 1.0})):
        assert pairs(index.search("a b", model=model)) == expected(index, documents, "a b", model=model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be 1 or more, got 0"),
        ({"k": True}, "k must be a whole number, got True"),
        ({"k": 1.5}, "k must be a whole number, got 1.5"),
        ({"match": "some"}, "match must be 'any' or 'all', got 'some'"),
        ({"model": BM25(stream="author")}, "the index has no stream 'author'. Its streams are: 'body'"),
        ({"model": BM25F({"author": 1.0})}, "the index has no stream 'author'"),
        ({"model": BM25F(b={"author": 1.0})}, "the index has no stream 'author'"),
        ({"model": "bm25"}, "model must be a BM25 or a BM25F, got 'bm25'"),
    ],
)
def test_wrong_arguments(arguments: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make_index([{"body": "a"}]).search("a", **arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BM25(k1=-1), "k1 must be between 0 and 1e6, got -1"),
        (lambda: BM25(b=math.nan), "b must be between 0 and 1, got nan"),
        (lambda: BM25F({"body": 0.0}), "the weight of stream 'body' must be between 1e-9 and 1e9, got 0.0"),
        (lambda: BM25(k1="x"), "k1 must be between 0 and 1e6, got 'x'"),
        (lambda: BM25(b=None), "b must be between 0 and 1, got None"),
        (lambda: BM25F(["body"]), r"weights must be a mapping of streams to numbers, got \['body'\]"),
        (lambda: BM25F({}), "weights must name at least one stream"),
        (lambda: BM25F(b={"body": 2}), "b of stream 'body' must be between 0 and 1, got 2"),
    ],
)
def test_wrong_models(make, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_term_that_another_thread_forgets_meanwhile() -> None:
    """Selectors are shared by threads, and one of them may clear the terms between two look-ups of another."""
    index = make_index([{"body": "a b"}, {"body": "a"}])
    selector = Selector.of(index, BM25().columns(index.schema))

    class Forgetful(dict[tuple[bytes, str | None], Any]):
        """Has a term when asked, and has lost it at the next look-up."""

        def __contains__(self, term: object) -> bool:
            found = super().__contains__(term)
            self.clear()
            return found

        def get(self, term: tuple[bytes, str | None], default: Any = None) -> Any:
            found = super().get(term, default)
            self.clear()
            return found

    for term in (b"a", b"absent"):
        wanted = selector._term(term, None)
        selector._terms = Forgetful({(term, None): wanted})
        assert selector._term(term, None) == wanted


def test_threads_that_share_a_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for two terms, each query clears what another has looked up."""
    monkeypatch.setattr(selector_module, "_TERMS_REMEMBERED", 2)
    index = make_index([{"body": " ".join(f"w{i}" for i in range(n, n + 6))} for n in range(20)])
    queries = [f"w{n} w{n + 1} absent{n}" for n in range(20)]
    wanted = [index.search(query).docs.tolist() for query in queries]
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda number: index.search(queries[number % 20]).docs.tolist(), range(2000))
        assert list(found) == wanted * 100
