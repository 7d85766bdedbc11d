"""A node answers as ranked search does, bit for bit, and replaces index and rankers while it answers."""

import shutil
import threading
import time

import pytest
from tests.serving.served_index import N_CANDIDATES, QUERIES, add_document

from rankwell import Index, RankedSearch
from rankwell.errors import DataError, ParameterError, QueryError
from rankwell.serving.answer import SearchRequest
from rankwell.serving.deadline import Deadline
from rankwell.serving.node import Node
from rankwell.serving.ranking.feature_log import FeatureLogReader


def request(query, seconds=10.0, **settings):
    return SearchRequest(query, Deadline.after(seconds), **settings)


@pytest.fixture
def node(served):
    folder, rankers = served
    node = Node(folder / "index", rankers, n_candidates=N_CANDIDATES)
    yield node
    node.close()


def ranking(answer):
    return [(result.id, result.score, result.first_score) for result in answer.results]


def expected(searched, k):
    rows = zip(searched.ids, searched.scores.tolist(), searched.first_scores.tolist(), strict=True)
    return list(rows)[:k]


@pytest.mark.parametrize("ranker", ["boosted", "linear", "cascade"])
def test_a_batch_answers_as_ranked_search_does_to_the_last_bit(served, node, ranker):
    folder, rankers = served
    search = RankedSearch(Index.open(folder / "index"), rankers[ranker], n_candidates=N_CANDIDATES)
    # Different numbers of results and different rankers in one batch.
    asked = [request(query, k=1 + number % 20, ranker=ranker) for number, query in enumerate(QUERIES)]
    mixed = [one for pair in zip(asked, map(request, QUERIES), strict=True) for one in pair]
    answers = node.answer(mixed)[::2]
    for one, answer in zip(asked, answers, strict=True):
        alone = search.search(one.query, one.k)
        assert ranking(answer) == expected(alone, one.k)
        assert (answer.n_candidates, answer.n_ranked, answer.is_partial) == (alone.n_candidates, alone.n_ranked, False)
        assert answer.n_matches == search.index.count(one.query)
        assert [result.rank for result in answer.results] == list(range(1, len(answer.results) + 1))


def test_bm25_alone_is_selection(node):
    (answer,) = node.answer([request("w1 w2", ranker="bm25", k=7)])
    found = node.snapshot.index.search("w1 w2", k=7)
    assert answer.ranker is None
    assert [(result.id, result.score) for result in answer.results] == list(zip(found.ids, found.scores, strict=True))
    assert set(answer.seconds) == {"parse", "select", "captions"}


def test_the_next_page_continues_the_first(node):
    whole, page = node.answer([request("w1", k=20), request("w1", k=5, offset=10)])
    assert page.results == whole.results[10:15]
    assert page.results[0].rank == 11


def test_captions_mark_the_words_of_the_query(node):
    (answer,) = node.answer([request("w1", k=3)])
    for result in answer.results:
        fields = node.snapshot.index.stored(node.snapshot.index.find(result.id))
        assert result.fields == fields
        assert result.title == fields["title"]
        assert {part.text for part in result.caption if part.hit} <= {"w1"}
        joined = "".join(part.text for part in result.caption)
        assert joined.strip("… ") in " ".join((fields.get("body") or fields["title"]).split())


def test_a_deadline_of_one_request_does_not_touch_the_others(node):
    late, whole = node.answer([request("w1 w2", seconds=-1.0), request("w1 w2")])
    assert (late.is_partial, late.n_ranked, whole.is_partial) == (True, 0, False)
    first = node.snapshot.index.search("w1 w2", k=10)
    assert [result.id for result in late.results] == first.ids
    assert ranking(whole) == expected(node.snapshot.searches["boosted"].search("w1 w2"), 10)


def test_a_query_that_cannot_be_read_fails_alone(node):
    wrong, unknown, right = node.answer([request("(w1"), request("w1", ranker="none"), request("w1")])
    assert isinstance(wrong, QueryError)
    assert isinstance(unknown, ParameterError)
    assert "ranker must be one of bm25, boosted, linear, cascade, got 'none'" in str(unknown)
    assert len(right.results) == 10
    (plain,) = node.answer([request("(w1", plain=True)])
    assert len(plain.results) == 10


def test_if_a_batch_fails_each_query_is_tried_alone(node, monkeypatch):
    search = node.snapshot.searches["boosted"]
    whole = search.search_many

    def fragile(queries, *arguments, **settings):
        if any(b"w2" in query.terms for query in queries):
            raise RuntimeError("damaged")
        return whole(queries, *arguments, **settings)

    monkeypatch.setattr(search, "search_many", fragile)
    good, bad = node.answer([request("w1"), request("w2")])
    assert len(good.results) == 10
    assert str(bad) == "damaged"


def test_features_of_the_default_ranker_are_logged_under_the_given_id(served, tmp_path):
    folder, rankers = served
    node = Node(folder / "index", rankers, n_candidates=N_CANDIDATES, feature_log=tmp_path / "log")
    node.answer([request("w1", query_id="q1"), request("w2"), request("w3", query_id="q3", ranker="linear")])
    node.close()
    assert [logged.query_id for logged in FeatureLogReader(tmp_path / "log")] == ["q1"]
    with pytest.raises(ParameterError, match="feature_log needs a ranker"):
        Node(folder / "index", feature_log=tmp_path / "other")


def test_a_commit_is_picked_up_while_queries_are_answered(served, tmp_path):
    folder, rankers = served
    shutil.copytree(folder / "index", tmp_path / "index")
    node = Node(tmp_path / "index", rankers, n_candidates=N_CANDIDATES)
    node.watch(every=0.02)
    failures, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            (answer,) = node.answer([request("w1 w2")])
            if isinstance(answer, Exception) or len(answer.results) != 10:
                failures.append(answer)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        assert node.answer([request("zebra")])[0].results == ()
        add_document(tmp_path, "new", "zebra w1")
        end = time.monotonic() + 30
        while not node.answer([request("zebra")])[0].results and time.monotonic() < end:
            time.sleep(0.02)
    finally:
        stop.set()
        asking.join()
    assert [result.id for result in node.answer([request("zebra")])[0].results] == ["new"]
    assert node.snapshot.version == 2
    assert failures == []
    node.close()


def test_a_commit_that_cannot_be_read_leaves_the_old_one_in_place(served, tmp_path, caplog):
    folder, rankers = served
    shutil.copytree(folder / "index", tmp_path / "index")
    node = Node(tmp_path / "index", rankers, n_candidates=N_CANDIDATES)
    manifest = next(path for path in (tmp_path / "index").iterdir() if path.name.startswith("manifest"))
    manifest.write_bytes(b"{")
    node.watch(every=0.01)
    time.sleep(0.2)
    assert len(node.answer([request("w1")])[0].results) == 10
    node.close()
    # Logged once, not every time.
    assert sum("cannot be served" in record.message for record in caplog.records) == 1


def test_rankers_are_replaced_by_name(served, node):
    _, rankers = served
    before = node.answer([request("w1 w2")])[0]
    node.put_ranker("boosted", rankers["linear"])
    after = node.answer([request("w1 w2"), request("w1 w2", ranker="linear")])
    assert after[0].version == before.version + 1
    assert ranking(after[0]) == ranking(after[1]) != ranking(before)
    node.remove_ranker("linear")
    assert isinstance(node.answer([request("w1", ranker="linear")])[0], ParameterError)
    with pytest.raises(ParameterError, match="must not be the default ranker"):
        node.remove_ranker("boosted")
    with pytest.raises(ParameterError, match="name must be one of boosted, cascade, got 'linear'"):
        node.remove_ranker("linear")
    with pytest.raises(ParameterError, match=r"name must consist of letters, digits"):
        node.put_ranker("bm25", rankers["linear"])


def test_features_and_scores_of_given_documents(node):
    search = node.snapshot.searches["boosted"]
    found = search.search("w1 w2", N_CANDIDATES)
    rows = search.features("w1 w2", found.ids)
    assert rows.shape == (len(found.ids), len(search.feature_set))
    assert search.score(rows).tolist() == found.scores.tolist()
    assert rows[0].tolist() == list(search.explain("w1 w2")[0].values.values())
    with pytest.raises(DataError, match="there is no document 'none' in the index"):
        search.features("w1", ["none"])
