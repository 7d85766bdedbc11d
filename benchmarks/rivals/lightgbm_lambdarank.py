"""LightGBM: `lambdarank` with trees of two leaves, which are threshold weak rankers as RankBoost's are."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset

NAME = "LightGBM lambdarank, 2 leaves"
IS_INSTALLED = find_spec("lightgbm") is not None
LAYOUTS = ("force_col_wise", "force_row_wise")
# Gradients as float32, or as whole numbers of few bits, which is faster and another model.
GRADIENTS = {"float": {}, "quantised": {"use_quantized_grad": True}}


def seconds_a_round(dataset: RankingDataset, n_rounds: int, n_threads: int, n_runs: int) -> dict[str, float]:
    """By form of the gradients, the mean over `n_rounds` rounds, in the fastest of some runs with each of the two
    layouts, without binning.

    By default LightGBM chooses a layout by one short trial, and not always the faster: here both are run.
    """
    return {
        form: min(
            _time_rounds(booster, n_rounds) / n_rounds
            for booster in [_start(dataset, {layout: True, **setting}, n_threads) for layout in LAYOUTS]
            for _ in range(n_runs)
        )
        for form, setting in GRADIENTS.items()
    }


def gradient_seconds(dataset: RankingDataset, n_rounds: int) -> float:
    """Processor time, on one thread, of a tree with two leaves and one feature: little more than its gradients take."""
    booster = _start(dataset.replace(features=np.ascontiguousarray(dataset.features[:, :1])), {}, 1)
    times = []
    for _ in range(n_rounds):
        before = time.process_time()
        booster.update()
        times.append(time.process_time() - before)
    return min(times)


def _start(dataset: RankingDataset, chosen: dict[str, bool], n_threads: int) -> Any:
    """A booster with features binned and two rounds done, which are not timed."""
    import lightgbm

    settings = {
        "objective": "lambdarank",
        "num_leaves": 2,
        "max_bin": 255,
        "num_threads": n_threads,
        "verbose": -1,
        **chosen,
    }
    labels = dataset.labels.astype(np.int32)
    data = lightgbm.Dataset(dataset.features, labels, group=dataset.query_sizes, params=settings)
    booster = lightgbm.Booster(settings, data)
    booster.update()
    booster.update()
    return booster


def _time_rounds(booster: Any, n_rounds: int) -> float:
    start = time.perf_counter()
    for _ in range(n_rounds):
        booster.update()
    return time.perf_counter() - start
