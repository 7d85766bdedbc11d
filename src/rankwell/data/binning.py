"""Features to at most 256 bins of one byte each, and bins back to thresholds on the feature's own scale.

Bin 0 is for missing values; values have bins from 1 on. The thresholds of a feature are ascending float32
numbers, the first of them -inf, and for every float32 x, in the training data or not,

    bin(x) > b   <=>   x > thresholds[feature][b]

exactly: a model learned on bins is the same model on the raw numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankwell.data.agreement import ALONE, Agreement
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, NotFittedError, ParameterError
from rankwell.kernels.disk_arrays import gather_columns, give_back, is_on_disk, row_blocks, zeros_beside
from rankwell.kernels.threads import kernel_threads
from rankwell.parameters import check_choice, is_whole_number

STRATEGIES = ("width", "quantile")
LAYOUTS = ("rows", "features", "interleaved16")
MOST_BINS = 256

_ROWS_DENSIFIED = 8192  # rows of a sparse matrix made dense at a time, a multiple of the kernels' block
_COLUMNS_DENSIFIED = 64
# Rows of a matrix on disk are taken a multiple of this many at a time; of their columns, this many bytes.
_ROWS_IN_STEP = 8192
_COLUMN_BYTES = 2**25


class Binner:
    """Maps features to bins.

    Parameters
    ----------
    n_bins : int
        Bins in all, 2 to 256, with the one for missing values: at most ``n_bins - 1`` bins hold values.
    strategy : "width" or "quantile"
        "width": bins of equal width between a feature's smallest and largest value, equation 3 of the FAR paper with
        one bin fewer, which is for missing values. "quantile": bins of about equally many values; up to
        ``n_bins - 1`` distinct values get a bin each, and a value that fills a bin alone gets its own.
    subsample : int or None
        "quantile" uses this many rows, chosen at random, if there are more; None uses all of them.
    random_state : int
        The seed of that choice.

    Notes
    -----
    A feature whose values are all equal has one bin for them; a feature without values has no such bin. Values outside
    the range seen in `fit` fall into the first or the last bin. The same data gives the same bins on any number of
    threads, in memory or on disk: ranges are exact, and quantiles are those of the same rows.

    Examples
    --------
    >>> import rankwell
    >>> binner = rankwell.Binner(n_bins=4).fit([[0.0], [1.0], [2.0], [3.0]])
    >>> binner.transform([[0.5], [2.5], [float("nan")]]).ravel().tolist()
    [1, 3, 0]
    """

    def __init__(
        self,
        n_bins: int = MOST_BINS,
        strategy: str = "width",
        *,
        subsample: int | None = 200_000,
        random_state: int = 0,
    ) -> None:
        if not is_whole_number(n_bins) or not 2 <= n_bins <= MOST_BINS:
            raise ParameterError(
                f"must be from 2 to {MOST_BINS}, the missing values' bin included, got {n_bins!r}.", parameter="n_bins"
            )
        check_choice("strategy", strategy, STRATEGIES)
        if subsample is not None and subsample < 1:
            raise ParameterError(
                f"must be a number of rows, 1 or more, or None for all, got {subsample}.", parameter="subsample"
            )
        self.n_bins = n_bins
        self.strategy = strategy
        self.subsample = subsample
        self.random_state = random_state
        self._table: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"Binner(n_bins={self.n_bins}, strategy={self.strategy!r})"

    def fit(self, data: Any, *, n_jobs: int | None = None, agreement: Agreement = ALONE) -> Binner:
        """Find the thresholds of each feature of a dataset, or of anything a dataset takes as X.

        Parts of a dataset agree on them (`rankwell.data.agreement`): on those of the whole for "width", on close ones
        for "quantile" (`rankwell.data.quantile_sketch`).
        """
        features = _features_of(data)
        n_features = features.shape[1]
        table = np.full((n_features, MOST_BINS), np.inf, dtype=np.float32)
        self._n_thresholds = np.zeros(n_features, dtype=np.int64)
        self._origin, self._scale, self._top = np.zeros((3, n_features))
        with kernel_threads(n_jobs):
            if self.strategy == "width":
                self._fit_width(features, table, agreement)
            elif agreement.is_alone:
                self._fit_quantile(features, table)
            else:
                self._fit_merged(features, table, agreement)
        self._table = table
        return self

    @classmethod
    def of_thresholds(cls, table: np.ndarray, n_bins: int) -> Binner:
        """A fitted binner with the thresholds of another one (`threshold_table`): it gives the same bins."""
        binner = cls(n_bins, "quantile")
        binner._table, binner._n_thresholds = table, (table < np.inf).sum(axis=1)
        return binner

    def transform(
        self, data: Any, layout: str = "rows", *, rows: np.ndarray | None = None, n_jobs: int | None = None
    ) -> np.ndarray:
        """The bins of every value, uint8, written straight into the layout asked for.

        Parameters
        ----------
        data : RankingDataset, or anything a dataset takes as X
        layout : str
            "rows": shape (n_docs, n_features). "features": (n_features, n_docs rounded up to a multiple of 16).
            "interleaved16": (n_features / 16 rounded up, n_docs, 16), feature ``16 * group + lane`` at
            ``[group, doc, lane]``. What is rounded up is bin 0. The bins of features on disk are on disk too.
        rows : int64 array, optional
            The rows of `data` that are the documents, in this order; by default all of them, in their own order.
        """
        check_choice("layout", layout, LAYOUTS)
        features = _features_of(data)
        table = self._fitted_table()
        if features.shape[1] != len(table):
            raise DataError(f"X must have the {len(table)} features that were fitted, it has {features.shape[1]}.")
        rows = np.arange(features.shape[0]) if rows is None else _checked_rows(rows, features.shape[0])
        from rankwell.kernels.binning.binning import fill_bins
        from rankwell.kernels.binning.bins import WidthRule, threshold_rule

        by_width = self.strategy == "width"
        rule = WidthRule(self._origin, self._scale, self._top) if by_width else threshold_rule(table)
        out = zeros_beside(features, _shape_of_bins(len(rows), features.shape[1], layout), np.uint8)
        with kernel_threads(n_jobs):
            for first_doc, dense, places in _dense_rows(features, rows):
                fill_bins(dense, places, rule, layout, first_doc, out)
                give_back(out)
        return out

    def fit_transform(self, data: Any, layout: str = "rows", *, n_jobs: int | None = None) -> np.ndarray:
        """`fit`, then `transform` of the same data."""
        return self.fit(data, n_jobs=n_jobs).transform(data, layout, n_jobs=n_jobs)

    @property
    def n_features(self) -> int:
        return len(self._fitted_table())

    @property
    def thresholds(self) -> list[np.ndarray]:
        """Of each feature the ascending float32 thresholds: ``bin(x) > b`` exactly where ``x > thresholds[f][b]``.

        The first is -inf ("the feature has a value"). There are as many as the feature has bins for values, so every
        bin b except the last has its threshold; a feature that was always missing has no thresholds.
        """
        return [row[:number] for row, number in zip(self.threshold_table, self._n_thresholds, strict=True)]

    @property
    def threshold_table(self) -> np.ndarray:
        """The thresholds as one float32 array (n_features, 256), +inf after a feature's last one."""
        return self._fitted_table()

    def _fitted_table(self) -> np.ndarray:
        if self._table is None:
            raise NotFittedError("this Binner has no thresholds yet. Call fit first.")
        return self._table

    def _fit_width(self, features: Any, table: np.ndarray, agreement: Agreement) -> None:
        from rankwell.kernels.binning.binning import find_ranges, find_width_thresholds
        from rankwell.kernels.binning.bins import WidthRule

        lowest = np.full(features.shape[1], np.inf, dtype=np.float32)
        highest = np.full(features.shape[1], -np.inf, dtype=np.float32)
        for _, dense, _ in _dense_rows(features, np.arange(features.shape[0])):
            find_ranges(dense, lowest, highest)
        lowest, highest = agreement.smallest(lowest), agreement.largest(highest)
        low, high = lowest.astype(np.float64), highest.astype(np.float64)
        varies = high > low
        self._origin[varies] = low[varies]
        self._scale[varies] = (self.n_bins - 1) / (high - low)[varies]
        self._top[:] = np.where(varies, self.n_bins - 1, high == low)
        self._n_thresholds[:] = self._top
        find_width_thresholds(WidthRule(self._origin, self._scale, self._top), table)

    def _fit_quantile(self, features: Any, table: np.ndarray) -> None:
        from rankwell.kernels.binning.binning import find_quantiles

        rows = self._rows_to_look_at(features.shape[0])
        for columns, dense, places in _dense_columns(features, rows):
            find_quantiles(dense, places, self.n_bins - 1, table[columns], self._n_thresholds[columns])

    def _fit_merged(self, features: Any, table: np.ndarray, agreement: Agreement) -> None:
        from rankwell.data.quantile_sketch import merged_thresholds

        n_docs = features.shape[0]
        n_of_all = int(agreement.added(np.array([n_docs]))[0])
        # Each part looks at its share of the rows that one process would look at.
        share = 1.0 if self.subsample is None else min(1.0, self.subsample / max(n_of_all, 1))
        rows = self._rows_to_look_at(n_docs, int(np.ceil(share * n_docs)))
        table[:] = agreement.settled(lambda: merged_thresholds(features, rows, self.n_bins - 1, agreement))
        self._n_thresholds[:] = (table < np.inf).sum(axis=1)

    def _rows_to_look_at(self, n_docs: int, most: int | None = None) -> np.ndarray:
        most = self.subsample if most is None else most
        if most is None or n_docs <= most:
            return np.arange(n_docs)
        chosen = np.random.default_rng(self.random_state).choice(n_docs, most, replace=False, shuffle=False)
        return np.sort(chosen)


def _checked_rows(rows: np.ndarray, n_rows: int) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise DataError(f"rows must be whole numbers of shape (n_docs,), got {rows.dtype} of shape {rows.shape}.")
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    if len(rows) and not 0 <= rows.min() <= rows.max() < n_rows:
        raise DataError(f"rows must be from 0 to {n_rows - 1}, got {rows.min()} to {rows.max()}.")
    return rows


def _features_of(data: Any) -> Any:
    return data.features if isinstance(data, RankingDataset) else RankingDataset(data).features


def _shape_of_bins(n_docs: int, n_features: int, layout: str) -> tuple[int, ...]:
    if layout == "rows":
        return n_docs, n_features
    if layout == "features":
        return n_features, -(-n_docs // 16) * 16
    return -(-n_features // 16), n_docs, 16


def _dense_rows(features: Any, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Where documents begin, an array and their rows in it: all at once if it is dense, otherwise some at a time."""
    if is_on_disk(features):
        # Documents are in the order of their queries, so that those of a block are near each other.
        step = next(row_blocks(features, _ROWS_IN_STEP), slice(0, 1)).stop
        for first in range(0, len(rows), step):
            places = rows[first : first + step]
            near = slice(int(places.min()), int(places.max()) + 1)
            yield first, features[near], places - near.start
            give_back(features, near)
        return
    if isinstance(features, np.ndarray):
        yield 0, features, rows
        return
    for first in range(0, len(rows), _ROWS_DENSIFIED):
        dense = features[rows[first : first + _ROWS_DENSIFIED]].toarray()
        yield first, dense, np.arange(len(dense))


def _dense_columns(features: Any, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Columns with the rows to use: all at once if they are dense, otherwise some at a time."""
    if is_on_disk(features):
        n_columns = max(1, _COLUMN_BYTES // (64 * max(1, len(rows)))) * 16
        memory = np.empty(len(rows) * min(n_columns, features.shape[1]), dtype=np.float32)
        for first in range(0, features.shape[1], n_columns):
            columns = slice(first, first + n_columns)
            yield columns, gather_columns(features, rows, columns, memory), np.arange(len(rows))
        return
    if isinstance(features, np.ndarray):
        yield slice(None), features, rows
        return
    by_column = features[rows].tocsc()
    for first in range(0, features.shape[1], _COLUMNS_DENSIFIED):
        columns = slice(first, first + _COLUMNS_DENSIFIED)
        yield columns, np.ascontiguousarray(by_column[:, columns].toarray()), np.arange(len(rows))
