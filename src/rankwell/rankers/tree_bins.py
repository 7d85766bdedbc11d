"""A feature's values as bins for trees: numbers by thresholds, categories by themselves.

A categorical feature has a bin for each of its most frequent categories, 1, 2, ... in ascending order, and one more for
all others; bin 0 is for missing values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwell.data.binning import Binner
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.kernels.disk_arrays import row_blocks
from rankwell.rankers.grown_trees import BinValues

# Larger whole numbers are not all float32 numbers.
LARGEST_CATEGORY = 2**24
# Bins that are no category of their own: missing values, and all other categories.
_OTHER_BINS = 2


class TreeBins:
    """Bins of a training, and what they mean.

    Parameters
    ----------
    binner : Binner
        Fitted.
    dataset : RankingDataset
        The training data, whose categories get bins.
    categorical : sequence of int
        The categorical features.

    Attributes
    ----------
    values : BinValues
    n_value_bins : int64 (n_features,), bins of values that training has
    n_categories : int64 (n_features,), bins that are one category each; 0 for numbers
    """

    def __init__(
        self, binner: Binner, dataset: RankingDataset, categorical: Sequence[int], *, n_jobs: int | None
    ) -> None:
        self._binner, self._n_jobs = binner, n_jobs
        self.n_value_bins = np.array([len(thresholds) for thresholds in binner.thresholds], np.int64)
        self.n_categories = np.zeros(dataset.n_features, np.int64)
        categories: dict[int, np.ndarray] = {}
        for feature in categorical:
            found, counts = _categories_of(dataset, feature)
            n_kept = min(len(found), binner.n_bins - _OTHER_BINS)
            categories[feature] = np.sort(found[np.argsort(-counts, kind="stable")[:n_kept]])
            self.n_categories[feature] = n_kept
            self.n_value_bins[feature] = n_kept + (n_kept < len(found))
        self.values = BinValues(binner.threshold_table, categories)

    def transform(self, dataset: RankingDataset, rows: np.ndarray | None = None) -> np.ndarray:
        """The bins of some rows, by default of all: uint8 (n_rows, n_features)."""
        bins = self._binner.transform(dataset, "rows", rows=rows, n_jobs=self._n_jobs)
        self._put_categories(dataset, rows, bins.T)
        return bins

    def columns(self, dataset: RankingDataset) -> np.ndarray:
        """The bins of all rows, feature by feature: uint8 (n_features, n_rows or more)."""
        bins = self._binner.transform(dataset, "features", n_jobs=self._n_jobs)
        self._put_categories(dataset, None, bins)
        return bins

    def _put_categories(self, dataset: RankingDataset, rows: np.ndarray | None, columns: np.ndarray) -> None:
        for feature, categories in self.values.categories.items():
            found = _category_bins(_column(dataset, feature, rows), categories)
            columns[feature, : len(found)] = found


def _column(dataset: RankingDataset, feature: int, rows: np.ndarray | None) -> np.ndarray:
    if dataset.is_on_disk and rows is None:
        return np.concatenate([dataset.features[block, feature] for block in row_blocks(dataset.features)])
    chosen = dataset.features if rows is None else dataset.features[rows]
    column = chosen[:, feature]
    return column.toarray().reshape(-1) if dataset.is_sparse else column


def _categories_of(dataset: RankingDataset, feature: int) -> tuple[np.ndarray, np.ndarray]:
    """The categories in ascending order, int32, and how many documents have each."""
    column = _column(dataset, feature, None)
    with np.errstate(invalid="ignore"):
        is_wrong = ~np.isnan(column) & ~((column >= 0) & (column <= LARGEST_CATEGORY) & (column == np.trunc(column)))
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        name = f"f{feature + 1}" if dataset.feature_names is None else dataset.feature_names[feature]
        raise DataError(
            f"the feature {name!r} is categorical, so its values must be whole numbers from 0 to {LARGEST_CATEGORY}, "
            f"or NaN where they are missing; row {row} has {column[row]:g}. Number the categories 0, 1, 2, ..."
        )
    found, counts = np.unique(column[~np.isnan(column)].astype(np.int32), return_counts=True)
    return found, counts


def _category_bins(column: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """The bin of each value. What is between two categories counts as the lower one, as in scoring."""
    is_missing = np.isnan(column)
    whole = np.clip(np.where(is_missing, -1, np.trunc(column)), -1, LARGEST_CATEGORY + 1).astype(np.int32)
    # -0.5 has no category, though its whole part is 0.
    whole[column < 0] = -1
    place = np.searchsorted(categories, whole)
    is_known = place < len(categories)
    is_known[is_known] = categories[place[is_known]] == whole[is_known]
    return np.where(is_missing, 0, np.where(is_known, place + 1, len(categories) + 1)).astype(np.uint8)
