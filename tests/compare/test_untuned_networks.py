"""Networks with their defaults rank no worse than LightGBM's lambdarank with its own, on LETOR's collections."""

from __future__ import annotations

import numpy as np
import pytest
from tests.rankers.test_listnet_letor import joined, letor_folds

from rankwell import LambdaRank, ListNet, evaluate, read
from rankwell.data.folds import FoldData

lightgbm = pytest.importorskip("lightgbm")
pytestmark = pytest.mark.slow


def folds_of(shared_data, collection):
    if collection != "mslr-sample":
        return list(letor_folds(shared_data, collection))
    parts = [read(shared_data / collection / f"{part}.txt.gz") for part in ("train", "vali", "test")]
    return [FoldData("all", *parts)]


@pytest.mark.parametrize("collection", ["MQ2007", "MQ2008", "mslr-sample"])
def test_defaults_against_lightgbm(shared_data, collection):
    folds = folds_of(shared_data, collection)
    test = joined([fold.test for fold in folds])
    scores: dict[str, list[np.ndarray]] = {"lightgbm": [], "lambdarank": [], "listnet": []}
    for fold in folds:
        rival = lightgbm.LGBMRanker(verbosity=-1, n_jobs=1)
        rival.fit(fold.train.features, fold.train.labels.astype(int), group=fold.train.query_sizes)
        scores["lightgbm"].append(rival.predict(fold.test.features))
        for cls in (LambdaRank, ListNet):
            scores[cls.name].append(cls(device="cpu").fit(fold.train).predict(fold.test))
    ndcg = {
        name: evaluate(test, np.concatenate(parts), metrics=("ndcg@10",)).mean["ndcg@10"]
        for name, parts in scores.items()
    }
    assert ndcg["lambdarank"] >= ndcg["lightgbm"]
    assert ndcg["listnet"] >= ndcg["lightgbm"]
