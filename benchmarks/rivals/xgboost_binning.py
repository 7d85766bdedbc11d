"""XGBoost: the construction of a `QuantileDMatrix`, a sketch of every feature's quantiles and then its bins."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

NAME = "XGBoost QuantileDMatrix"
IS_INSTALLED = find_spec("xgboost") is not None


def bin_features(features: np.ndarray, n_threads: int) -> Any:
    """Bin a float32 array into at most 256 bins per feature."""
    import xgboost

    return xgboost.QuantileDMatrix(features, max_bin=256, nthread=n_threads)
