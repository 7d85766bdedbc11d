"""Checks of parameters: each says what is allowed and what came."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from rankwell.errors import ParameterError


def check_whole_number(name: str, value: Any, *, least: int | None = None, most: int | None = None) -> None:
    """Refuse what is no whole number (a bool is none) or lies outside ``least`` to ``most``."""
    if not is_whole_number(value):
        raise ParameterError(f"{name} must be a whole number, got {value!r}.")
    if least is not None and most is not None and not least <= value <= most:
        raise ParameterError(f"{name} must be from {least} to {most}, got {value}.")
    if least is not None and value < least:
        raise ParameterError(f"{name} must be {least} or more, got {value}.")


def check_number(
    name: str, value: Any, *, least: float | None = None, above: float | None = None, below: float | None = None
) -> None:
    """Refuse what is no finite number, is less than `least`, or is not between `above` and `below`."""
    limits = []
    if least is not None:
        limits.append(f"of {least:g} or more" if below is None else f"at least {least:g}")
    if above is not None:
        limits.append(f"above {above:g}")
    if below is not None:
        limits.append(f"below {below:g}")
    if (
        not is_number(value)
        or not math.isfinite(value)
        or (least is not None and value < least)
        or (above is not None and value <= above)
        or (below is not None and value >= below)
    ):
        allowed = " and ".join(limits)
        raise ParameterError(f"{name} must be a finite number{' ' + allowed if allowed else ''}, got {value!r}.")


def check_choice(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Refuse a value that is not one of the names `allowed`."""
    names = tuple(allowed)
    if not isinstance(value, str) or value not in names:
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, names))}, got {value!r}.")


def is_number(value: Any) -> bool:
    """Whether a value is one real number (NumPy's too; a bool is none)."""
    return not isinstance(value, bool) and (isinstance(value, int | float) or _is_numpy_number(value))


def is_whole_number(value: Any) -> bool:
    """Whether a value is one whole number (NumPy's too; a bool is none, and 10.0 is none)."""
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _is_numpy_number(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.integer | np.floating)
