"""scikit-learn: the bin mapper of HistGradientBoosting (quantiles, threads), and KBinsDiscretizer (equal width)."""

from __future__ import annotations

import numpy as np

QUANTILE_NAME = "scikit-learn HistGradientBoosting"
WIDTH_NAME = "scikit-learn KBinsDiscretizer"


def bin_by_quantile(features: np.ndarray, n_threads: int) -> np.ndarray:
    """Bin an array that is float64 already, which the mapper needs; the conversion is not timed."""
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

    mapper = _BinMapper(n_bins=256, subsample=200_000, random_state=0, n_threads=n_threads)
    return mapper.fit(features).transform(features)


def bin_by_width(features: np.ndarray) -> np.ndarray:
    """Bin into 255 bins of equal width; it has no threads and does not support missing values."""
    from sklearn.preprocessing import KBinsDiscretizer

    discretizer = KBinsDiscretizer(n_bins=255, encode="ordinal", strategy="uniform", subsample=None)
    return discretizer.fit_transform(features)
