"""Frames of other libraries (pandas, Polars, Arrow) as arrays, without importing any of them.

A frame is recognised by the module of its class, so `import rankwell` needs none of these packages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwell.errors import DataError

_FRAME_CLASSES = {("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"), ("pyarrow", "RecordBatch")}


@dataclass(frozen=True)
class FrameParts:
    """A frame cut into what a dataset needs."""

    features: np.ndarray
    feature_names: list[str]
    labels: np.ndarray | None
    qid: np.ndarray
    comments: list[str] | None


def is_frame(data: Any) -> bool:
    """Whether `data` is a pandas or Polars data frame or an Arrow table."""
    return _library(data) is not None


def column_names(frame: Any) -> list[str]:
    return [str(name) for name in (frame.schema.names if _library(frame) == "pyarrow" else frame.columns)]


def column(frame: Any, name: str) -> np.ndarray:
    """One column as a NumPy array (Arrow nulls become NaN in number columns, None elsewhere)."""
    values = _series(frame, _place_of(frame, name))
    if _library(frame) == "pyarrow":
        return values.to_numpy(zero_copy_only=False)
    return np.asarray(values.to_numpy())


def columns_of_frame(frame: Any, names: Sequence[str] | None = None) -> tuple[np.ndarray, list[str]]:
    """Columns as one float32 array in C order, filled a column at a time: no float64 copy of the frame is made."""
    chosen = column_names(frame) if names is None else list(names)
    features = np.empty((_n_rows(frame), len(chosen)), dtype=np.float32)
    for place, name in enumerate(chosen):
        with np.errstate(over="ignore"):
            features[:, place] = _number_column(frame, name, f"feature column {name!r}")
    return features, chosen


def category_columns(frame: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Which of these columns of a pandas frame are declared to be categories."""
    if _library(frame) != "pandas":
        return ()
    return tuple(name for name in names if _type_name(_series(frame, _place_of(frame, name))) == "category")


def split_frame(
    frame: Any, *, label: str, qid: str, features: Sequence[str] | None, comment: str | None = None
) -> FrameParts:
    """Cut a frame into features, labels (None without the column), query ids and comments."""
    if not is_frame(frame):
        raise DataError(
            f"frame must be a pandas or Polars data frame or an Arrow table, got {type(frame).__name__}. "
            "Pass arrays to RankingDataset itself."
        )
    names = column_names(frame)
    apart = {label, qid} | ({comment} if comment is not None else set())
    chosen = [name for name in names if name not in apart] if features is None else list(features)
    table, _ = columns_of_frame(frame, chosen)
    return FrameParts(
        features=table,
        feature_names=chosen,
        labels=_number_column(frame, label, f"label column {label!r}") if label in names else None,
        qid=column(frame, qid),
        comments=None if comment is None else [_as_text(value) for value in column(frame, comment).tolist()],
    )


def _number_column(frame: Any, name: str, what: str) -> np.ndarray:
    """A column as numbers, missing values as NaN."""
    values = _series(frame, _place_of(frame, name))
    try:
        if _library(frame) == "pandas" and not isinstance(values.dtype, np.dtype) and values.dtype.kind not in "mM":
            return values.to_numpy(dtype=np.float64, na_value=np.nan)
        numbers = column(frame, name)
        if numbers.dtype.kind in "cmM":
            raise TypeError("dates and complex numbers are not supported")
        return numbers if numbers.dtype.kind in "fiub" else numbers.astype(np.float64)
    except (TypeError, ValueError) as cause:
        raise DataError(
            f"{what} must hold numbers, it holds {_type_name(values)}: {cause}. "
            "Encode it as numbers, or name the feature columns to use."
        ) from cause


def _as_text(value: Any) -> str:
    """A cell of a text column; a missing one is empty."""
    return value if isinstance(value, str) else "" if is_missing(value) else str(value)


def is_missing(value: Any) -> bool:
    """Whether one cell is None, NaN, NaT or pandas' NA (which does not compare equal to itself)."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _place_of(frame: Any, name: str) -> int:
    names = column_names(frame)
    if names.count(name) == 1:
        return names.index(name)
    if name in names:
        raise DataError(f"there are {names.count(name)} columns {name!r}. Give each column its own name.")
    raise DataError(f"there is no column {name!r}. The columns are {', '.join(names)}.")


def _series(frame: Any, place: int) -> Any:
    """A column by its place: the names of a pandas frame need not be texts."""
    library = _library(frame)
    if library == "pandas":
        return frame.iloc[:, place]
    return frame.to_series(place) if library == "polars" else frame.column(place)


def _type_name(values: Any) -> str:
    return str(values.type if hasattr(values, "type") else values.dtype)


def _library(data: Any) -> str | None:
    for ancestor in type(data).__mro__:
        library = ancestor.__module__.partition(".")[0]
        if (library, ancestor.__name__) in _FRAME_CLASSES:
            return library
    return None


def _n_rows(frame: Any) -> int:
    return int(frame.num_rows) if _library(frame) == "pyarrow" else len(frame)
