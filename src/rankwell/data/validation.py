"""A user's data as the arrays of a dataset, or an error that names the first invalid value."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankwell.data.comments import RowComments
from rankwell.errors import DataError
from rankwell.kernels.disk_arrays import giving_back

_VALUES_CHECKED = 2**20  # values checked at a time


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix: it is not if SciPy's are not imported, which would take 0.2 s."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def as_features(X: Any) -> Any:
    """X as float32: dense in C order (the same array if it is one already), or CSR without duplicates if sparse."""
    if is_sparse(X):
        return _as_sparse_features(X)
    try:
        given = _without_mask(X)
        if given.ndim != 2:
            raise DataError(
                f"X must have two dimensions (documents, features), got shape {given.shape}. Reshape your data: "
                "X.reshape(1, -1) is one document, X.reshape(-1, 1) is one feature."
            )
        _refuse_other_kinds("X", given.dtype)
        with np.errstate(over="ignore"):
            features = np.ascontiguousarray(given, dtype=np.float32)
    except (TypeError, ValueError) as cause:
        if isinstance(cause, DataError):
            raise
        raise DataError(f"X must hold numbers: {cause}. Encode text columns as numbers, or leave them out.") from cause
    place = _first_infinity(features)
    if place is not None:
        raise _infinite_feature(*place, given[place])
    return features


def as_numbers(name: str, values: Any, length: int) -> np.ndarray:
    """One finite float64 for each of `length` rows."""
    numbers = _as_float64(name, values)
    if numbers.shape != (length,):
        raise DataError(f"{name} must have one number per row: {length} rows, got shape {numbers.shape}.")
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(f"{name} must be finite: row {row} is {numbers[row]}. Leave out rows without a judgment.")
    return numbers


def as_weights(name: str, values: Any, length: int) -> np.ndarray:
    """`length` float64 numbers that are finite and not negative."""
    weights = _as_float64(name, values)
    if weights.shape != (length,):
        raise DataError(f"{name} must have shape ({length},), got {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        place = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])
        raise DataError(f"{name} must be finite and not negative: number {place} is {weights[place]}.")
    return weights


def as_comments(comments: Iterable[str], n_docs: int) -> RowComments:
    """One text per row."""
    texts = comments if isinstance(comments, RowComments) else list(comments)
    if len(texts) != n_docs:
        raise DataError(f"comments must have one text per row: {n_docs} rows, {len(texts)} comments.")
    if isinstance(texts, RowComments):
        return texts
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"comments must be texts: row {row} is {text!r}, of type {type(text).__name__}.")
    return RowComments.from_strings(texts)


def as_feature_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """One name per feature, all different, or None."""
    if names is None:
        return None
    checked = tuple(str(name) for name in names)
    if len(checked) != n_features:
        raise DataError(f"feature_names must have one name per feature: {n_features} features, {len(checked)} names.")
    if len(set(checked)) != len(checked):
        twice = next(name for name in checked if checked.count(name) > 1)
        raise DataError(f"feature_names must differ: {twice!r} appears more than once.")
    return checked


def as_query_numbers(queries: Any, n_queries: int) -> np.ndarray:
    """Numbers of queries as int64: from whole numbers (negative ones count from the end) or a mask."""
    chosen = np.asarray(queries)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iub"):
        raise DataError(
            f"queries must be a list of whole numbers or a mask, got {chosen.dtype} of shape {chosen.shape}."
        )
    if chosen.dtype == bool:
        if len(chosen) != n_queries:
            raise DataError(
                f"a mask of queries must have one value per query: {n_queries} queries, {len(chosen)} values."
            )
        return np.flatnonzero(chosen)
    outside = (chosen < -n_queries) | (chosen >= n_queries)
    if outside.any():
        raise DataError(f"queries must be from 0 to {n_queries - 1}, got {chosen[outside][0]}.")
    return chosen.astype(np.int64) % max(n_queries, 1)


def _as_sparse_features(X: Any) -> Any:
    _refuse_other_kinds("X", X.dtype)
    from scipy import sparse

    given = sparse.csr_matrix(X)
    with np.errstate(over="ignore"):
        features = given.astype(np.float32, copy=False)
    if not features.has_canonical_format:
        # SciPy adds up duplicate entries; kernels read each entry once. Done on a copy: X is the user's.
        features = features.copy()
        with np.errstate(over="ignore"):
            features.sum_duplicates()
    if np.isinf(features.data).any():
        place = int(np.flatnonzero(np.isinf(features.data))[0])
        row = int(np.searchsorted(features.indptr, place, side="right")) - 1
        column = int(features.indices[place])
        raise _infinite_feature(row, column, given[row, column])
    return features


def _first_infinity(features: np.ndarray) -> tuple[int, int] | None:
    """Row and column of the first infinity, looking closely only at the blocks of rows whose sum is not finite."""
    rows = max(1, _VALUES_CHECKED // max(1, features.shape[1]))
    blocks = (slice(first, first + rows) for first in range(0, len(features), rows))
    for place in giving_back(blocks, features):
        block = features[place]
        with np.errstate(over="ignore", invalid="ignore"):
            settled = np.isfinite(block.sum())
        if not settled and np.isinf(block).any():
            row, column = (int(number) for number in np.argwhere(np.isinf(block))[0])
            return place.start + row, column
    return None


def _infinite_feature(row: int, feature: int, value: Any) -> DataError:
    return DataError(
        f"X must be finite in float32 or NaN for a missing value: row {row}, feature {feature} is {value}. "
        "Clip the value, or replace it with NaN."
    )


def _as_float64(name: str, values: Any) -> np.ndarray:
    try:
        given = _without_mask(values)
        _refuse_other_kinds(name, given.dtype)
        return np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        if isinstance(cause, DataError):
            raise
        raise DataError(f"{name} must hold numbers: {cause}.") from cause


def _without_mask(values: Any) -> np.ndarray:
    """An array; masked values are missing: the numbers under the mask are not used."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    return np.asarray(values)


def _refuse_other_kinds(name: str, dtype: np.dtype) -> None:
    """Refuse dates and complex numbers, which NumPy would silently convert to floats."""
    if dtype.kind in "cmM":
        complaint = "Complex data not supported: " if dtype.kind == "c" else ""
        raise DataError(f"{complaint}{name} must hold numbers, it holds {dtype}. Turn them into real numbers first.")
