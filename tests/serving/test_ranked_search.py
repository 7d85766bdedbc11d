"""Ranked search: what is served is what was trained, and what it lacks is named."""

import numpy as np
import pytest
from tests.features.random_hits import random_documents
from tests.features.small_index import index_of, text_of

from rankwell import LeastSquares, ListNet, RankBoost
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, ParameterError
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features, logged_features
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.writer import IndexWriter
from rankwell.serving.ranking.feature_log import FeatureLog, FeatureLogReader
from rankwell.serving.ranking.ranked_search import RankedSearch

STREAMS = ("title", "body")
FEATURES = make_feature_set("full", STREAMS)
QUERIES = [QueryText(str(number), text_of([number % 9, (number * 5) % 11])) for number in range(8)]


@pytest.fixture(scope="module")
def index():
    rng = np.random.default_rng(4)
    return index_of(random_documents(rng, 80, streams=STREAMS), streams=STREAMS, cuts=(50,))


@pytest.fixture(scope="module")
def qrels(index):
    rng = np.random.default_rng(5)
    return {query.id: {f"d{doc}": float(rng.integers(0, 3)) for doc in range(80)} for query in QUERIES}


@pytest.fixture(scope="module")
def train(index, qrels):
    return judged_features(index, QUERIES, qrels, FEATURES, source="top", n_candidates=30).dataset


@pytest.mark.parametrize(
    "ranker", [LeastSquares(normalize="query-minmax"), RankBoost(n_rounds=5), ListNet(n_epochs=2)], ids=lambda r: r.name
)
def test_results_are_the_ranker_s_order_of_the_candidates(index, train, ranker, tmp_path):
    ranker.fit(train)
    ranker.save(tmp_path / "model.rank")
    assert ranker.description_.feature_names == FEATURES.names
    scores = ranker.predict(train)
    for given in (ranker, tmp_path / "model.rank"):
        searcher = RankedSearch(index, given, n_candidates=30)
        results = searcher.search_many([query.text for query in QUERIES], k=30)
        for number, result in enumerate(results):
            own = slice(*train.query_ptr[number : number + 2])
            expected = dict(zip(list(train.comments)[own], scores[own].tolist(), strict=True))
            assert dict(zip(result.ids, result.scores.tolist(), strict=True)) == expected
            assert (np.diff(result.scores) <= 0).all()
            assert result.n_candidates == len(expected)
    alone = RankedSearch(index, ranker, n_candidates=30, n_jobs=1).search(QUERIES[1].text, k=3)
    assert alone.ids == results[1].ids[:3]
    np.testing.assert_array_equal(alone.scores, results[1].scores[:3])
    assert [index.id_of(doc) for doc in alone.docs] == list(alone.ids)


def test_what_was_served_can_be_trained_on_as_it_was(index, train, qrels, tmp_path):
    ranker = LeastSquares().fit(train)
    with FeatureLog(tmp_path / "log", FEATURES) as log:
        searcher = RankedSearch(index, ranker, n_candidates=30, log=log)
        for query in QUERIES:
            searcher.search(query.text, query_id=query.id)
        searcher.search("w1")
    logged = logged_features(FeatureLogReader(tmp_path / "log"), qrels).dataset
    assert logged.n_queries == train.n_queries
    for number in range(train.n_queries):
        own = slice(*train.query_ptr[number : number + 2])
        by_name = {
            name: row
            for name, row in zip(logged.comments, range(logged.n_docs), strict=True)
            if logged.query_of_rows()[row] == number
        }
        rows = [by_name[name] for name in list(train.comments)[own]]
        np.testing.assert_array_equal(logged.features[rows], train.features[own])


def test_queries_without_candidates_have_no_results(index, train):
    searcher = RankedSearch(index, LeastSquares().fit(train))
    for text in ("", "gap", "nothing-like-it"):
        result = searcher.search(text)
        assert (result.ids, len(result.scores), result.n_candidates) == ((), 0, 0)
    assert [len(result.docs) for result in searcher.search_many(["", "w1", ""], k=2)] == [0, 2, 0]
    assert searcher.search_many([]) == []


def test_features_the_index_lacks_are_named(index, train):
    names = [*FEATURES.names[:-2], "bm25.abstract", "static.clicks"]
    data = RankingDataset(train.features, train.labels, group=train.query_sizes, feature_names=names)
    ranker = LeastSquares().fit(data)
    with pytest.raises(DataError, match=r"lacks what 2 features need: bm25.abstract, static.clicks. It has"):
        RankedSearch(index, ranker)


def test_features_that_cannot_be_extracted_are_named(index):
    data = RankingDataset(np.eye(3), [0, 1, 2], feature_names=["clicks", "bm25.title", "price"])
    with pytest.raises(DataError, match="reads 2 features that cannot be extracted: 'clicks', 'price'"):
        RankedSearch(index, LeastSquares().fit(data))


def test_a_ranker_without_names_needs_a_feature_set(index, train):
    ranker = LeastSquares().fit(RankingDataset(train.features, train.labels, group=train.query_sizes))
    with pytest.raises(DataError, match="trained on data without names"):
        RankedSearch(index, ranker)
    result = RankedSearch(index, ranker, feature_set=FEATURES).search(QUERIES[0].text)
    assert len(result.ids) > 0
    with pytest.raises(DataError, match=r"the ranker reads .* features, the feature set has 1"):
        RankedSearch(index, ranker, feature_set=FeatureSet(["bm25.title"]))


def test_mistakes_are_told(index, train, tmp_path):
    with pytest.raises(ParameterError, match="a fitted ranker, its description or a ranker file is needed"):
        RankedSearch(index, LeastSquares())
    with pytest.raises(ParameterError, match="n_candidates must be at least 1"):
        RankedSearch(index, LeastSquares().fit(train), n_candidates=0)
    searcher = RankedSearch(index, LeastSquares().fit(train))
    with pytest.raises(ParameterError, match="search_many takes several queries: pass a list"):
        searcher.search_many("w1 w2")
    with pytest.raises(ParameterError, match="k must be at least 1, got 0"):
        searcher.search("w1", k=0)
    with pytest.raises(ParameterError, match="query_ids must be one per query, 2, got 1"):
        searcher.search_many(["w1", "w2"], query_ids=["a"])
    other = FeatureLog(tmp_path / "log", FeatureSet(["bm25.title"]))
    with other, pytest.raises(DataError, match="another feature set"):
        RankedSearch(index, LeastSquares().fit(train), log=other)


def test_a_filter_restricts_the_candidates(index, train):
    """The query's words are those that were typed: a filter adds no feature."""
    searcher = RankedSearch(index, LeastSquares().fit(train), n_candidates=80)
    everything = searcher.search(QUERIES[1].text, k=80)
    query = index.parse(QUERIES[1].text, filter=text_of([3]))
    kept = searcher.search(query, k=80)
    wanted = set(index.search("*", k=80, filter=text_of([3])).ids)
    assert set(kept.ids) == set(everything.ids) & wanted
    assert 0 < kept.n_candidates == index.count(query) < everything.n_candidates
    assert query.terms == index.parse(QUERIES[1].text).terms
    negated = searcher.search(f"({QUERIES[1].text}) AND NOT {text_of([3])}", k=80)
    assert set(negated.ids) == set(everything.ids) - wanted


def test_candidates_of_a_selection_that_stops_early(tmp_path):
    with IndexWriter(tmp_path / "i", schema=Schema(static_order="worth")) as writer:
        texts = ["wing flow", "wing", "flow heat", "wing heat heat"]
        writer.add({"id": str(n), "body": texts[n % 4], "worth": n} for n in range(40))
        writer.commit()
    index = Index.open(tmp_path / "i")
    features = make_feature_set("full", index.schema.streams, index.schema.statics)
    queries = [QueryText("q", "wing heat")]
    qrels = {"q": {str(n): float(n % 2) for n in range(40)}}
    dataset = judged_features(index, queries, qrels, features, n_candidates=3, stop_after=8).dataset
    ranker = LeastSquares().fit(dataset)
    found = RankedSearch(index, ranker, n_candidates=3, stop_after=8).search("wing heat", k=3)
    wanted = index.search("wing heat", k=3, stop_after=8)
    assert set(found.ids) == set(wanted.ids) == set(dataset.comments)
    assert min(map(int, found.ids)) >= 40 - wanted.n_examined
    assert found.selected.stopped_early
    (explained,) = RankedSearch(index, ranker, n_candidates=3, stop_after=8).explain("wing heat")
    assert explained.id == found.ids[0]
