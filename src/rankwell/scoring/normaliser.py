"""Normalisers transform features before a model reads them.

A normaliser is fitted with its model and stored in the ranker file, so that prediction always applies it.
NaN (a missing value) stays NaN, except under `letor`, which fills it as in LETOR's own files.

| name           | value                                                                      | needs queries |
| -------------- | -------------------------------------------------------------------------- | ------------- |
| `none`         | x                                                                          | no            |
| `standard`     | (x − mean) / standard deviation, of the training data                      | no            |
| `query-minmax` | (x − min) / (max − min) over the query's documents                         | yes           |
| `letor`        | the same, missing values replaced by the query's minimum (LETOR 4.0's QueryLevelNorm) | yes |

A feature that does not vary (in the training data, or in a query) becomes 0.

A ranker's parameter may also be `auto`: `query-minmax` for several queries, whose ranges usually differ (a BM25 score
of 9 is high for one query and low for another); `standard` for a single one, so that rows without queries can be
scored; `none` for a sparse matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rankwell.data.agreement import ALONE, Agreement
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, Parameter, ParameterError
from rankwell.kernels.disk_arrays import giving_back, zeros_beside

NORMALISERS = ("none", "standard", "query-minmax", "letor")
AUTO = "auto"
# The values of a ranker's parameter `normalize`.
CHOICES = (AUTO, *NORMALISERS)

# Rows per block: float64 temporaries stay at a few megabytes instead of a second copy of the features.
_BLOCK_ROWS = 8192
# Numbers per block of queries: their temporaries stay in the processor's cache.
_BLOCK_CELLS = 2**14


@dataclass(frozen=True)
class Normaliser:
    """A fitted normaliser: its name and the arrays it needs (`mean` and `scale` for `standard`)."""

    name: str = "none"
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    NEEDS_QUERIES: ClassVar[frozenset[str]] = frozenset({"query-minmax", "letor"})

    @property
    def needs_queries(self) -> bool:
        return self.name in self.NEEDS_QUERIES

    def apply(self, dataset: RankingDataset) -> Any:
        """The dataset's features, normalised: the same array if there is nothing to do, else a new one.

        The new array is on disk if the dataset's is.

        Returns
        -------
        float32 array (n_docs, n_features), or CSR if the dataset is sparse and the normaliser is `none`
        """
        if self.name == "none":
            return dataset.features
        features = dataset.dense_features()
        normalised = zeros_beside(features, features.shape, np.float32)
        if self.name == "standard":
            for rows in giving_back(_blocks(len(features)), features, normalised):
                shifted = features[rows] - self.arrays["mean"]
                normalised[rows] = shifted / self.arrays["scale"]
            return normalised
        blocks = list(_query_blocks(dataset.query_sizes, features.shape[1]))
        ranges = giving_back([rows for rows, _ in blocks], features, normalised)
        for rows, (_, sizes) in zip(ranges, blocks, strict=True):
            normalised[rows] = _minmax(features[rows], sizes, fill_missing=self.name == "letor")
        return normalised


def fit_normaliser(name: str, dataset: RankingDataset, agreement: Agreement = ALONE) -> Normaliser:
    """The normaliser called `name`, or the one that `auto` means for this data, fitted to `dataset`."""
    if name not in CHOICES:
        raise ParameterError(f"must be one of {', '.join(map(repr, CHOICES))}, got {name!r}.", parameter="normalize")
    if name == AUTO:
        name = _suitable(dataset, int(agreement.added(np.array([dataset.n_queries]))[0]))
    if name != "none" and dataset.is_sparse:
        raise DataError(
            Parameter("normalize", name),
            " would fill a sparse matrix: use ",
            Parameter("normalize", "none"),
            ", or pass a dense array.",
        )
    if name != "standard":
        return Normaliser(name)
    return Normaliser(name, _mean_and_scale(dataset.features, agreement))


def _suitable(dataset: RankingDataset, n_queries: int) -> str:
    if dataset.is_sparse:
        return "none"
    return "standard" if n_queries == 1 else "query-minmax"


def _mean_and_scale(features: np.ndarray, agreement: Agreement) -> dict[str, np.ndarray]:
    """Mean and standard deviation of each feature, in two float64 passes, without the missing values."""
    n_features = features.shape[1]
    present = np.zeros(n_features)
    total = np.zeros(n_features)
    for rows in giving_back(_blocks(len(features)), features):
        there = ~np.isnan(features[rows])
        present += there.sum(axis=0)
        total += np.where(there, features[rows], 0).sum(axis=0, dtype=np.float64)
    present, total = agreement.added(present), agreement.added(total)
    mean = total / np.maximum(present, 1)
    squares = np.zeros(n_features)
    for rows in giving_back(_blocks(len(features)), features):
        squares += np.nansum(np.square(features[rows] - mean), axis=0)
    deviation = np.sqrt(agreement.added(squares) / np.maximum(present, 1))
    # Rounding leaves a constant feature with a deviation near 1e-8 of its size; dividing by that would amplify noise.
    constant = deviation <= 1e-7 * np.maximum(np.abs(mean), np.finfo(np.float32).tiny)
    return {"mean": mean, "scale": np.where(constant, np.inf, deviation)}


def _query_blocks(sizes: np.ndarray, n_features: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows of whole queries, about `_BLOCK_CELLS` numbers at a time, and the sizes of those that are not empty."""
    ends = np.cumsum(sizes)
    first = start = 0
    while first < len(sizes):
        last = int(np.searchsorted(ends, start + _BLOCK_CELLS // max(n_features, 1), side="right"))
        last = max(last, first + 1)
        own, stop = sizes[first:last], int(ends[last - 1])
        if stop > start:
            yield slice(start, stop), own[own > 0]
        first, start = last, stop


def _minmax(features: np.ndarray, sizes: np.ndarray, *, fill_missing: bool) -> np.ndarray:
    """The features of queries of these sizes, each query's scaled to [0, 1]: float32 (n_docs, n_features)."""
    values = features.astype(np.float64)
    starts = np.cumsum(sizes) - sizes
    lowest = np.fmin.reduceat(values, starts, axis=0)
    spread = np.fmax.reduceat(values, starts, axis=0) - lowest
    spread = np.where(spread > 0, spread, np.inf)
    if fill_missing:
        lowest = np.where(np.isnan(lowest), 0.0, lowest)
    if len(sizes) > 1:
        spread, lowest = np.repeat(spread, sizes, axis=0), np.repeat(lowest, sizes, axis=0)
    if fill_missing:
        values = np.where(np.isnan(values), lowest, values)
    return ((values - lowest) / spread).astype(np.float32)


def _blocks(n_rows: int) -> list[slice]:
    return [slice(start, min(start + _BLOCK_ROWS, n_rows)) for start in range(0, n_rows, _BLOCK_ROWS)]
