"""Results of a ranked search in parts."""

import numpy as np
import pytest
from tests.features.random_hits import random_documents
from tests.features.small_index import index_of, text_of

from rankwell import LeastSquares, ListNet, RankBoost
from rankwell.errors import DataError
from rankwell.features.feature_set import make_feature_set
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features
from rankwell.serving.ranking.ranked_search import RankedSearch

STREAMS = ("title", "body")
FEATURES = make_feature_set("full", STREAMS)
QUERIES = [QueryText(str(number), text_of([number % 9, (number * 5) % 11])) for number in range(8)]


@pytest.fixture(scope="module")
def index():
    return index_of(random_documents(np.random.default_rng(4), 80, streams=STREAMS), streams=STREAMS, cuts=(50,))


@pytest.fixture(scope="module")
def train(index):
    rng = np.random.default_rng(5)
    qrels = {query.id: {f"d{doc}": float(rng.integers(0, 3)) for doc in range(80)} for query in QUERIES}
    return judged_features(index, QUERIES, qrels, FEATURES, source="top", n_candidates=30).dataset


@pytest.mark.parametrize(
    "ranker", [LeastSquares(normalize="query-minmax"), RankBoost(n_rounds=5), ListNet(n_epochs=2)], ids=lambda r: r.name
)
def test_the_parts_sum_to_the_served_score(index, train, ranker):
    searcher = RankedSearch(index, ranker.fit(train), n_candidates=20)
    served = searcher.search(QUERIES[1].text, k=5)
    explained = searcher.explain(QUERIES[1].text, k=5)
    assert [item.id for item in explained] == list(served.ids)
    assert [item.rank for item in explained] == [1, 2, 3, 4, 5]
    assert [item.first_score for item in explained] == served.first_scores.tolist()
    for item, score in zip(explained, served.scores, strict=True):
        explanation = item.explanation
        assert explanation.score == pytest.approx(score, rel=1e-5, abs=1e-6)
        assert explanation.feature_base + sum(explanation.features.values()) == pytest.approx(score, rel=1e-5, abs=1e-6)
    (last,) = searcher.explain(QUERIES[1].text, document=served.ids[4])
    assert (last.rank, last.id, last.explanation.score) == (5, served.ids[4], explained[4].explanation.score)


def test_values_are_the_features_of_the_document(index, train):
    searcher = RankedSearch(index, LeastSquares().fit(train), n_candidates=30)
    (best,) = searcher.explain(QUERIES[0].text)
    rows = range(*train.query_ptr[:2])
    row = next(row for row in rows if list(train.comments)[row] == best.id)
    assert best.values == dict(zip(FEATURES.names, train.features[row].tolist(), strict=True))


def test_documents_that_were_not_ranked(index, train):
    searcher = RankedSearch(index, LeastSquares().fit(train), n_candidates=3)
    ranked = searcher.search(QUERIES[0].text).ids
    other = next(f"d{doc}" for doc in range(80) if f"d{doc}" not in ranked)
    with pytest.raises(DataError, match=rf"'{other}' is not among the 3 documents .* 3 candidates are too few"):
        searcher.explain(QUERIES[0].text, document=other)
    with pytest.raises(DataError, match="there is no document 'nowhere' in the index"):
        searcher.explain(QUERIES[0].text, document="nowhere")
    assert searcher.explain("unheard-of") == []
