"""LambdaRank with each of its losses."""

from __future__ import annotations

import numpy as np
import pytest

import rankwell
from rankwell import LambdaRank, ParameterError
from rankwell.data.synthetic import make_ranking


@pytest.fixture(scope="module")
def collection():
    whole = make_ranking(n_docs=1200, n_queries=60, n_features=6, random_state=6)
    return whole.subset(range(40)), whole.subset(range(40, 60))


@pytest.mark.parametrize("loss", ["lambdarank", "lambdaloss", "map", "mrr", "xendcg"])
def test_every_loss_learns(loss, collection, tmp_path):
    train, test = collection
    untrained = rankwell.evaluate(test, np.zeros(test.n_docs), metrics=("ndcg@10",)).mean["ndcg@10"]
    ranker = LambdaRank(loss=loss, n_epochs=20, n_seeds=1, device="cpu").fit(train)
    scores = ranker.predict(test)
    assert rankwell.evaluate(test, scores, metrics=("ndcg@10",)).mean["ndcg@10"] > untrained + 0.1
    ranker.save(tmp_path / "network.rank")
    assert rankwell.load(tmp_path / "network.rank").loss == loss


def test_losses_differ_and_threads_do_not_matter(collection):
    train, test = collection
    scores = {}
    for loss in ("lambdarank", "lambdaloss", "map", "mrr", "xendcg"):
        one, two = (
            LambdaRank(loss=loss, n_epochs=3, n_seeds=1, n_jobs=n_jobs, device="cpu").fit(train).predict(test)
            for n_jobs in (1, 2)
        )
        np.testing.assert_array_equal(one, two)
        scores[loss] = tuple(one)
    assert len(set(scores.values())) == 5


def test_an_unknown_loss(collection):
    with pytest.raises(ParameterError, match="loss must be one of 'lambdarank', 'lambdaloss', 'map', 'mrr', 'xendcg'"):
        LambdaRank(loss="ndcg").fit(collection[0])
