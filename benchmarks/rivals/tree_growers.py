"""Other libraries' boosted trees for ranking, tree by tree: LightGBM's, float and quantised, XGBoost's, CatBoost's.

Each has the same number of leaves; features are binned before the first tree.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.rivals import lightgbm_trees
from rankwell.data.dataset import RankingDataset

# CatBoost's trees cannot be grown one by one: a tree's time is what these many more take than one.
CATBOOST_TREES = 4

Grow = Callable[[], Any]


def tree_growers(dataset: RankingDataset, n_leaves: int, n_threads: int) -> dict[str, list[Grow]]:
    """By library, and form of it, functions that grow one more tree, one for each layout; the faster one counts."""
    growers: dict[str, list[Grow]] = {}
    if lightgbm_trees.IS_INSTALLED:
        boosters = lightgbm_trees.start_boosters(dataset, n_leaves, n_threads)
        growers |= {form: [booster.update for booster in layouts] for form, layouts in boosters.items()}
    if find_spec("xgboost"):
        growers["XGBoost hist"] = [_xgboost_grower(dataset, n_leaves, n_threads)]
    return growers


def _xgboost_grower(dataset: RankingDataset, n_leaves: int, n_threads: int) -> Grow:
    import xgboost

    matrix = xgboost.QuantileDMatrix(
        dataset.dense_features(), dataset.labels, group=dataset.query_sizes, max_bin=256, nthread=n_threads
    )
    booster = xgboost.Booster(
        {
            "objective": "rank:ndcg",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": n_leaves,
            "max_depth": 0,
            "max_bin": 256,
            "learning_rate": 0.1,
            "nthread": n_threads,
        },
        [matrix],
    )
    return lambda: booster.update(matrix, booster.num_boosted_rounds())


def catboost_seconds(dataset: RankingDataset, n_leaves: int, n_threads: int) -> float | None:
    """Processor time of a symmetric tree of CatBoost's YetiRank; None if it is not installed."""
    if not find_spec("catboost"):
        return None
    import catboost

    query = np.repeat(np.arange(dataset.n_queries), dataset.query_sizes)
    pool = catboost.Pool(dataset.dense_features(), dataset.labels, group_id=query)
    pool.quantize(border_count=254)

    def seconds(n_trees: int) -> float:
        model = catboost.CatBoost(
            {
                "loss_function": "YetiRank",
                "iterations": n_trees,
                "depth": (n_leaves - 1).bit_length(),
                "learning_rate": 0.1,
                "thread_count": n_threads,
                "allow_writing_files": False,
                "verbose": False,
            }
        )
        before = time.process_time()
        model.fit(pool)
        return time.process_time() - before

    return (seconds(1 + CATBOOST_TREES) - seconds(1)) / CATBOOST_TREES
