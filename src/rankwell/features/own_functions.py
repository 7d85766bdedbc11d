"""Calls of a user's own functions: what one raises is told with its name and the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rankwell.errors import DataError
from rankwell.index.query.query import Query

# Characters of what a function returned in a message.
_LONGEST = 60


def call_own(name: str, function: Callable[..., Any], query: Query, *more: Any) -> Any:
    """What the function of feature or vector `name` returns for a query's text, and `more`."""
    try:
        return function(query.text, *more)
    except Exception as cause:
        raise DataError(
            f"the function {function_name(function)} of {name!r} failed for the query {query.text!r}: "
            f"{type(cause).__name__}: {cause}."
        ) from cause


def function_name(function: Callable[..., Any]) -> str:
    """As MODULE:FUNCTION, where it has these names."""
    own = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', type(function).__module__)}:{own}"


def shortened(returned: Any) -> str:
    """What a function returned, for a message."""
    text = repr(returned)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
