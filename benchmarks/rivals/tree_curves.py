"""Boosted trees of several libraries with the same settings: how their scores develop, a few rounds at a time.

A *curve* is what validation and test documents score after `STEP`, 2·`STEP`, ... rounds: float64 (n_steps, n_docs). Who
chooses the number of rounds needs nothing else, and no library's own early stopping or metric is involved. Each
library uses one thread: who measures quality does not wait for any of them, and can run several side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from rankwell import LambdaMART
from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData

STEP = 10


@dataclass(frozen=True)
class TreeSetting:
    """What is tried with every library, each in its own words.

    leaves : at most; of trees that grow by levels the power of two above
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
    """By name: Rankwell's losses, and those of the libraries that are installed."""
    makers: dict[str, CurveMaker] = {
        "LambdaMART lambdarank": partial(_own, {"loss": "lambdarank"}),
        "LambdaMART xendcg": partial(_own, {"loss": "xendcg"}),
        "LambdaMART symmetric xendcg": partial(_own, {"loss": "xendcg", "growth": "symmetric"}),
    }
    if find_spec("lightgbm"):
        makers["LightGBM lambdarank"] = partial(_lightgbm, {"objective": "lambdarank"})
        makers["LightGBM rank_xendcg"] = partial(_lightgbm, {"objective": "rank_xendcg"})
        makers["LightGBM extra-trees rank_xendcg"] = partial(
            _lightgbm, {"objective": "rank_xendcg", "extra_trees": True}
        )
    if find_spec("xgboost"):
        makers["XGBoost rank:ndcg"] = partial(_xgboost, _leaf_wise, {"objective": "rank:ndcg"})
        makers["XGBoost rank:pairwise"] = partial(_xgboost, _leaf_wise, {"objective": "rank:pairwise"})
        makers["XGBoost depthwise rank:pairwise"] = partial(_xgboost, _depth_wise, {"objective": "rank:pairwise"})
    if find_spec("catboost"):
        makers["CatBoost YetiRank"] = partial(_catboost, {"loss_function": "YetiRank"})
        makers["CatBoost QuerySoftMax"] = partial(_catboost, {"loss_function": "QuerySoftMax"})
        makers["CatBoost plain YetiRank"] = partial(
            _catboost, {"loss_function": "YetiRank", "random_strength": 0, "bootstrap_type": "No"}
        )
    return makers


def _own(form: dict[str, str], fold: FoldData, setting: TreeSetting, seed: int) -> Curve:
    ranker = LambdaMART(
        n_leaves=setting.leaves,
        learning_rate=setting.learning_rate,
        feature_fraction=setting.feature_fraction,
        n_rounds=setting.n_rounds,
        random_state=seed,
        device="cpu",
        n_jobs=1,
        **form,
    ).fit(fold.train)

    def curve(data: RankingDataset) -> np.ndarray:
        stages = list(ranker.staged_predict(data))
        # No tree may have been left to grow.
        stages += [stages[-1]] * (setting.n_rounds - len(stages))
        return np.array(stages[STEP - 1 :: STEP])

    return Curve(curve(fold.validation), curve(fold.test))


def _lightgbm(form: dict[str, Any], fold: FoldData, setting: TreeSetting, seed: int) -> Curve:
    import lightgbm

    train = fold.train
    data = lightgbm.Dataset(train.dense_features(), train.labels.astype(np.int32), group=train.query_sizes)
    settings = {
        **form,
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


def _leaf_wise(leaves: int) -> dict[str, Any]:
    """XGBoost's settings for trees that grow the best leaf first."""
    return {"grow_policy": "lossguide", "max_leaves": leaves, "max_depth": 0}


def _depth_wise(leaves: int) -> dict[str, Any]:
    """XGBoost's settings for trees that grow level by level, which is its default."""
    return {"grow_policy": "depthwise", "max_depth": _depth(leaves)}


def _xgboost(
    growth: Callable[[int], dict[str, Any]], form: dict[str, Any], fold: FoldData, setting: TreeSetting, seed: int
) -> Curve:
    import xgboost

    def matrix(part: RankingDataset) -> xgboost.DMatrix:
        return xgboost.DMatrix(part.dense_features(), part.labels, group=part.query_sizes)

    settings = {
        **form,
        **growth(setting.leaves),
        "tree_method": "hist",
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


def _catboost(form: dict[str, Any], fold: FoldData, setting: TreeSetting, seed: int) -> Curve:
    import catboost

    train = fold.train
    query = np.repeat(np.arange(train.n_queries), train.query_sizes)
    pool = catboost.Pool(train.dense_features(), train.labels, group_id=query)
    model = catboost.CatBoost(
        {
            **form,
            "iterations": setting.n_rounds,
            "depth": _depth(setting.leaves),
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


def _depth(leaves: int) -> int:
    """Of the smallest full tree with as many leaves."""
    return (leaves - 1).bit_length()


def _added_up(part_from: Callable[[int], np.ndarray], n_rounds: int) -> np.ndarray:
    """The curve, from the scores of `STEP` rounds from some round on."""
    parts = [np.asarray(part_from(first), np.float64) for first in range(0, n_rounds, STEP)]
    return np.cumsum(parts, axis=0)
