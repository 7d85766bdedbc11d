"""Boosted trees of several libraries with the same settings: how their scores develop, a few rounds at a time.

A *curve* is what validation and test documents score after `STEP`, 2·`STEP`, ... rounds: float64 (n_steps, n_docs). Who
chooses the number of rounds needs nothing else, and no library's own early stopping or metric is involved. Each
library uses one thread: who measures quality does not wait for any of them, and can run several side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from rankwell import LambdaMART
from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData

STEP = 10


@dataclass(frozen=True)
class TreeSetting:
    """What is tried with every library, each in its own words.

    leaves : at most; of symmetric trees the power of two above
    feature_fraction : the share of features that a tree may cut, which makes seeds matter
    """

    leaves: int
    learning_rate: float
    feature_fraction: float
    n_rounds: int


@dataclass(frozen=True)
class Curve:
    validation: np.ndarray
    test: np.ndarray


CurveMaker = Callable[[FoldData, TreeSetting, int], Curve]


def curve_makers() -> dict[str, CurveMaker]:
    """By name: Rankwell's losses, and the libraries that are installed."""
    makers: dict[str, CurveMaker] = {
        "LambdaMART lambdarank": lambda *task: _own("lambdarank", *task),
        "LambdaMART xendcg": lambda *task: _own("xendcg", *task),
    }
    if find_spec("lightgbm"):
        makers["LightGBM lambdarank"] = lambda *task: _lightgbm("lambdarank", *task)
        makers["LightGBM rank_xendcg"] = lambda *task: _lightgbm("rank_xendcg", *task)
    if find_spec("xgboost"):
        makers["XGBoost rank:ndcg"] = lambda *task: _xgboost("rank:ndcg", *task)
        makers["XGBoost rank:pairwise"] = lambda *task: _xgboost("rank:pairwise", *task)
    if find_spec("catboost"):
        makers["CatBoost YetiRank"] = lambda *task: _catboost("YetiRank", *task)
        makers["CatBoost QuerySoftMax"] = lambda *task: _catboost("QuerySoftMax", *task)
    return makers


def _own(loss: str, fold: FoldData, setting: TreeSetting, seed: int) -> Curve:
    ranker = LambdaMART(
        loss=loss,
        n_leaves=setting.leaves,
        learning_rate=setting.learning_rate,
        feature_fraction=setting.feature_fraction,
        n_rounds=setting.n_rounds,
        random_state=seed,
        device="cpu",
        n_jobs=1,
    ).fit(fold.train)

    def curve(data: RankingDataset) -> np.ndarray:
        stages = list(ranker.staged_predict(data))
        # No tree may have been left to grow.
        stages += [stages[-1]] * (setting.n_rounds - len(stages))
        return np.array(stages[STEP - 1 :: STEP])

    return Curve(curve(fold.validation), curve(fold.test))


def _lightgbm(objective: str, fold: FoldData, setting: TreeSetting, seed: int) -> Curve:
    import lightgbm

    train = fold.train
    data = lightgbm.Dataset(train.dense_features(), train.labels.astype(np.int32), group=train.query_sizes)
    settings = {
        "objective": objective,
        "num_leaves": setting.leaves,
        "learning_rate": setting.learning_rate,
        "feature_fraction": setting.feature_fraction,
        "seed": seed,
        "num_threads": 1,
        "verbose": -1,
    }
    booster = lightgbm.train(settings, data, num_boost_round=setting.n_rounds)
    return Curve(
        *(
            _added_up(
                lambda first, part=part: booster.predict(
                    part.dense_features(), start_iteration=first, num_iteration=STEP
                ),
                setting.n_rounds,
            )
            for part in (fold.validation, fold.test)
        )
    )


def _xgboost(objective: str, fold: FoldData, setting: TreeSetting, seed: int) -> Curve:
    import xgboost

    def matrix(part: RankingDataset) -> xgboost.DMatrix:
        return xgboost.DMatrix(part.dense_features(), part.labels, group=part.query_sizes)

    settings = {
        "objective": objective,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": setting.leaves,
        "max_depth": 0,
        "learning_rate": setting.learning_rate,
        "colsample_bytree": setting.feature_fraction,
        "seed": seed,
        "nthread": 1,
    }
    booster = xgboost.train(settings, matrix(fold.train), num_boost_round=setting.n_rounds)
    parts = [matrix(part) for part in (fold.validation, fold.test)]
    # Every prediction has the same constant added, which does not change a ranking.
    return Curve(
        *(
            _added_up(
                lambda first, part=part: booster.predict(
                    part, iteration_range=(first, first + STEP), output_margin=True
                ),
                setting.n_rounds,
            )
            for part in parts
        )
    )


def _catboost(loss: str, fold: FoldData, setting: TreeSetting, seed: int) -> Curve:
    import catboost

    train = fold.train
    query = np.repeat(np.arange(train.n_queries), train.query_sizes)
    pool = catboost.Pool(train.dense_features(), train.labels, group_id=query)
    model = catboost.CatBoost(
        {
            "loss_function": loss,
            "iterations": setting.n_rounds,
            "depth": (setting.leaves - 1).bit_length(),
            "learning_rate": setting.learning_rate,
            "rsm": setting.feature_fraction,
            "random_seed": seed,
            "thread_count": 1,
            "allow_writing_files": False,
            "verbose": False,
        }
    ).fit(pool)

    def curve(part: RankingDataset) -> np.ndarray:
        ends = range(STEP, setting.n_rounds + 1, STEP)
        return _added_up(
            lambda first: model.predict(part.dense_features(), ntree_start=first, ntree_end=first + STEP), max(ends)
        )

    return Curve(curve(fold.validation), curve(fold.test))


def _added_up(part_from: Callable[[int], np.ndarray], n_rounds: int) -> np.ndarray:
    """The curve, from the scores of `STEP` rounds from some round on."""
    parts = [np.asarray(part_from(first), np.float64) for first in range(0, n_rounds, STEP)]
    return np.cumsum(parts, axis=0)
