"""The HTTP calls: answers, errors with their remedy, limits, the cache, the token."""

import json
import logging
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("starlette", reason="the server needs the extra 'serve'")

from starlette.testclient import TestClient
from tests.serving.in_process_shards import shards_client
from tests.serving.served_index import N_CANDIDATES, QUERIES, save_alone

from rankwell import Index, MadeRanker, RankedSearch
from rankwell.clicks.use_log import read_impressions
from rankwell.errors import DataError
from rankwell.features.qrels import read_qrels
from rankwell.features.queries import read_queries
from rankwell.serving.http.app import make_app
from rankwell.serving.http.endpoint import MOST_BYTES
from rankwell.serving.http.service import SearchService
from rankwell.serving.node import Node
from rankwell.serving.ranking.ranking_pass import RankingPass
from rankwell.serving.result_cache import ResultCache
from rankwell.serving.use import Use


def make_client(served, *, page=None, token=None, use=None, feature_log=None, **settings):
    folder, rankers = served
    node = Node(folder / "index", rankers, n_candidates=N_CANDIDATES, feature_log=feature_log)
    # Deadlines are tested on their own: a busy machine must not make other tests fail.
    service = SearchService(node, use=use, **{"timeout": 30.0, **settings})
    pages = {} if page is None else {"page": page}
    client = TestClient(make_app(service, token=token, **pages), raise_server_exceptions=False)
    client.service = service
    return client


@pytest.fixture
def client(served):
    with make_client(served) as client:
        yield client


def test_search_answers_as_ranked_search_does_to_the_last_bit(served, client):
    folder, rankers = served
    search = RankedSearch(Index.open(folder / "index"), rankers["boosted"], n_candidates=N_CANDIDATES)
    for query in QUERIES[:6]:
        answer = client.get("/search", params={"q": query, "k": 12}).json()
        found = search.search(query, 12)
        assert [result["id"] for result in answer["results"]] == list(found.ids)
        assert [result["score"] for result in answer["results"]] == found.scores.tolist()
        assert [result["first_score"] for result in answer["results"]] == found.first_scores.tolist()
        assert answer["n_matches"] == search.index.count(query)
        assert (answer["n_candidates"], answer["n_ranked"]) == (found.n_candidates, found.n_ranked)
    assert answer["ranker"] == "boosted"
    assert (answer["cached"], answer["degraded"], answer["impression"]) == (False, None, None)
    assert answer["coverage"] == {"shards": 1, "answered": 1, "missing": [], "unranked": []}
    assert set(answer["stages_ms"]) == {"parse", "select", "rank", "captions", "wait"}


def test_many_clients_at_once_get_their_own_answers(served, client):
    alone = {query: client.get("/search", params={"q": query}).json()["results"] for query in set(QUERIES)}
    client.service.cache.clear()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda query: client.get("/search", params={"q": query}).json(), QUERIES * 4))
    for answer in answers:
        assert answer["results"] == alone[answer["query"]]


def test_an_answer_given_again_comes_from_the_cache(client):
    first, second = (client.get("/search?q=w1+w2").json() for _ in range(2))
    assert (first["cached"], second["cached"]) == (False, True)
    assert set(second["stages_ms"]) == {"cache"}
    unlike = {"cached", "took_ms", "stages_ms"}
    assert {k: v for k, v in first.items() if k not in unlike} == {k: v for k, v in second.items() if k not in unlike}
    for other in ("q=w1+w2&k=9", "q=w1+w2&offset=1", "q=w1+w2&ranker=linear", "q=w1+w2&plain=true", "q=w1"):
        assert not client.get(f"/search?{other}").json()["cached"]
    assert client.get("/search?q=w1+w2&ranker=boosted").json()["cached"]


def test_a_change_of_a_ranker_ends_what_is_cached(served):
    _, rankers = served
    with make_client(served, token="secret") as client:
        before = client.get("/search?q=w1+w2").json()
        put = {"path": str(rankers["linear"])}
        assert client.post("/rankers/boosted", json=put, headers={"Authorization": "Bearer secret"}).status_code == 204
        after = client.get("/search?q=w1+w2").json()
        assert not after["cached"]
        assert after["results"] != before["results"]


class SlowSelection:
    """Holds the ranking thread until it is released."""

    def __init__(self, monkeypatch, node):
        self.release, self.is_reached = threading.Event(), threading.Event()
        answer = node.answers

        def slow(requests):
            self.is_reached.set()
            assert self.release.wait(20)
            return answer(requests)

        monkeypatch.setattr(node, "answers", slow)


def slow_client(served, monkeypatch, **settings):
    folder, rankers = served
    node = Node(folder / "index", rankers, n_candidates=N_CANDIDATES)
    slow = SlowSelection(monkeypatch, node)
    service = SearchService(node, **settings)
    return TestClient(make_app(service)), slow


def test_a_partial_answer_says_so_and_is_never_cached(served, monkeypatch):
    # The deadline passes after the request was taken from the queue and before it is ranked.
    client, slow = slow_client(served, monkeypatch, timeout=30.0)
    threading.Timer(0.3, slow.release.set).start()
    with client:
        partial = client.get("/search?q=w1+w2&timeout_ms=200").json()
        whole = client.get("/search?q=w1+w2").json()
        bm25 = client.get("/search?q=w1+w2&ranker=bm25").json()
        metrics = client.get("/metrics").text
    assert partial["degraded"]["reason"] == "deadline"
    assert partial["n_ranked"] == 0
    assert [result["id"] for result in partial["results"]] == [result["id"] for result in bm25["results"]]
    assert (whole["cached"], whole["degraded"]) == (False, None)
    assert "rankwell_partial_answers_total 1.0" in metrics


def test_an_answer_that_was_ranked_in_part_says_so_and_is_never_cached(served, tmp_path, monkeypatch):
    folder, rankers = served
    node = Node(
        folder / "index", {"alone": save_alone(rankers["boosted"], tmp_path / "alone.rank")}, n_candidates=N_CANDIDATES
    )
    score = RankingPass.score
    monkeypatch.setattr("rankwell.serving.ranking.pass_in_time._LEAST_BLOCK", 4)
    monkeypatch.setattr("rankwell.serving.ranking.pass_in_time._BLOCK_SHARE", 0.0)
    monkeypatch.setattr("rankwell.serving.ranking.pass_in_time._AMPLE", 1e12)
    with TestClient(make_app(SearchService(node, timeout=30.0))) as client:

        def slow(self, hits):
            time.sleep(0.2)
            return score(self, hits)

        monkeypatch.setattr(RankingPass, "score", slow)
        early = client.get("/search?q=w1+w2&k=30&timeout_ms=500").json()
        monkeypatch.setattr(RankingPass, "score", score)
        whole = client.get("/search?q=w1+w2&k=30").json()
        bm25 = client.get("/search?q=w1+w2&k=30&ranker=bm25").json()["results"]
        metrics = client.get("/metrics").text
    n_ranked = early["n_ranked"]
    assert 0 < n_ranked < early["n_kept"] == whole["n_ranked"] == N_CANDIDATES
    assert early["degraded"]["reason"] == "deadline"
    assert f"when {n_ranked} of {N_CANDIDATES} documents were ranked" in early["degraded"]["text"]
    score_of = {result["id"]: result["score"] for result in whole["results"]}
    ranked, below = early["results"][:n_ranked], early["results"][n_ranked:]
    assert [result["score"] for result in ranked] == [score_of[result["id"]] for result in ranked]
    assert [result["id"] for result in below] == [result["id"] for result in bm25[n_ranked:]]
    assert (whole["cached"], whole["degraded"]) == (False, None)
    assert "rankwell_partial_answers_total 1.0" in metrics


def test_a_whole_answer_that_came_after_the_deadline_says_so_once(served, monkeypatch):
    folder, rankers = served
    node = Node(folder / "index", rankers, n_candidates=N_CANDIDATES)
    answers = node.answers

    def slow(requests):
        for answer in answers(requests):
            time.sleep(max(0.0, requests[0].deadline.remaining))
            yield answer

    monkeypatch.setattr(node, "answers", slow)
    with TestClient(make_app(SearchService(node, timeout=30.0))) as client:
        late, again = (client.get("/search?q=w1+w3&timeout_ms=2000").json() for _ in range(2))
        metrics = client.get("/metrics").text
    assert late["degraded"] == {"reason": "late", "text": "the answer is whole, and came after the deadline."}
    assert late["n_ranked"] == late["n_kept"] > 0
    # It is whole, and so it is kept; that it was late once is not.
    assert (again["cached"], again["degraded"], again["results"]) == (True, None, late["results"])
    assert "rankwell_late_answers_total 1.0" in metrics
    assert "rankwell_partial_answers_total 0.0" in metrics


def test_overload_is_refused_at_once_with_retry_after(served, monkeypatch):
    client, slow = slow_client(served, monkeypatch, timeout=20.0, queue=1)
    with client, ThreadPoolExecutor(2) as pool:
        first = pool.submit(client.get, "/search?q=w1")
        assert slow.is_reached.wait(10)
        second = pool.submit(client.get, "/search?q=w2")
        end = time.monotonic() + 10
        while "rankwell_queue_length 1.0" not in client.get("/metrics").text and time.monotonic() < end:
            time.sleep(0.01)
        refused = client.get("/search?q=w3")
        slow.release.set()
        assert (first.result().status_code, second.result().status_code) == (200, 200)
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert "too many requests" in refused.json()["error"]


@pytest.mark.parametrize(
    ("path", "status", "parameter", "words"),
    [
        ("/search", 422, "q", "missing required field"),
        ("/search?q=w1&k=0", 422, "k", "k: Expected `int` >= 1, got '0'. /openapi.json says what is allowed"),
        ("/search?q=w1&k=1001", 422, "k", "<= 1000"),
        ("/search?q=w1&k=many", 422, "k", "k: Expected `int`, got 'many'. /openapi"),
        ("/search?q=w1&match=most", 422, "match", "match: must be one of all, any, got 'most'. /openapi"),
        ("/search?q=w1&k=1&k=2", 422, "k", "k was given more than once, got '1' and '2'. Give it once"),
        ("/search?q=%ff%fe", 422, "q", r"q is not UTF-8, got '\xff\xfe'. Encode it as UTF-8"),
        ("/search?q=(w1&sort=year&ranker=linear", 422, "sort", "cannot be used with the ranker 'linear'"),
        (f"/search?q={'w' * 2001}", 422, "q", "length <= 2000"),
        ("/search?q=w1&rankre=x", 422, "rankre", "unknown field"),
        ("/search?q=w1&ranker=none", 422, "ranker", "must be one of bm25, boosted, linear, cascade, got 'none'"),
        ("/search?q=(w1", 422, "q", "column"),
        ("/search?q=w1&timeout_ms=-1", 422, "timeout_ms", "> 0"),
        ("/explain?q=w1&id=none", 404, "id", "there is no document 'none' in the index"),
        ("/explain?q=w1&id=d1&ranker=bm25", 422, "ranker", "must be a ranker with features"),
        ("/features?q=w1&id=none", 404, "id", "there is no document 'none'"),
        ("/similar?id=none", 404, "id", "there is no document 'none' in the index. Ids are as they were given"),
        ("/search?q=w1&filter=foo:1", 422, "filter", "the filter cannot be read, column 1: there is no field 'foo'"),
        ("/search?q=w1&facet=none", 422, "facet", "facet must be"),
        ("/search?q=foo:1", 422, "q", "or pass plain=true to search for the whole query as plain text"),
        ("/compare?q=w1&rankers=bm25", 422, "rankers", "two to 4 different names"),
        ("/nothing", 404, None, "there is nothing at /nothing. /openapi.json describes the calls."),
    ],
)
def test_a_mistake_is_told(client, path, status, parameter, words):
    response = client.get(path)
    assert response.status_code == status
    assert response.json()["parameter"] == parameter
    assert words in response.json()["error"]


def test_explain_and_features_agree_with_ranked_search(client):
    search = client.service.node.snapshot.searches["boosted"]
    (expected,) = search.explain("w1 w2")
    answer = client.get("/explain", params={"q": "w1 w2", "id": expected.id}).json()
    assert (answer["score"], answer["rank"], answer["id"]) == (expected.explanation.score, 1, expected.id)
    sizes = [abs(feature["contribution"]) for feature in answer["features"]]
    assert sizes == sorted(sizes, reverse=True)
    total = answer["bias"] + sum(feature["contribution"] for feature in answer["features"])
    assert total == pytest.approx(answer["score"])
    values = client.get("/features", params={"q": "w1 w2", "id": expected.id}).json()["features"]
    assert values == expected.values
    assert all(values[feature["name"]] == feature["value"] for feature in answer["features"])


def test_every_result_of_a_cascade_is_explained_and_says_by_which_pass(client):
    shown = client.get("/search?q=w1+w2&ranker=cascade&k=20").json()
    n_ranked = shown["n_ranked"]
    assert 0 < n_ranked < len(shown["results"])
    asked = {"q": "w1 w2", "ranker": "cascade"}
    for result in shown["results"]:
        response = client.get("/explain", params={**asked, "id": result["id"]})
        answer = response.json()
        assert (response.status_code, answer["rank"]) == (200, result["rank"])
        is_kept = result["rank"] <= n_ranked
        assert answer["ranking_pass"] == ("second" if is_kept else "first")
        assert answer["score"] == result["score"]
        assert (answer["offset"] is None) == is_kept
        total = answer["bias"] + sum(feature["contribution"] for feature in answer["features"])
        assert total + (answer["offset"] or 0.0) == pytest.approx(answer["score"])
    assert client.get("/explain", params={"q": "w1 w2", "id": answer["id"]}).json()["ranking_pass"] is None


def test_explain_says_what_the_ranker_read(client):
    # Of least squares, a contribution is a weight times what was read; the features are scaled within the query.
    search = client.service.node.snapshot.searches["linear"]
    found = search.search("w1 w2")
    answers = [
        client.get("/explain", params={"q": "w1 w2", "id": name, "ranker": "linear"}).json() for name in found.ids[:4]
    ]
    weights: dict[str, list[float]] = {}
    for answer in answers:
        for feature in answer["features"]:
            weights.setdefault(feature["name"], []).append(feature["contribution"] / feature["input"])
    assert len(weights) > 3
    assert all(own == pytest.approx([own[0]] * len(own), rel=1e-4) for own in weights.values())
    assert any(feature["input"] != feature["value"] for feature in answers[0]["features"])


def test_a_query_of_plain_words_is_one_everywhere(client):
    """`(` is an operator, and would be an error."""
    asked = {"q": "w1 (w2", "plain": "true"}
    first = client.get("/search", params=asked).json()["results"][0]
    assert client.get("/explain", params={**asked, "id": first["id"]}).json()["score"] == first["score"]
    assert client.get("/features", params={**asked, "id": first["id"]}).status_code == 200
    compared = client.get("/compare", params={**asked, "rankers": "bm25,boosted"}).json()["rankings"]
    assert compared[1]["results"][0]["id"] == first["id"]
    for path, more in (("/search", {}), ("/explain", {"id": "d1"}), ("/compare", {"rankers": "bm25,boosted"})):
        wrong = client.get(path, params={"q": "w1 (w2", **more})
        assert (wrong.status_code, wrong.json()["parameter"]) == (422, "q")


def test_rank_scores_documents_and_features(client):
    search = client.service.node.snapshot.searches["boosted"]
    found = search.search("w1 w2", N_CANDIDATES)
    scored = client.post("/rank", json={"query": "w1 w2", "documents": list(found.ids)})
    assert scored.json()["scores"] == found.scores.tolist()
    rows = search.features("w1 w2", found.ids).tolist()
    assert client.post("/rank", json={"features": rows}).json()["scores"] == found.scores.tolist()
    short = client.post("/rank", json={"features": [[1.0]]})
    assert (short.status_code, short.json()["parameter"]) == (422, "features")
    assert "row 1 has 1" in short.json()["error"]
    wide = [[0.0] * len(rows[0]), [None, *[1e300] * (len(rows[0]) - 1)]]
    large = client.post("/rank", json={"features": wide})
    assert (large.status_code, large.json()["parameter"]) == (422, "features")
    assert "up to 3.40282e+38; row 2, number 2 is 1e+300. Scale it" in large.json()["error"]
    absent = client.post("/rank", json={"query": "w1", "documents": ["d1", "none"]})
    assert (absent.status_code, absent.json()["parameter"]) == (404, "documents")
    neither = client.post("/rank", json={"query": "w1"})
    assert neither.status_code == 422
    assert "query and documents, or features" in neither.json()["error"]


def test_bodies_are_limited_and_typed(client):
    large = client.post("/rank", content=b" " * (MOST_BYTES + 1), headers={"Content-Type": "application/json"})
    assert (large.status_code, large.json()["error"][:26]) == (413, "a body may have at most 1,")
    assert client.post("/rank", content=b"{", headers={"Content-Type": "application/json"}).status_code == 400
    # What a form of another site could send.
    assert client.post("/votes", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415


@pytest.mark.parametrize(
    ("body", "parameter", "words"),
    [
        ([], None, "Expected `object`, got `array`"),
        ({"nothing": 1}, "nothing", "unknown field `nothing`"),
        ({"query": "w1", "documents": []}, "documents", "length >= 1"),
        ({"query": "(w1", "documents": ["d1"]}, "query", "or pass plain=true to search for the whole query"),
        ({"query": "w1", "documents": ["d1"], "filter": "("}, "filter", "the filter cannot be read"),
    ],
)
def test_a_mistake_in_a_body_is_told(client, body, parameter, words):
    response = client.post("/rank", json=body)
    assert (response.status_code, response.json()["parameter"]) == (422, parameter)
    assert words in response.json()["error"]


def test_a_deadline_that_is_too_short_is_told_as_that(client):
    response = client.get("/search?q=w1+w2&timeout_ms=0.0001")
    assert response.status_code == 503
    assert response.json()["error"] == "the deadline passed before the work could begin: allow more time."


def test_compare_shows_what_moved(client):
    answer = client.get("/compare?q=w1+w2&k=5&rankers=bm25,boosted").json()
    before, after = ([result["id"] for result in ranking["results"]] for ranking in answer["rankings"])
    assert [ranking["ranker"] for ranking in answer["rankings"]] == ["bm25", "boosted"]
    assert answer["moved"]
    for name, places in answer["moved"].items():
        assert places["from"] == (before.index(name) + 1 if name in before else None)
        assert places["to"] == (after.index(name) + 1 if name in after else None)
    assert all(result["fields"] is None for ranking in answer["rankings"] for result in ranking["results"])
    assert (answer["coverage"], answer["degraded"]) == (
        {"shards": 1, "answered": 1, "missing": [], "unranked": []},
        None,
    )


def test_a_comparison_that_was_not_ranked_in_time_says_so(served, monkeypatch):
    client, slow = slow_client(served, monkeypatch, timeout=0.2)
    threading.Timer(0.3, slow.release.set).start()
    with client:
        answer = client.get("/compare?q=w1+w2&rankers=bm25,boosted").json()
    assert answer["degraded"]["reason"] == "deadline"
    assert answer["moved"] == {}


def test_facts_of_an_index_whose_folder_is_gone(served, tmp_path):
    shutil.copytree(served[0] / "index", tmp_path / "index")
    with make_client((tmp_path, served[1])) as client:
        before = client.get("/index").json()
        assert before["bytes"] == sum(path.stat().st_size for path in (tmp_path / "index").iterdir() if path.is_file())
        shutil.rmtree(tmp_path / "index")
        response = client.get("/index")
        assert (response.status_code, response.json()) == (200, before)
        assert client.get("/search?q=w1").status_code == 200


def test_facts_about_rankers_and_index(client):
    rankers = client.get("/rankers").json()
    assert [(ranker["name"], ranker["default"], ranker["cascade"]) for ranker in rankers] == [
        ("bm25", False, False),
        ("boosted", True, False),
        ("linear", False, False),
        ("cascade", False, True),
    ]
    index = client.get("/index").json()
    assert (index["documents"], index["streams"], index["generation"]) == (80, ["title", "body"], 1)
    assert index["bytes"] > 1000
    assert (index["clicks"], index["votes"]) == (False, False)
    assert [client.get(path).json() for path in ("/healthz", "/readyz")] == [{"status": "ok"}] * 2


def test_clicks_and_votes_are_off_unless_asked_for(client):
    click = client.post("/clicks", json={"impression": "x", "document": "d1"})
    vote = client.post("/votes", json={"query": "w1", "document": "d1", "vote": 1})
    assert (click.status_code, vote.status_code) == (404, 404)
    assert "--use-log PATH" in click.json()["error"]
    assert "--judgments PATH" in vote.json()["error"]


def test_clicks_are_logged_for_what_was_shown(served, tmp_path):
    with make_client(served, use=Use(tmp_path / "use.jsonl")) as client:
        answers = [client.get("/search?q=w1+w2&k=3").json() for _ in range(2)]
        shown = [result["id"] for result in answers[0]["results"]]
        assert answers[0]["impression"] != answers[1]["impression"]
        assert client.get("/search?q=w1+w2&offset=3").json()["impression"] is None
        click = {"impression": answers[1]["impression"], "document": shown[1]}
        assert client.post("/clicks", json=click).status_code == 204
        wrong = [{**click, "document": "none"}, {**click, "impression": "none"}]
        assert [client.post("/clicks", json=one).status_code for one in wrong] == [404, 404]
    impressions = list(read_impressions(tmp_path / "use.jsonl"))
    assert [impression.clicked for impression in impressions] == [frozenset(), {shown[1]}]
    assert {impression.document_ids for impression in impressions} == {tuple(shown)}
    (query,) = read_queries(tmp_path / "use.queries.tsv")
    assert (query.text, query.id) == ("w1 w2", impressions[0].query_id)


def test_neighbours_are_exchanged_for_each_user_and_logged_as_they_were_shown(served, tmp_path):
    with make_client(served) as client:
        expected = [result["id"] for result in client.get("/search?q=w1+w2&k=5").json()["results"]]
    with make_client(served, use=Use(tmp_path / "use.jsonl", exchanges=True)) as client:
        answers = [client.get("/search?q=w1+w2&k=5").json() for _ in range(40)]
        later = [client.get("/search?q=w1+w2&k=5&offset=5").json() for _ in range(10)]
    orders = [[result["id"] for result in answer["results"]] for answer in answers]
    assert all(sorted(order) == sorted(expected) for order in orders)
    assert all(abs(order.index(one) - place) <= 1 for order in orders for place, one in enumerate(expected))
    assert len({tuple(order) for order in orders}) > 3  # cached answers are exchanged too, each in its own way
    assert all([result["rank"] for result in answer["results"]] == [1, 2, 3, 4, 5] for answer in answers)
    score = {result["id"]: result["score"] for result in answers[0]["results"]}
    assert all(result["score"] == score[result["id"]] for answer in answers for result in answer["results"])
    assert len({tuple(result["id"] for result in answer["results"]) for answer in later}) == 1
    shown = [list(impression.document_ids) for impression in read_impressions(tmp_path / "use.jsonl")]
    assert shown == orders


def test_votes_become_judgments_that_can_be_read(served, tmp_path):
    path = tmp_path / "votes.qrels"

    def vote(client, document, value, query="w1  w2"):
        return client.post("/votes", json={"query": query, "document": document, "vote": value}).status_code

    with make_client(served, use=Use(judgments=path)) as client:
        votes = [("d1", 1), ("d2", -1), ("d3", 1), ("d1", -1), ("d3", 0)]
        assert [vote(client, *one) for one in votes] == [204] * 5
        assert (vote(client, "none", 1), vote(client, "d1", 2)) == (404, 422)
    # A server that is started again goes on.
    with make_client(served, use=Use(judgments=path)) as client:
        assert vote(client, "d2", 1) == 204
        assert vote(client, "d4", 1, query="w1 w2") == 204
    (query,) = read_queries(tmp_path / "votes.queries.tsv")
    assert query.text == "w1 w2"
    assert read_qrels(path) == {query.id: {"d1": 0.0, "d2": 1.0, "d4": 1.0}}


def test_files_that_end_without_a_line_end_are_continued_on_a_new_line(served, tmp_path):
    votes = tmp_path / "votes.qrels"
    votes.write_text("q2 0 b 1")
    with make_client(served, use=Use(judgments=votes)) as client:
        for document in ("d1", "d2"):
            assert client.post("/votes", json={"query": "w1", "document": document, "vote": 1}).status_code == 204
        (names,) = {path for path in tmp_path.iterdir() if path != votes}
        (query,) = read_queries(names)
    assert read_qrels(votes) == {"q2": {"b": 1.0}, query.id: {"d1": 1.0, "d2": 1.0}}
    names.write_text(names.read_text().rstrip("\n"))
    with make_client(served, use=Use(judgments=votes)) as client:
        assert client.post("/votes", json={"query": "w2", "document": "d1", "vote": 1}).status_code == 204
    assert [query.text for query in read_queries(names)] == ["w1", "w2"]


def test_a_vote_needs_a_query_and_a_known_value(served, tmp_path):
    with make_client(served, use=Use(judgments=tmp_path / "votes.qrels")) as client:
        vote = {"query": "w1", "document": "d1", "vote": 1}
        blank, other = (client.post("/votes", json={**vote, **wrong}) for wrong in ({"query": "  "}, {"vote": 2}))
    assert (blank.status_code, blank.json()["parameter"]) == (422, "query")
    assert "must have a word, got '  '" in blank.json()["error"]
    assert "vote: must be one of -1, 0, 1, got 2." in other.json()["error"]
    assert (tmp_path / "votes.queries.tsv").read_text() == ""


def test_a_use_log_and_judgments_of_one_name_share_their_queries(served, tmp_path):
    use = Use(tmp_path / "use.jsonl", tmp_path / "use.qrels")
    assert use.queries_paths == (tmp_path / "use.queries.tsv",)
    with make_client(served, use=use) as client:
        client.get("/search?q=w1+w2")
        assert client.post("/votes", json={"query": "w1 w2", "document": "d1", "vote": 1}).status_code == 204
    (query,) = read_queries(tmp_path / "use.queries.tsv")
    assert (query.text, list(read_qrels(tmp_path / "use.qrels"))) == ("w1 w2", [query.id])


def test_files_of_queries_that_are_not_the_servers_are_left_alone(served, tmp_path):
    own = tmp_path / "queries.tsv"
    own.write_text("1\ttraining query\nnot a query\n")
    before = own.read_bytes()
    use = Use(tmp_path / "use.jsonl", tmp_path / "votes.qrels")
    assert [path.name for path in use.queries_paths] == ["use.queries.tsv", "votes.queries.tsv"]
    with make_client(served, use=use) as client:
        assert client.get("/search?q=w1+w2").status_code == 200
        assert client.post("/votes", json={"query": "w1", "document": "d1", "vote": 1}).status_code == 204
    assert own.read_bytes() == before


def test_a_file_of_queries_that_cannot_be_continued_is_named_with_the_remedy(tmp_path):
    (tmp_path / "use.queries.tsv").write_text("not a query\n")
    with pytest.raises(DataError, match=r"use\.queries\.tsv.*Its log keeps the texts of queries there: move it away"):
        Use(tmp_path / "use.jsonl")


def test_changes_need_the_token_and_do_not_exist_without_one(served, client):
    _, rankers = served
    body = {"path": str(rankers["linear"])}
    assert client.post("/rankers/new", json=body).status_code == 404
    assert "/rankers/{name}" not in client.get("/openapi.json").json()["paths"]
    with make_client(served, token="secret") as guarded:
        for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic secret"}):
            assert guarded.post("/rankers/new", json=body, headers=header).status_code == 401
        right = {"Authorization": "Bearer secret"}
        assert guarded.post("/rankers/new", json=body, headers=right).status_code == 204
        assert len(guarded.get("/search?q=w1&ranker=new").json()["results"]) == 10
        assert guarded.post("/rankers/new", json={"path": "/no/file"}, headers=right).status_code == 422
        assert guarded.delete("/rankers/new", headers=right).status_code == 204
        assert guarded.delete("/rankers/boosted", headers=right).status_code == 422
        assert guarded.delete("/rankers/bm25", headers=right).status_code == 422
        gone = guarded.delete("/rankers/new", headers=right)
        assert gone.status_code == 404
        words = "there is no ranker 'new'; those that can be removed are: boosted, linear, cascade."
        assert gone.json()["error"] == words


def test_a_ranker_that_the_index_cannot_serve_is_refused(served, tmp_path):
    (tmp_path / "other.yaml").write_text("inputs: [{linear: {feature: static.clicks}}]")
    MadeRanker.from_yaml(tmp_path / "other.yaml").save(tmp_path / "other.rank")
    right = {"Authorization": "Bearer secret"}
    folder, rankers = served
    sharded = shards_client([folder / "index"], rankers, token="secret", n_candidates=N_CANDIDATES)
    for made in (make_client(served, token="secret"), sharded):
        with made as client:
            refused = client.post("/rankers/other", json={"path": str(tmp_path / "other.rank")}, headers=right)
            assert (refused.status_code, refused.json()["parameter"]) == (422, "path")
            assert "static.clicks" in refused.json()["error"]
            assert client.delete("/rankers/other", headers=right).status_code == 404
            short = client.get("/search?q=w1+w2&timeout_ms=0.0001")
            assert (short.status_code, short.json()["error"][:19]) == (503, "the deadline passed")


def test_logs_have_no_query_at_info(client, caplog):
    with caplog.at_level(logging.INFO, "rankwell.serving"):
        client.get("/search?q=w1+confidential")
    (record,) = [record for record in caplog.records if record.message == "request"]
    assert (record.path, record.status) == ("/search", 200)
    assert "confidential" not in str(vars(record))
    with caplog.at_level(logging.DEBUG, "rankwell.serving"):
        client.get("/search?q=w1+confidential")
    assert "confidential" in caplog.records[-1].query_string


def test_metrics_count_what_happened(client):
    for _ in range(2):
        client.get("/search?q=w1")
    client.get("/search?q=w1&k=0")
    text = client.get("/metrics").text
    for line in (
        'rankwell_requests_total{path="/search",status="200"} 2.0',
        'rankwell_requests_total{path="/search",status="422"} 1.0',
        'rankwell_cache_lookups_total{result="hit"} 1.0',
        'rankwell_cache_lookups_total{result="miss"} 1.0',
        "rankwell_batch_size_count 1.0",
        'rankwell_stage_seconds_count{stage="rank"} 1.0',
        "rankwell_index_documents 80.0",
    ):
        assert line in text


def test_a_failure_of_the_server_is_told_without_details(client, monkeypatch):
    def broken():
        raise RuntimeError("secret detail")

    monkeypatch.setattr(client.service, "rankers", broken)
    response = client.get("/rankers")
    assert response.status_code == 500
    assert "secret" not in json.dumps(response.json())


def test_the_page_and_its_files_are_served(served, tmp_path):
    (tmp_path / "index.html").write_text("<h1>Search</h1>")
    (tmp_path / "app.js").write_text("1")
    with make_client(served, page=tmp_path, cache=ResultCache(0)) as client:
        assert client.get("/").text == "<h1>Search</h1>"
        assert client.get("/page/app.js").text == "1"
        assert client.get("/page/../app.py").status_code == 404
        assert "default-src 'self'" in client.get("/").headers["content-security-policy"]
    with make_client(served, page=tmp_path / "none") as client:
        assert client.get("/").status_code == 404
