"""LightGBM: `lambdarank` with trees of two leaves, which are threshold weak rankers as RankBoost's are."""

from __future__ import annotations

import time
from importlib.util import find_spec

import numpy as np

from rankwell.data.dataset import RankingDataset

NAME = "LightGBM lambdarank, 2 leaves"
IS_INSTALLED = find_spec("lightgbm") is not None


def seconds_a_round(dataset: RankingDataset, n_rounds: int, n_threads: int) -> list[float]:
    """How long each of `n_rounds` rounds takes, after two that count for nothing; binning is not in it.

    LightGBM tries both of its histogram layouts at the start and keeps the faster one.
    """
    import lightgbm

    settings = {
        "objective": "lambdarank",
        "num_leaves": 2,
        "max_bin": 255,
        "num_threads": n_threads,
        "verbose": -1,
    }
    labels = dataset.labels.astype(np.int32)
    data = lightgbm.Dataset(dataset.features, labels, group=dataset.query_sizes, params=settings)
    booster = lightgbm.Booster(settings, data)
    booster.update()
    booster.update()
    seconds = []
    for _ in range(n_rounds):
        start = time.perf_counter()
        booster.update()
        seconds.append(time.perf_counter() - start)
    return seconds
