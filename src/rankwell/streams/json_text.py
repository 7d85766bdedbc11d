"""JSON from files that others wrote: whatever is wrong with it is one kind of error."""

from __future__ import annotations

import json
from typing import Any, NoReturn

DEEPEST = 100


def parse_json(text: str | bytes, *, deepest: int = DEEPEST) -> Any:
    """The value of a JSON text.

    Raises
    ------
    ValueError
        If the text is not JSON (NaN and Infinity are not), or if lists and objects are nested more than `deepest` deep:
        whoever walks through the value may use recursion.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as cause:
        raise ValueError(f"lists and objects are nested more than {deepest} deep") from cause
    level = [value]
    for _ in range(deepest + 1):
        level = [item for part in level if isinstance(part, dict | list) for item in _items(part)]
        if not level:
            return value
    raise ValueError(f"lists and objects are nested more than {deepest} deep")


def _items(part: dict[str, Any] | list[Any]) -> Any:
    return part.values() if isinstance(part, dict) else part


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")
