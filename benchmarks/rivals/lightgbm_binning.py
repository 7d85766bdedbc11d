"""LightGBM: the construction of a `Dataset`, which finds bins on 200,000 rows and bins them all."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

NAME = "LightGBM Dataset"
IS_INSTALLED = find_spec("lightgbm") is not None


def bin_features(features: np.ndarray, n_threads: int) -> Any:
    """Bin a float32 array; features that hardly ever differ from 0 are not bundled, so that all of them are stored."""
    import lightgbm

    settings = {"max_bin": 255, "num_threads": n_threads, "enable_bundle": False, "verbose": -1}
    return lightgbm.Dataset(features, params=settings, free_raw_data=False).construct()
