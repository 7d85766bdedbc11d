"""Binning, slow and plain: what the fast kernels must give.

Vocabulary. A feature has thresholds θ_0 <= θ_1 <= ... in its own scale, with θ_0 = -inf. The bin of a value x is the
number of thresholds below it, so that for every b

    bin(x) > b   <=>   x > θ_b.

A missing value (NaN) is above no threshold: bin 0 is its own, and RankBoost's weak ranker, 0 where the feature is
undefined (equation 1 of the FAR paper), needs no case for it.
"""

from __future__ import annotations

import numpy as np


def bins_of_values(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The bin of each value: how many thresholds it is above.

    Parameters
    ----------
    values : float32 array (n,)
    thresholds : float32 array (n_thresholds,)

    Returns
    -------
    uint8 array (n,)
    """
    return np.array([sum(bool(x > threshold) for threshold in thresholds) for x in values], dtype=np.uint8)


def width_thresholds(values: np.ndarray, n_value_bins: int) -> np.ndarray:
    """Boundaries of equal width between the smallest and the largest value, as equation 3 of the FAR paper has them.

    Float64, before any rounding: ``θ_s = f_min + s (f_max - f_min) / n_value_bins`` for s = 1 ... n_value_bins - 1, and
    θ_0 = -inf, because the smallest value has a bin too. No value has no threshold; equal values have θ_0 alone.
    """
    present = values[~np.isnan(values)].astype(np.float64)
    if len(present) == 0:
        return np.empty(0)
    lowest, highest = present.min(), present.max()
    if lowest == highest:
        return np.array([-np.inf])
    inner = [lowest + step * (highest - lowest) / n_value_bins for step in range(1, n_value_bins)]
    return np.array([-np.inf, *inner])


def quantile_thresholds(values: np.ndarray, n_value_bins: int) -> np.ndarray:
    """Boundaries that give every bin about the same number of values, float32, strictly ascending after θ_0 = -inf.

    Up to `n_value_bins` distinct values get a bin each. Otherwise a value that alone fills a bin is *heavy* and gets
    its own, and the light values between share the rest evenly; fewer than half a bin of light values before a heavy
    one join it. A boundary is the middle between the two values it parts.
    """
    present = values[~np.isnan(values)]
    if len(present) == 0:
        return np.empty(0, dtype=np.float32)
    distinct, counts = np.unique(present, return_counts=True)
    last_of_bin = cut_evenly(counts.tolist(), n_value_bins)
    inner = [_between(distinct[place], distinct[place + 1]) for place in last_of_bin]
    return np.array([-np.inf, *inner], dtype=np.float32)


def cut_evenly(counts: list[int], n_value_bins: int) -> list[int]:
    """The places after which a bin ends (not the last one), for distinct values that occur `counts` times."""
    if len(counts) <= n_value_bins:
        return list(range(len(counts) - 1))
    heavy: set[int] = set()
    light, light_bins = sum(counts), n_value_bins
    while more := {i for i, count in enumerate(counts) if i not in heavy and count * light_bins >= light}:
        heavy |= more
        light, light_bins = light - sum(counts[i] for i in more), light_bins - len(more)
    ends: list[int] = []
    in_bin = 0
    for place, count in enumerate(counts[:-1]):
        if len(ends) == n_value_bins - 1:
            break
        if place in heavy:
            light -= in_bin
            ends.append(place)
            in_bin = 0
            continue
        in_bin += count
        enough = light if place + 1 not in heavy else light / 2
        if light_bins > 0 and in_bin * light_bins >= enough:
            light, light_bins = light - in_bin, light_bins - 1
            ends.append(place)
            in_bin = 0
    return ends


def _between(low: np.float32, high: np.float32) -> np.float32:
    """The float32 nearest to the middle that is still below `high`: x > it is true of `high` and not of `low`."""
    middle = np.float32((float(low) + float(high)) / 2)
    return middle if middle < high else low
