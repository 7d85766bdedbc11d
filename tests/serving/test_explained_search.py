"""Results of a ranked search in parts."""

from dataclasses import replace

import numpy as np
import pytest
from tests.features.random_hits import random_documents
from tests.features.small_index import index_of, text_of

from rankwell import LeastSquares, ListNet, RankBoost
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.features.feature_set import make_feature_set
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features
from rankwell.scoring.composition import FirstPass, RankerPart
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


def test_documents_below_the_second_pass_are_explained_by_the_first(index, train):
    places = tuple(FEATURES.names.index(name) for name in ("bm25.whole", "bm25.title", "bm25.body"))
    columns = RankingDataset(train.features[:, places], train.labels, group=np.diff(train.query_ptr))
    small = LeastSquares(normalize="query-minmax").fit(columns).description_
    small = replace(small, feature_names=tuple(FEATURES.names[place] for place in places))
    boosted = RankBoost(n_rounds=5).fit(train).description_
    cascade = replace(boosted, parts=(RankerPart("first", places, small),), first_pass=FirstPass(0, 4))
    searcher = RankedSearch(index, cascade, n_candidates=12)
    first = RankedSearch(index, small, n_candidates=12).search(QUERIES[1].text, k=12)
    score_of = dict(zip(first.ids, first.scores.tolist(), strict=True))
    served = searcher.search(QUERIES[1].text, k=12)
    explained = searcher.explain(QUERIES[1].text, k=12)
    assert [(item.id, item.rank) for item in explained] == [(name, rank) for rank, name in enumerate(served.ids, 1)]
    assert [item.ranking_pass for item in explained] == ["second"] * 4 + ["first"] * 8
    assert [item.explanation.offset for item in explained[:4]] == [None] * 4
    for item, score in zip(explained[4:], served.scores[4:].tolist(), strict=True):
        explanation = item.explanation
        assert explanation.score == score
        of_first = explanation.feature_base + sum(explanation.features.values())
        assert of_first == pytest.approx(score_of[item.id], rel=1e-5, abs=1e-6)
        assert of_first + explanation.offset == pytest.approx(score)
        assert item.values.keys() == set(small.feature_names)
        (alone,) = searcher.explain(QUERIES[1].text, document=item.id)
        assert repr(alone) == repr(item)
    # They are in the order of what is explained.
    scores = [item.explanation.score for item in explained[4:]]
    assert scores == sorted(scores, reverse=True)


def test_documents_that_were_not_ranked(index, train):
    searcher = RankedSearch(index, LeastSquares().fit(train), n_candidates=3)
    ranked = searcher.search(QUERIES[0].text).ids
    other = next(f"d{doc}" for doc in range(80) if f"d{doc}" not in ranked)
    with pytest.raises(DataError, match=rf"'{other}' is not among the 3 documents .* 3 candidates are too few"):
        searcher.explain(QUERIES[0].text, document=other)
    with pytest.raises(DataError, match="there is no document 'nowhere' in the index"):
        searcher.explain(QUERIES[0].text, document="nowhere")
    assert searcher.explain("unheard-of") == []
