"""LambdaMART with its defaults ranks no worse than LightGBM's ranker with its own, on LETOR's collections."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("lightgbm")

import lightgbm
from tests.compare.test_untuned_networks import folds_of
from tests.rankers.test_listnet_letor import joined

from rankwell import LambdaMART, evaluate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("collection", ["MQ2007", "MQ2008", "mslr-sample"])
def test_defaults_against_lightgbm(shared_data, collection):
    folds = folds_of(shared_data, collection)
    test = joined([fold.test for fold in folds])
    theirs, ours = [], []
    for fold in folds:
        rival = lightgbm.LGBMRanker(verbosity=-1, n_jobs=1)
        rival.fit(fold.train.features, fold.train.labels.astype(int), group=fold.train.query_sizes)
        theirs.append(rival.predict(fold.test.features))
        ours.append(LambdaMART(device="cpu").fit(fold.train).predict(fold.test))
    figures = [evaluate(test, np.concatenate(parts), metrics=("ndcg@10",)).mean["ndcg@10"] for parts in (ours, theirs)]
    assert figures[0] >= figures[1]
