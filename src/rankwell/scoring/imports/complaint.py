"""What a reader met in a damaged model, in words."""

from __future__ import annotations


def complaint(cause: Exception) -> str:
    """What `cause` says: of an entry that was looked up in vain, that it is not there; of others, their message."""
    if isinstance(cause, KeyError):
        return f"it has no entry {cause.args[0]!r}"
    return str(cause) or type(cause).__name__
