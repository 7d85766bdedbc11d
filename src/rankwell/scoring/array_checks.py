"""Checks of a description's arrays. They may come from a file that anyone wrote, and kernels do not check what they
read: types, shapes, order and bounds are checked here first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.errors import FileFormatError

INTEGERS = ("i4", "i8")
NUMBERS = ("f4", "f8")


def require(condition: bool, complaint: str) -> None:
    """Refuse the description if the condition is false."""
    if not condition:
        raise FileFormatError(f"the ranker's description is damaged: {complaint}.")


def check_array(array: Any, name: str, dtypes: tuple[str, ...], shape: tuple[int, ...]) -> None:
    """`array` must be a NumPy array of one of the types (as "i4") and of this shape; numbers that are not compared but
    multiplied and added must also be finite: see `check_numbers`.
    """
    require(isinstance(array, np.ndarray), f"{name} is not an array")
    allowed = [np.dtype(dtype) for dtype in dtypes]
    require(array.dtype in allowed, f"{name} has the type {array.dtype}, not {' or '.join(map(str, allowed))}")
    require(array.shape == shape, f"{name} has a wrong shape: {array.shape}, not {shape}")


def check_numbers(array: Any, name: str, shape: tuple[int, ...]) -> None:
    """`array` must be float32 or float64 of this shape, without NaN and infinity."""
    check_array(array, name, NUMBERS, shape)
    require(bool(np.isfinite(array).all()), f"{name} has a value that is not finite")


def check_vector(array: Any, name: str, dtypes: tuple[str, ...]) -> int:
    """`array` must be one-dimensional, of one of the types; returns its length."""
    require(isinstance(array, np.ndarray) and array.ndim == 1, f"{name} is not a list")
    check_array(array, name, dtypes, array.shape)
    return len(array)


def check_offsets(array: Any, name: str, n_parts: int | None = None) -> int:
    """`array` must be int64 offsets that ascend from 0, one more than `n_parts`; returns the last."""
    length = check_vector(array, name, ("i8",))
    require(length >= 1 and (n_parts is None or length == n_parts + 1), f"{name} has a wrong shape: {array.shape}")
    # Compared, not subtracted: a difference of far apart numbers overflows.
    require(array[0] == 0 and bool((array[1:] >= array[:-1]).all()), f"{name} does not ascend from 0")
    return int(array[-1])


def check_within(array: np.ndarray, end: int, complaint: str) -> None:
    """Every value must be 0 or more, and below `end`."""
    require(bool(((array >= 0) & (array < end)).all()), complaint)


def check_ascending(array: np.ndarray, offsets: np.ndarray, name: str) -> None:
    """The values of each part must ascend; equal ones may follow each other. NaN never does."""
    ascends = ~np.isnan(array)
    ascends[1:] &= array[1:] >= array[:-1]
    # The first value of a part may be below the last one of the part before it.
    first = offsets[:-1][offsets[:-1] < len(array)]
    ascends[first] = ~np.isnan(array[first])
    require(bool(ascends.all()), f"{name} do not ascend")
