"""The binning kernels over whole arrays, divided among threads. Results do not depend on the division."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankwell.kernels.binning.bins import (
    BLOCK,
    LANES,
    ThresholdRule,
    WidthRule,
    bin_by_feature,
    bin_interleaved,
    bin_rows,
    feature_ranges,
    width_thresholds,
)
from rankwell.kernels.binning.quantiles import GROUP, quantile_thresholds
from rankwell.kernels.threads import current_threads, run_parts

_VALUES_PER_PART = 2**17  # the smallest part for a thread


def fill_bins(
    features: np.ndarray,
    rows: np.ndarray,
    rule: WidthRule | ThresholdRule,
    layout: str,
    first: int,
    out: np.ndarray,
) -> None:
    """Bins of some rows, by a rule, into `out` from document `first` on.

    Parameters
    ----------
    features : float32 (n_rows, n_features), C order
    rows : int64 (n_docs,)
        The row of each document.
    layout : str
        "rows", "features" or "interleaved16": the layout of `out` (see `Binner.transform`).
    first : int
    out : uint8
    """
    n_features = features.shape[1]
    rules = (rule, None) if isinstance(rule, WidthRule) else (None, rule)

    def fill(start: int, end: int) -> None:
        if layout == "rows":
            bin_rows(features, rows, *rules, start, end, out, first + start)
            return
        block = np.zeros((BLOCK, -(-n_features // LANES) * LANES), dtype=np.uint8)
        arrange = bin_by_feature if layout == "features" else bin_interleaved
        arrange(features, rows, *rules, start, end, block, first, out)

    _over(len(rows), n_features, fill)


def find_ranges(features: np.ndarray, lowest: np.ndarray, highest: np.ndarray) -> None:
    """Lower `lowest` and raise `highest` (float32, (n_features,)) to the range of the values that are not missing."""
    parts: list[tuple[np.ndarray, np.ndarray]] = []

    def find(start: int, end: int) -> None:
        low, high = lowest.copy(), highest.copy()
        feature_ranges(features, start, end, low, high)
        parts.append((low, high))

    _over(features.shape[0], features.shape[1], find)
    for low, high in parts:
        np.minimum(lowest, low, out=lowest)
        np.maximum(highest, high, out=highest)


def find_width_thresholds(rule: WidthRule, table: np.ndarray) -> None:
    """The thresholds of bins of equal width. table : float32 (n_features, 256), its beginning is written"""
    n_features = len(rule.top)
    n_parts = max(1, min(4 * current_threads(), n_features // LANES))

    def find(part: int) -> None:
        own = slice(n_features * part // n_parts, n_features * (part + 1) // n_parts)
        width_thresholds(WidthRule(*(array[own] for array in rule)), table[own])

    run_parts(find, n_parts)


def find_quantiles(
    features: np.ndarray, rows: np.ndarray, n_value_bins: int, table: np.ndarray, n_thresholds: np.ndarray
) -> None:
    """Thresholds of every feature from the chosen rows. See `quantile_thresholds`."""
    n_features, n_threads = features.shape[1], current_threads()
    # As many groups for every thread.
    n_groups = min(n_threads * -(-n_features // (GROUP * n_threads)), n_features)

    def find(group: int) -> None:
        first, last = n_features * group // n_groups, n_features * (group + 1) // n_groups
        quantile_thresholds(features, rows, n_value_bins, table, n_thresholds, first, last)

    run_parts(find, n_groups)


def _over(n_docs: int, n_features: int, task: Callable[[int, int], None]) -> None:
    """Divide documents into ranges of whole blocks."""
    n_blocks = -(-n_docs // BLOCK)
    n_parts = max(1, min(4 * current_threads(), n_docs * n_features // _VALUES_PER_PART))
    run_parts(
        lambda part: task(n_blocks * part // n_parts * BLOCK, min(n_blocks * (part + 1) // n_parts * BLOCK, n_docs)),
        n_parts,
    )
