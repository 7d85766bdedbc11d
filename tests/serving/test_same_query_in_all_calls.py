"""What is explained, compared and scored is what was searched for: of one index, and of its shards, bit for bit."""

from contextlib import ExitStack

import pytest

pytest.importorskip("starlette", reason="the server needs the extra 'serve'")

from starlette.testclient import TestClient
from tests.serving.in_process_shards import shards_client
from tests.serving.test_search_calls import documents

from rankwell import Index, IndexWriter, MadeRanker, RankedSearch
from rankwell.index.schema import Schema
from rankwell.index.text.synonyms import Synonyms
from rankwell.serving.http.app import make_app
from rankwell.serving.http.service import SearchService
from rankwell.serving.node import Node

# Scaled within the candidates of a query: a score is another one if there are other candidates.
COMPARED = """
normaliser: query-minmax
inputs:
  - linear: {feature: bm25.body}
  - linear: {feature: static.visits, scale: 0.5}
"""
SYNONYMS = Synonyms.of(["television, word3", "wireless set => word4 word5"])
QUERY, FILTER, N_CANDIDATES = "word1 word2", "year:>2003 kind:k1", 30


def write(folder, rows):
    """Without a static order, documents with equal scores are in the order of the rows, also over shards."""
    with IndexWriter(folder, schema=Schema(["title", "body"], ["year", "visits"], keywords=["kind"])) as writer:
        writer.add(rows)
        writer.commit()
    return folder


class Served:
    """The same documents as one index and as two shards."""

    def __init__(self, folder, stack):
        rows = list(documents(90))
        (folder / "compared.yaml").write_text(COMPARED)
        MadeRanker.from_yaml(folder / "compared.yaml").save(folder / "compared.rank")
        rankers = {"compared": folder / "compared.rank"}
        whole, parts = write(folder / "whole", rows), [write(folder / "a", rows[:45]), write(folder / "b", rows[45:])]
        self.search = RankedSearch(Index.open(whole), rankers["compared"], n_candidates=N_CANDIDATES)
        settings = {"n_candidates": N_CANDIDATES, "synonyms": SYNONYMS}
        service = SearchService(Node(whole, rankers, **settings), timeout=30.0)
        one = TestClient(make_app(service), raise_server_exceptions=False)
        sharded = shards_client(parts, rankers, **settings)
        self.clients = [stack.enter_context(client) for client in (one, sharded)]

    def get(self, path, **asked):
        """The answer of both, which is the same."""
        one, other = (client.get(path, params=asked) for client in self.clients)
        assert (one.status_code, other.status_code) == (200, 200), (one.text, other.text)
        answers = [answer.json() for answer in (one, other)]
        unlike = {"took_ms", "stages_ms", "coverage", "cached"}
        bare = [{name: value for name, value in answer.items() if name not in unlike} for answer in answers]
        assert bare[0] == bare[1]
        return answers[0]

    def post(self, path, body):
        one, other = (client.post(path, json=body) for client in self.clients)
        assert (one.status_code, one.json()) == (other.status_code, other.json())
        return one


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with ExitStack() as stack:
        yield Served(tmp_path_factory.mktemp("settings"), stack)


def test_a_filter_counts_in_every_call(served):
    shown = served.get("/search", q=QUERY, filter=FILTER, k=5)["results"]
    parsed = served.search.index.parse(QUERY, filter=FILTER)
    assert [result["id"] for result in shown] == list(served.search.search(parsed, 5).ids)
    for result in shown:
        answer = served.get("/explain", q=QUERY, filter=FILTER, id=result["id"])
        assert (answer["score"], answer["rank"]) == (result["score"], result["rank"])
    unfiltered = served.get("/explain", q=QUERY, id=shown[0]["id"])
    assert unfiltered["score"] != shown[0]["score"]
    rankings = served.get("/compare", q=QUERY, filter=FILTER, k=5, rankers="bm25,compared")["rankings"]
    assert [result["id"] for result in rankings[1]["results"]] == [result["id"] for result in shown]
    by_bm25 = served.get("/search", q=QUERY, filter=FILTER, k=5, ranker="bm25")["results"]
    assert [result["id"] for result in rankings[0]["results"]] == [result["id"] for result in by_bm25]
    assert served.get("/features", q=QUERY, filter=FILTER, id=shown[0]["id"])["features"].keys() == {
        "bm25.body",
        "static.visits",
    }


def test_plain_words_are_plain_in_every_call(served):
    asked = {"q": "word1 (word2", "plain": "true"}
    first = served.get("/search", **asked)["results"][0]
    assert served.get("/explain", **asked, id=first["id"])["score"] == first["score"]
    features = served.get("/features", **asked, id=first["id"])["features"]
    rows = served.search.features(served.search.index.parse("word1 (word2", plain=True), [first["id"]])
    assert list(features.values()) == rows[0].tolist()
    ranked = served.post(
        "/rank", {"query": "word1 (word2", "plain": True, "documents": [first["id"]], "filter": FILTER}
    )
    assert ranked.json()["scores"] == served.search.score(rows).tolist()


def test_a_comparison_without_a_shard_is_marked(served):
    whole = served.get("/compare", q=QUERY, rankers="bm25,compared", k=50)
    assert whole["degraded"] is None
    client = served.clients[1]
    (link,) = client.service.aggregator.shards[1].links
    link.is_up = False
    try:
        answer = client.get("/compare", params={"q": QUERY, "rankers": "bm25,compared", "k": 50}).json()
    finally:
        link.is_up = True
    assert answer["coverage"] == {"shards": 2, "answered": 1, "missing": [link.name], "unranked": []}
    text = f"1 of 2 shards did not answer: {link.name}."
    assert answer["degraded"] == {"reason": "shards", "text": text}
    shown = {result["id"] for ranking in answer["rankings"] for result in ranking["results"]}
    assert shown <= {f"d{number}" for number in range(45)}
    again = client.get("/compare", params={"q": QUERY, "rankers": "bm25,compared", "k": 50}).json()
    assert (again["degraded"], again["rankings"]) == (None, whole["rankings"])


def assert_agree(served, asked, parsed):
    """All calls answer as a ranked search for `parsed`."""
    shown = served.get("/search", **asked, k=5)
    found = served.search.search(parsed, 5)
    assert [(one["id"], one["score"]) for one in shown["results"]] == list(zip(found.ids, found.scores, strict=True))
    assert shown["n_matches"] == found.selected.n_matches > 0
    first = shown["results"][0]
    assert served.get("/explain", **asked, id=first["id"])["score"] == first["score"]
    features = served.get("/features", **asked, id=first["id"])["features"]
    rows = served.search.features(parsed, [first["id"]])
    assert list(features.values()) == rows[0].tolist()
    body = {"query" if name == "q" else name: True if value == "true" else value for name, value in asked.items()}
    scored = served.post("/rank", {**body, "documents": [first["id"]]})
    assert scored.json()["scores"] == served.search.score(rows).tolist()
    compared = served.get("/compare", **asked, k=5, rankers="bm25,compared")["rankings"][1]["results"]
    assert [one["id"] for one in compared] == list(found.ids)
    return shown


def test_typing_errors_are_forgiven_in_every_call(served):
    index = served.search.index
    assert served.get("/search", q="wrod1 wxrd2")["n_matches"] == 0
    asked = {"q": "wrod1 wxrd2", "typos": "true"}
    shown = assert_agree(served, asked, index.parse("wrod1 wxrd2", typos=True, synonyms=SYNONYMS))
    assert any(part["hit"] for part in shown["results"][0]["caption"])
    assert served.get("/search", **asked, k=5)["cached"]
    assert not served.get("/search", q="wrod1 wxrd2", k=5)["cached"]


def test_synonyms_of_the_server_are_found_in_every_call(served):
    for text in ("television", "wireless set word1"):
        assert_agree(served, {"q": text}, served.search.index.parse(text, synonyms=SYNONYMS))
        assert_agree(served, {"q": text, "plain": "true"}, served.search.index.parse(text, synonyms=SYNONYMS))


def test_all_words_are_needed_in_every_call_if_that_is_asked_for(served):
    index = served.search.index
    strict = RankedSearch(index, served.search.description, n_candidates=N_CANDIDATES, match="all")
    shown = assert_agree(served, {"q": QUERY, "match": "all"}, index.parse("+word1 +word2"))
    found = strict.search(index.parse(QUERY), 5)
    assert [(one["id"], one["score"]) for one in shown["results"]] == list(zip(found.ids, found.scores, strict=True))
    assert shown["n_matches"] < served.get("/search", q=QUERY)["n_matches"]


@pytest.mark.parametrize("path", ["/search", "/explain?id=d1", "/features?id=d1", "/compare?rankers=bm25,compared"])
def test_a_mistake_in_a_filter_is_told_as_one_of_the_filter(served, path):
    for client in served.clients:
        told = client.get(path, params={"q": QUERY, "filter": "foo:1", **dict(_pairs(path))})
        assert (told.status_code, told.json()["parameter"]) == (422, "filter")
        assert told.json()["error"].startswith("the filter cannot be read, column 1: there is no field 'foo'")


def _pairs(path):
    """The parameters that a path has already, which the client would drop."""
    return [one.split("=") for one in path.partition("?")[2].split("&") if one]
