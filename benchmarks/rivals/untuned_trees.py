"""LightGBM's and XGBoost's rankers as they come: no parameter is set but the number of threads."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from rankwell.data.dataset import RankingDataset

Scorer = Callable[[RankingDataset, RankingDataset], np.ndarray]


def installed_rivals() -> dict[str, Scorer]:
    """By name, those that are installed: a function of training and test data that returns the test rows' scores."""
    rivals = {"LightGBM": ("lightgbm", _lightgbm_scores), "XGBoost": ("xgboost", _xgboost_scores)}
    return {name: scorer for name, (package, scorer) in rivals.items() if find_spec(package) is not None}


def _lightgbm_scores(train: RankingDataset, test: RankingDataset) -> np.ndarray:
    import lightgbm

    ranker = lightgbm.LGBMRanker(verbose=-1, n_jobs=1)
    ranker.fit(train.dense_features(), train.labels.astype(np.int32), group=train.query_sizes)
    return np.asarray(ranker.predict(test.dense_features()), dtype=np.float64)


def _xgboost_scores(train: RankingDataset, test: RankingDataset) -> np.ndarray:
    import xgboost

    ranker = xgboost.XGBRanker(n_jobs=1)
    ranker.fit(train.dense_features(), train.labels.astype(np.int32), group=train.query_sizes)
    return np.asarray(ranker.predict(test.dense_features()), dtype=np.float64)
