"""Objects inside a document, flattened: {"author": {"name": "Ada"}} has the field author.name.

Objects in a list are flattened together: the values that their fields of one name have are one list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rankwell.errors import DataError

MOST_DEPTH = 16


def is_nested(value: Any) -> bool:
    """Whether a value is an object, or a list with objects."""
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and any(isinstance(part, Mapping) for part in value)
    )


def flattened(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields, with those of inner objects under the names of both; the same mapping if there are none."""
    if not any(is_nested(value) for value in fields.values()):
        return fields
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        flat |= flat_fields(name, value) if is_nested(value) else {name: value}
    return flat


def flat_fields(name: str, value: Any) -> dict[str, Any]:
    """The fields of a nested value, by their names."""
    flat: dict[str, Any] = {}
    for inner, leaf, is_listed in _leaves(name, value, MOST_DEPTH):
        if not is_listed:
            flat[inner] = leaf
        elif leaf is not None:
            flat.setdefault(inner, []).extend(leaf if isinstance(leaf, list | tuple) else [leaf])
    return flat


def _leaves(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any, bool]]:
    """(name, value, whether it is one of a list) of everything that is not an object."""
    if depth == 0:
        raise DataError(f"field {name!r}: objects are nested more than {MOST_DEPTH} deep. Leave the field out.")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner, depth - 1)
    elif is_nested(value):
        for part in value:
            for inner, leaf, _ in _leaves(name, part, depth - 1):
                yield inner, leaf, True
    else:
        yield name, value, False
