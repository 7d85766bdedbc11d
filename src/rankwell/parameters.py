"""Checks of parameters: each says what is allowed and what came."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from rankwell.errors import ParameterError


def check_whole_number(name: str, value: Any, *, least: int | None = None, most: int | None = None) -> None:
    """Refuse what is not a whole number (a bool is not) or is outside ``least`` to ``most``."""
    if not is_whole_number(value):
        raise ParameterError(f"must be a whole number, got {value!r}.", parameter=name)
    if least is not None and most is not None and not least <= value <= most:
        raise ParameterError(f"must be from {least} to {most}, got {value}.", parameter=name)
    if least is not None and value < least:
        raise ParameterError(f"must be {least} or more, got {value}.", parameter=name)


def check_number(
    name: str, value: Any, *, least: float | None = None, above: float | None = None, below: float | None = None
) -> None:
    """Refuse what is not a finite number, is less than `least`, or is not between `above` and `below`."""
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
        raise ParameterError(
            f"must be a finite number{' ' + allowed if allowed else ''}, got {value!r}.", parameter=name
        )


def check_choice(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Refuse a value that is not one of the names `allowed`."""
    names = tuple(allowed)
    if not isinstance(value, str) or value not in names:
        raise ParameterError(f"must be one of {', '.join(map(repr, names))}, got {value!r}.", parameter=name)


def is_number(value: Any) -> bool:
    """Whether a value is one real number (NumPy's too; a bool is not)."""
    return not isinstance(value, bool) and (isinstance(value, int | float) or _is_numpy_number(value))


def is_whole_number(value: Any) -> bool:
    """Whether a value is one whole number (NumPy's too; a bool is not, nor is 10.0)."""
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
