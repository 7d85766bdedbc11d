"""Frames of other libraries (pandas, Polars, Arrow) as arrays, without importing any of them.

A frame is recognised by the module of its class, so `import rankwell` needs none of these packages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwell.errors import DataError


@dataclass(frozen=True)
class FrameParts:
    """A frame cut into what a dataset needs."""

    features: np.ndarray
    labels: np.ndarray | None
    qid: np.ndarray | None


def is_frame(data: Any) -> bool:
    """Whether `data` is a pandas or Polars data frame or an Arrow table."""
    return _library(data) is not None


def column_names(frame: Any) -> list[str]:
    return [str(name) for name in (frame.schema.names if _library(frame) == "pyarrow" else frame.columns)]


def column(frame: Any, name: str) -> np.ndarray:
    """One column as a NumPy array (Arrow nulls become NaN in number columns, None elsewhere)."""
    if name not in column_names(frame):
        raise DataError(f"there is no column {name!r}. The columns are {', '.join(column_names(frame))}.")
    values = frame[name]
    if _library(frame) == "pyarrow":
        return values.to_numpy(zero_copy_only=False)
    return np.asarray(values.to_numpy())


def columns_of_frame(frame: Any, names: Sequence[str] | None = None) -> tuple[np.ndarray, list[str]]:
    """Columns as one float32 array in C order, filled a column at a time so that no float64 copy of the frame is made."""
    chosen = column_names(frame) if names is None else list(names)
    features = np.empty((_n_rows(frame), len(chosen)), dtype=np.float32)
    for place, name in enumerate(chosen):
        values = column(frame, name)
        try:
            with np.errstate(over="ignore"):
                features[:, place] = values
        except (TypeError, ValueError) as cause:
            raise DataError(
                f"feature column {name!r} must hold numbers, it holds {values.dtype}: {cause}. "
                "Encode it as numbers, or name the feature columns to use."
            ) from cause
    return features, chosen


def split_frame(
    frame: Any, *, label: str, qid: str, features: Sequence[str] | None, comment: str | None = None
) -> tuple[list[str], FrameParts]:
    """Cut a frame into features, labels (None without the column) and query ids."""
    names = column_names(frame)
    apart = {label, qid} | ({comment} if comment is not None else set())
    chosen = [name for name in names if name not in apart] if features is None else list(features)
    table, _ = columns_of_frame(frame, chosen)
    return chosen, FrameParts(
        features=table,
        labels=column(frame, label) if label in names else None,
        qid=column(frame, qid),
    )


def _library(data: Any) -> str | None:
    library = type(data).__module__.partition(".")[0]
    name = type(data).__name__
    return library if (library, name) in _FRAME_CLASSES else None


_FRAME_CLASSES = {
    ("pandas", "DataFrame"),
    ("polars", "DataFrame"),
    ("pyarrow", "Table"),
    ("pyarrow", "RecordBatch"),
}


def _n_rows(frame: Any) -> int:
    return int(frame.num_rows) if _library(frame) == "pyarrow" else len(frame)
