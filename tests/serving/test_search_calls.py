"""Filters, sorting, facets, an early stop and similar documents over HTTP: of one index, and of its shards."""

import re

import numpy as np
import pytest
from tests.serving.server_process import serving_from

from rankwell import Index, IndexWriter, ServerError
from rankwell.index.schema import Schema

WORDS = [f"word{number}" for number in range(12)]


def documents(n_docs):
    rng = np.random.default_rng(8)
    for number in range(n_docs):
        yield {
            "id": f"d{number}",
            "title": WORDS[number % 12],
            "body": " ".join(rng.choice(WORDS, 8).tolist()),
            "kind": sorted({f"k{one}" for one in rng.integers(0, 4, 2).tolist()}),
            "year": 2000 + int(rng.integers(0, 9)),
            "day": f"2024-0{rng.integers(1, 9)}-03",
            "visits": int(rng.integers(0, 1000)),
        }


def write(folder, rows):
    schema = Schema(["title", "body"], ["year", "visits"], keywords=["kind"], dates=["day"], static_order="visits")
    with IndexWriter(folder, schema=schema) as writer:
        writer.add(rows)
        writer.commit()
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One index, and two with halves of its documents."""
    folder, rows = tmp_path_factory.mktemp("calls"), list(documents(90))
    whole = write(folder / "whole", rows)
    return whole, [write(folder / "a", rows[:45]), write(folder / "b", rows[45:])]


@pytest.fixture(scope="module", params=["one index", "shards", "processes"])
def client(request, folders):
    whole, parts = folders
    served = parts if request.param == "shards" else [whole]
    (whole.parent / "synonyms.txt").write_text("television, word3\n")
    options = ["--synonyms", whole.parent / "synonyms.txt", "--timeout", 30000]
    options += ["--processes", 2] if request.param == "processes" else []
    with serving_from(*served, *options) as (_, client):
        yield client


@pytest.fixture(scope="module")
def index(folders):
    return Index.open(folders[0])


def ids_of(answer):
    return [result["id"] for result in answer["results"]]


def test_a_filter_leaves_documents_out(client, index):
    answer = client.search("word1 word2", 20, filter="year:>2003 kind:k1")
    found = index.search("word1 word2", k=20, filter="year:>2003 kind:k1")
    assert 0 < len(found) < index.search("word1 word2", k=90).n_matches
    assert answer["n_matches"] == found.n_matches
    assert sorted(ids_of(answer)) == sorted(found.ids)


def test_typing_errors_synonyms_and_all_words(client, index):
    assert ids_of(client.search("wrod1")) == []
    asked = {"wrod1": {"typos": True}, "word1 word2": {"match": "all"}}
    for query, settings in asked.items():
        answer, found = client.search(query, 90, **settings), index.search(query, k=90, **settings)
        assert (answer["n_matches"], sorted(ids_of(answer))) == (found.n_matches, sorted(found.ids))
    assert sorted(ids_of(client.search("television", 90))) == sorted(index.search("word3", k=90).ids)


def test_documents_are_sorted_by_fields(client, index):
    for sort in ("year:desc", ["kind", "visits:desc"], "day"):
        answer = client.search("word1 word2", 30, sort=sort)
        found = index.search("word1 word2", k=30, sort=sort)
        named = [sort] if isinstance(sort, str) else sort
        fields = [one.partition(":")[0] for one in named]
        rows = [[result["fields"][field] for field in fields] for result in answer["results"]]
        assert rows == [[index.stored(doc)[field] for field in fields] for doc in found.docs.tolist()]
        assert answer["ranker"] is None


def test_facets_count_all_documents_that_match(client, index):
    edges = {"kind": None, "year": [2000, 2003, 2009], "day": ["2024-01-01", "2024-05-01", "2025-01-01"]}
    answer = client.search("word1 word2", 1, facets=edges)
    found = index.search("word1 word2", facets=edges).facets
    for field, counts in found.items():
        values = [{"value": list(v) if isinstance(v, tuple) else v, "n_docs": n} for v, n in counts.items()]
        assert answer["facets"][field] == {"values": values, "n_values": len(values)}
    assert sum(one["n_docs"] for one in answer["facets"]["year"]["values"]) == answer["n_matches"]
    again = client.search("word1 word2", 1, facets=edges)
    assert again["cached"]
    assert again["facets"] == answer["facets"]
    assert client.search("word1 word2", 1)["facets"] == {}


def test_a_search_that_stops_early_says_how_far_it_went(client, index):
    answer = client.search("word1", 2, stop_after=6)
    found = index.search("word1", k=2, stop_after=6)
    assert found.stopped_early
    assert (answer["n_matches"], answer["n_examined"]) == (None, found.n_examined)
    assert sorted(ids_of(answer)) == sorted(found.ids)
    whole = client.search("word1", 2, stop_after=10_000)
    assert (whole["n_matches"], whole["n_examined"]) == (index.count("word1"), 90)


def test_similar_documents(client, index):
    answer = client.similar("d7", 12)
    found = index.more_like("d7", k=12)
    assert answer["n_matches"] == found.n_matches
    assert [result["score"] for result in answer["results"]] == found.scores.tolist()
    assert "d7" not in ids_of(answer)
    assert answer["query"].split() == [term.decode() for term in found.query.terms]
    assert any(part["hit"] for part in answer["results"][0]["caption"])
    assert ids_of(client.similar("d7", 4, offset=3)) == ids_of(answer)[3:7]
    assert client.similar("d7", 12)["cached"]
    few = client.similar("d7", 90, filter="kind:k0")
    assert few["n_matches"] == index.more_like("d7", k=90, filter="kind:k0").n_matches == len(few["results"])


@pytest.mark.parametrize(
    ("call", "status", "words"),
    [
        (lambda client: client.search("word1", sort="body"), 422, "sort must be fields as year or year:desc; 'body'"),
        (lambda client: client.search("word1", facets=["none"]), 422, "facet must be of year, visits, day, kind"),
        (lambda client: client.search("word1", facets={"year": [3, 2]}), 422, "two edges or more that ascend"),
        (lambda client: client.search("word1", filter="none:3"), 422, "none"),
        (lambda client: client.search("word1", stop_after=0), 422, "stop_after: Expected `int` >= 1"),
        (lambda client: client.search("word1", stop_after=3, facets=["kind"]), 422, "stop_after stops before all"),
        (lambda client: client.similar("nothing"), 404, "there is no document 'nothing' in the index"),
    ],
)
def test_mistakes_are_told(client, call, status, words):
    with pytest.raises(ServerError, match=re.escape(words)) as told:
        call(client)
    assert told.value.status == status


def test_what_can_be_sorted_and_counted_is_told(client):
    facts = client.index()
    assert facts["statics"] == ["year", "visits", "day"]
    assert (facts["keywords"], facts["dates"], facts["static_order"]) == (["kind"], ["day"], "visits")


def test_filters_that_differ_in_an_operator_find_different_documents(client, index):
    """One after another, from the same server: what is kept of one must not answer another."""
    joined = [f"kind:k1 {operator} kind:k2" for operator in ("AND", "OR", "AND", "OR")]
    k1, k2 = (set(index.search("*", k=90, filter=f"kind:{kind}").ids) for kind in ("k1", "k2"))
    wanted = [k1 & k2, k1 | k2] * 2
    for filter, ids in zip(joined, wanted, strict=True):
        assert sorted(ids_of(client.search("*", 90, filter=filter))) == sorted(ids)
