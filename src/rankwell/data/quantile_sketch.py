"""Quantile thresholds of features whose values are in several parts: each part summarises, all merge the summaries.

A summary of a column is at most `POINTS` values with how many values each represents. A column with no more distinct
values than that is summarised exactly. Otherwise its sorted values are cut into `POINTS` runs of equal length, and each
run is represented by its last value: the number of values up to any threshold is then off by less than one run in each
part, by less than 1/4,096 of all values in total. A bin of 256 has about sixteen times as many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.data.agreement import Agreement
from rankwell.kernels.disk_arrays import gather_columns, is_on_disk

POINTS = 4096
_COLUMNS_AT_ONCE = 64


def merged_thresholds(features: Any, rows: np.ndarray, n_value_bins: int, agreement: Agreement) -> np.ndarray:
    """The thresholds that the parts agree on: float32 (n_features, 256), +inf after a feature's last one.

    Parameters
    ----------
    features : float32 array or CSR matrix (n_docs, n_features)
    rows : int64 array
        The rows of this part to look at.
    """
    n_features = features.shape[1]
    table = np.full((n_features, 256), np.inf, dtype=np.float32)
    for first in range(0, n_features, _COLUMNS_AT_ONCE):
        columns = range(first, min(first + _COLUMNS_AT_ONCE, n_features))
        dense = _dense(features, rows, slice(columns.start, columns.stop))
        summaries = [summarise(column) for column in dense.T]
        lengths = np.array([len(values) for values, _ in summaries])
        gathered = [
            agreement.joined(array)
            for array in (
                lengths,
                np.concatenate([values for values, _ in summaries]),
                np.concatenate([counts for _, counts in summaries]),
            )
        ]
        for place, (values, counts) in enumerate(_by_column(*gathered, n_columns=len(columns))):
            _cut(values, counts, n_value_bins, table[first + place])
    return table


def _dense(features: Any, rows: np.ndarray, columns: slice) -> np.ndarray:
    if is_on_disk(features):
        return gather_columns(features, rows, columns)
    block = features[rows][:, columns]
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block)


def summarise(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ascending values, float32, and how many of the column's values each represents, int64; missing ones are left
    out."""
    present = np.sort(column[~np.isnan(column)] + np.float32(0.0))  # -0.0 and 0.0 are one value
    values, counts = np.unique(present, return_counts=True)
    if len(values) <= POINTS:
        return values, counts.astype(np.int64)
    ends = len(present) * np.arange(1, POINTS + 1) // POINTS
    values, place = np.unique(present[ends - 1], return_inverse=True)
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, place, np.diff(ends, prepend=0))
    return values, counts


def _by_column(
    lengths: np.ndarray, values: np.ndarray, counts: np.ndarray, *, n_columns: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each column the values and counts of all parts, which are given part by part."""
    ends = np.cumsum(lengths)
    starts = ends - lengths
    columns = []
    for column in range(n_columns):
        pieces = [slice(starts[place], ends[place]) for place in range(column, len(lengths), n_columns)]
        columns.append(
            (np.concatenate([values[piece] for piece in pieces]), np.concatenate([counts[piece] for piece in pieces]))
        )
    return columns


def _cut(values: np.ndarray, counts: np.ndarray, n_value_bins: int, thresholds: np.ndarray) -> None:
    from rankwell.kernels.binning.quantiles import cut_column

    distinct, place = np.unique(values, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, place, counts)
    cut_column(distinct, total, len(distinct), n_value_bins, np.zeros(len(distinct), dtype=np.bool_), thresholds)
