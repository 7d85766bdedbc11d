"""Checks of parameters: each error says what is allowed and what was given."""

from __future__ import annotations

import math
import operator
import re
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


def check_choice(name: str, value: Any, allowed: Iterable[str], hint: str = "") -> None:
    """Refuse a value that is not one of the names `allowed`; `hint` is a sentence on what it is instead, or empty."""
    names = tuple(allowed)
    if not isinstance(value, str) or value not in names:
        raise ParameterError(
            f"must be one of {', '.join(map(repr, names))}, got {value!r}.{f' {hint}' if hint else ''}", parameter=name
        )


def check_truth(name: str, value: Any) -> None:
    """Refuse what is neither True nor False (NumPy's are)."""
    if not isinstance(value, bool) and not _is_numpy_truth(value):
        raise ParameterError(f"must be True or False, got {value!r}.", parameter=name)


def as_bytes(name: str, value: Any) -> int:
    """A size in bytes: a whole number, or text such as "4GiB" or "500 MB"."""
    if is_whole_number(value) and value > 0:
        return int(value)
    found = (
        re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *(?:([KMGT])(i?)B?|B)?", value.strip(), re.I)
        if isinstance(value, str)
        else None
    )
    size = 0 if found is None else _size(*found.groups())
    if size <= 0:
        raise ParameterError(f"must be a size such as 4GiB, 500MB or 1073741824, got {value!r}.", parameter=name)
    return size


def _size(number: str, unit: str | None, binary: str | None) -> int:
    power = 0 if unit is None else "KMGT".index(unit.upper()) + 1
    return int(float(number) * (1024 if binary else 1000) ** power)


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


def _is_numpy_truth(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.bool_)


def _is_numpy_number(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.integer | np.floating)
