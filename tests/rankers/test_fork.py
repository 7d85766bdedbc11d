"""A process that has trained and predicted can be forked, as servers and pools of workers do."""

import multiprocessing

import numpy as np

from rankwell import RankBoost, make_ranking

DATA = make_ranking(n_queries=600, n_docs=30_000, n_features=40)


def train_and_predict(_):
    ranker = RankBoost(n_rounds=5, device="cpu").fit(DATA)
    return ranker.weak_rankers_.r.tolist(), float(ranker.predict(DATA).sum())


def test_forked_children_train_and_predict_as_their_parent():
    expected = train_and_predict(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map_async(train_and_predict, range(4)).get(timeout=60)
    assert results == [expected] * 4
    assert np.isfinite(expected[1])
